"""What a rerun says of what changed and of what matched."""

import copy
import dataclasses
import io
import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from paribus.commands.rerun import Match, Mismatch, _artefact_table, _number_lines, _result_words, match, rerun_command
from paribus.errors import ConfigurationError
from paribus.pipeline.graph import Node, build_graph
from paribus.pipeline.results import environment_changes
from paribus.store.artifacts import Store
from paribus.store.provenance import git_state
from support.run_config import run_config

DIFF = "diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n"
RECORDED: dict[str, Any] = {
    "paribus": "0.1.0",
    "git": {"commit": "a" * 40, "diff": "", "diff_truncated": False, "untracked": []},
    "packages": {"torch": "2.13.0", "numpy": "2.4.6"},
    "python": "3.11.7",
    "gpu": [],
    "cpu": "AMD EPYC 7763",
    "blas": ["openblas Haswell"],
    "variables": {"OPENBLAS_CORETYPE": "Haswell"},
}


def here(**changed: Any) -> dict[str, Any]:
    return copy.deepcopy(RECORDED) | changed


def test_the_same_environment_has_no_changes() -> None:
    assert environment_changes(RECORDED, here()) == []


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"git": RECORDED["git"] | {"commit": "b" * 40}}, "commit aaaaaaaaaaaa, here bbbbbbbbbbbb"),
        ({"git": RECORDED["git"] | {"diff": DIFF}}, "uncommitted changes in nothing, here in src/a.py"),
        ({"git": None}, "commit aaaaaaaaaaaa, here unknown (no checkout)"),
        ({"packages": {"torch": "2.12.0", "numpy": "2.4.6"}}, "torch 2.13.0, here 2.12.0"),
        ({"packages": {"torch": "2.13.0"}}, "numpy 2.4.6, here absent"),
        ({"python": "3.12.1"}, "Python 3.11.7, here 3.12.1"),
        ({"gpu": ["NVIDIA H200"]}, "GPU none, here NVIDIA H200"),
        ({"cpu": "Intel Xeon"}, "CPU AMD EPYC 7763, here Intel Xeon"),
        ({"blas": ["openblas SkylakeX"]}, "BLAS with kernels of openblas Haswell, here openblas SkylakeX"),
        ({"variables": {}}, "variable OPENBLAS_CORETYPE Haswell, here not set"),
    ],
)
def test_what_changed_is_named_with_both_values(changed: dict[str, Any], line: str) -> None:
    assert environment_changes(RECORDED, here(**changed)) == [line]


@pytest.fixture
def node() -> Node:
    return build_graph(run_config(), Path("cache"))["evaluation"]


def publish(root: Path, node: Node, scores: dict[str, float]) -> Store:
    store = Store(root)
    held = store.claim(node.name, node.key)
    assert held is not None
    with held:
        output = store.empty_output(held, node.name, node.key)
        (output / "metrics.jsonl").write_text(json.dumps({"step": 7, **scores}) + "\n", encoding="utf-8")
        store.publish(held, node.name, node.key, {"key": node.key, "result": {}})
    return store


def test_an_artefact_with_the_same_bytes_is_identical_and_says_how_many_scores_are_equal(
    tmp_path: Path, node: Node
) -> None:
    stores = [publish(tmp_path / name, node, {"bits": 2.0, "accuracy": 0.25}) for name in ("one", "two")]
    found = match(node, *stores)
    assert found.identical
    assert found.files == ()
    assert list(_number_lines(found)) == ["evaluation: 2 of 2 scores equal"]


def test_scores_that_differ_are_listed_with_both_values_and_the_largest_difference_first(
    tmp_path: Path, node: Node
) -> None:
    first = publish(tmp_path / "one", node, {"bits": 2.0, "accuracy": 0.25, "same": 1.0})
    second = publish(tmp_path / "two", node, {"bits": 2.125, "accuracy": 0.75, "same": 1.0})
    found = match(node, first, second)
    assert not found.identical
    assert found.files == ("metrics.jsonl",)
    assert list(_number_lines(found)) == [
        "evaluation: 1 of 3 scores equal",
        "  step 7, accuracy 0.25, again 0.75 (+0.5)",
        "  step 7, bits 2, again 2.125 (+0.125)",
    ]
    shown = Console(file=io.StringIO(), width=120)
    shown.print(_artefact_table([found]))
    assert "differs" in shown.file.getvalue()  # type: ignore[attr-defined]


def test_a_score_that_only_one_side_has_differs_and_a_repeated_nan_does_not(tmp_path: Path, node: Node) -> None:
    first = publish(tmp_path / "one", node, {"bits": math.nan, "gone": 1.0})
    second = publish(tmp_path / "two", node, {"bits": math.nan})
    (difference,) = match(node, first, second).differences
    assert difference.measure == "gone"
    assert difference.size == math.inf


def test_an_artefact_that_was_not_made_again_is_no_match(tmp_path: Path, node: Node) -> None:
    found = match(node, publish(tmp_path / "one", node, {"bits": 1.0}), Store(tmp_path / "two"))
    assert not found.identical
    assert (found.again, list(_number_lines(found))) == (None, [])


def test_help_tells_the_exit_status_and_unknown_words_are_refused(tmp_path: Path) -> None:
    console = Console(file=io.StringIO())
    assert rerun_command(["--help"], console) == 0
    assert "1 some differ or were not made" in console.file.getvalue()  # type: ignore[attr-defined]
    for arguments in (["a", "b"], []):
        with pytest.raises(ConfigurationError, match="one run, by"):
            rerun_command(arguments, console)
    with pytest.raises(ConfigurationError, match=r"'--scores' is not taken here, but root=\.\.\., training\.device="):
        rerun_command(["--scores", f"root={tmp_path}"], console)
    with pytest.raises(ConfigurationError, match=r"'rot=x' is not taken here, .*; did you mean root=x\?"):
        rerun_command(["a", "rot=x"], console)
    with pytest.raises(ConfigurationError, match="no run 'a' below"):
        rerun_command(["a", f"root={tmp_path}"], console)


def test_the_recorded_difference_restores_the_working_tree_whatever_git_is_configured_to_do(tmp_path: Path) -> None:
    def git(*arguments: str, at: Path = tmp_path / "work") -> str:
        command = ["git", "-C", str(at), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    git("init", "-q")
    (work / "src/code.py").write_text("one\n\n\n", encoding="utf-8")
    (work / "src/picture.bin").write_bytes(bytes(range(256)))
    git("add", ".")
    git("commit", "-qm", "x")
    for name, value in {"diff.noprefix": "true", "color.ui": "always", "diff.relative": "true"}.items():
        git("config", name, value)
    (work / "src/code.py").write_text("two\n\n\n", encoding="utf-8")
    (work / "src/picture.bin").write_bytes(bytes(range(255, -1, -1)))
    (work / "forgotten.py").write_text("", encoding="utf-8")
    state = git_state(work / "src/code.py")
    assert state is not None
    assert state["untracked"] == ["forgotten.py"]
    git("clone", "-q", str(work), str(tmp_path / "clone"), at=tmp_path)
    (tmp_path / "recorded.diff").write_text(state["diff"], encoding="utf-8")
    git("apply", str(tmp_path / "recorded.diff"), at=tmp_path / "clone")
    for name in ("code.py", "picture.bin"):
        assert (tmp_path / "clone/src" / name).read_bytes() == (work / "src" / name).read_bytes()


def publish_training(root: Path, computed_on: list[str], loss: float, *, strict: bool = False) -> tuple[Node, Store]:
    config = run_config()
    config = dataclasses.replace(config, training=dataclasses.replace(config.training, deterministic=strict))
    node, store = build_graph(config, Path("cache"))["training"], Store(root)
    held = store.claim(node.name, node.key)
    assert held is not None
    with held:
        output = store.empty_output(held, node.name, node.key)
        line = {"step": 1, "train/loss": loss, "train/gradient_norm": loss**9}
        (output / "metrics.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
        store.publish(held, node.name, node.key, {"key": node.key, "result": {"computed_on": computed_on}})
    return node, store


@pytest.mark.parametrize(
    ("computed_on", "loss", "strict", "word"),
    [
        (["NVIDIA H100 in bf16"], 4.03, False, "losses within 1%"),
        (["NVIDIA H100 in bf16"], 4.05, False, "differs"),
        (["cpu in fp32"], 4.0000001, False, "differs"),
        (["NVIDIA H100 in bf16"], 4.03, True, "differs"),
        (["NVIDIA H100 in bf16"], 4.0, True, "identical"),
    ],
)
def test_what_a_gpu_trained_is_judged_by_its_losses_unless_it_was_deterministic(
    tmp_path: Path, computed_on: list[str], loss: float, strict: bool, word: str
) -> None:
    node, first = publish_training(tmp_path / "one", computed_on, 4.0, strict=strict)
    _, second = publish_training(tmp_path / "two", computed_on, loss, strict=strict)
    found = match(node, first, second)
    assert _result_words(found) == word
    assert found.agrees == (word != "differs")


@pytest.mark.parametrize(
    ("changes", "agrees"),
    [
        ({"losses": 3}, True),
        ({"losses": 3, "differences": (Mismatch("finetuning/qasper/loss", 3, 2.0, 2.01),)}, True),
        ({"losses": 3, "differences": (Mismatch("finetuning/qasper/loss", 3, 2.0, 9.0),)}, False),
        ({"losses": 3, "files": ("contexts.json", "metrics.jsonl")}, False),
        ({"losses": 3, "files": ("readings.npy",)}, False),
        ({"losses": 0, "files": ("items.parquet",)}, False),
    ],
)
def test_what_a_gpu_rounds_agrees_by_its_losses_and_by_what_was_read(changes: dict[str, Any], agrees: bool) -> None:
    found = Match("finetuning", "a" * 12, "b" * 12, rounded=True, **changes)
    assert found.agrees == agrees
