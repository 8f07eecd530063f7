"""`paribus rerun`: what changed and matched, what goes on in its own root, and what is refused."""

import copy
import dataclasses
import errno
import io
import json
import math
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from paribus.checks import compose_command
from paribus.cli import main
from paribus.commands.rerun import CODE_FILE, Match, Mismatch, _artefact_table, _number_lines, _result_words, match
from paribus.config.arguments import parse
from paribus.config.groups.training import TrainingConfig
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError
from paribus.pipeline.failures import Failure
from paribus.pipeline.graph import Node, build_graph
from paribus.pipeline.prepare import prepare_runs
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.recorder import RunRecord
from paribus.pipeline.results import environment_changes
from paribus.pipeline.root import OutputRoot
from paribus.store.artifacts import Store
from paribus.store.claims import acquire
from paribus.store.provenance import loaded_code
from support.command_line import command
from support.finished_runs import finish
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


def environment_here(**changed: Any) -> dict[str, Any]:
    return copy.deepcopy(RECORDED) | changed


def test_changes_of_the_environment_are_named_with_both_values() -> None:
    changes: list[tuple[dict[str, Any], str]] = [
        ({"git": RECORDED["git"] | {"commit": "b" * 40}}, "commit aaaaaaaaaaaa, here bbbbbbbbbbbb"),
        ({"git": RECORDED["git"] | {"diff": DIFF}}, "uncommitted changes in nothing, here in src/a.py"),
        ({"git": None}, "commit aaaaaaaaaaaa, here unknown (no checkout)"),
        ({"packages": {"torch": "2.12.0"}}, "numpy 2.4.6, here absent torch 2.13.0, here 2.12.0"),
        ({"python": "3.12.1"}, "Python 3.11.7, here 3.12.1"),
        ({"gpu": ["NVIDIA H200"]}, "GPU none, here NVIDIA H200"),
        ({"cpu": "Intel Xeon"}, "CPU AMD EPYC 7763, here Intel Xeon"),
        ({"blas": ["openblas SkylakeX"]}, "BLAS with kernels of openblas Haswell, here openblas SkylakeX"),
        ({"variables": {}}, "variable OPENBLAS_CORETYPE Haswell, here not set"),
    ]
    assert [" ".join(environment_changes(RECORDED, environment_here(**changed))) for changed, _ in changes] == [
        line for _, line in changes
    ]
    assert list(environment_changes(RECORDED, environment_here())) == []


@pytest.fixture
def node() -> Node:
    return build_graph(run_config(), Path("cache"))["evaluation"]


def publish(root: Path, node: Node, scores: dict[str, float], **result: object) -> Store:
    store = Store(root)
    held = store.claim(node.name, node.key)
    assert held is not None
    with held:
        output = store.empty_output(held, node.name, node.key)
        (output / "metrics.jsonl").write_text(json.dumps({"step": 7, **scores}) + "\n", encoding="utf-8")
        store.publish(held, node.name, node.key, {"key": node.key, "result": result})
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
    assert (difference.measure, difference.size) == ("gone", math.inf)


def test_an_artefact_that_was_not_made_again_is_no_match(tmp_path: Path, node: Node) -> None:
    found = match(node, publish(tmp_path / "one", node, {"bits": 1.0}), Store(tmp_path / "two"))
    assert not found.identical
    assert (found.again, list(_number_lines(found))) == (None, [])


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
def test_a_training_on_a_gpu_is_judged_by_its_losses_unless_it_was_deterministic(
    tmp_path: Path, computed_on: list[str], loss: float, strict: bool, word: str
) -> None:
    config = run_config(training=TrainingConfig(deterministic=strict))
    training = build_graph(config, Path("cache"))["training"]
    first, second = (
        publish(
            tmp_path / str(number),
            training,
            {"train/loss": loss, "train/gradient_norm": loss**9},
            computed_on=computed_on,
        )
        for number, loss in enumerate((4.0, loss))
    )
    compared = match(training, first, second)
    assert _result_words(compared) == word
    assert compared.agrees == (word != "differs")


def test_artefacts_of_a_gpu_agree_by_their_losses_and_by_the_text_that_was_read() -> None:
    near, far = (Mismatch("finetuning/qasper/loss", 3, 2.0, loss) for loss in (2.01, 9.0))
    cases: list[tuple[dict[str, Any], bool]] = [
        ({"losses": 3}, True),
        ({"losses": 3, "differences": (near,)}, True),
        ({"losses": 3, "differences": (far,)}, False),
        ({"losses": 3, "differences": (Mismatch("eval/bits_per_byte", 3, 2.0, 9.0),)}, False),
        ({"losses": 3, "files": ("contexts.json", "metrics.jsonl")}, False),
        ({"losses": 3, "files": ("readings.npy",)}, False),
        ({"losses": 0, "files": ("items.parquet",)}, False),
    ]
    matches = [Match("finetuning", "a" * 12, "b" * 12, rounded=True, **changes) for changes, _ in cases]
    assert [each.agrees for each in matches] == [agrees for _, agrees in cases]


def test_a_run_made_again_from_nothing_has_the_same_bytes(own_sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Even where the record names a device that this machine lacks, once `training.device` is given anew."""
    run = min((own_sweep / "paribus_runs/runs").iterdir())
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    record["config"]["training"]["device"] = "cuda:7"
    (run / "run.json").write_text(json.dumps(record), encoding="utf-8")
    assert main(["rerun", run.name]) == 2
    assert "training.device: cuda:7 is asked for" in capsys.readouterr().err
    assert not list((own_sweep / "paribus_runs/reruns").iterdir())
    # In another interpreter, whose sets are in another order.
    again = subprocess.check_output(command(["rerun", run.name, "training.device=cpu"]), text=True)
    assert again.count("identical") >= 7 and "differs" not in again


@dataclasses.dataclass
class Reruns:
    """Repeated `paribus rerun` of one run, where `finish` takes the place of its stages."""

    run: PreparedRun
    root: Path
    finish: Callable[[RunConfig, Path], None]
    roots: list[str] = dataclasses.field(default_factory=list)

    def again(self, *more: str) -> int:
        return main(["rerun", self.run.run_id, f"root={self.root}", *more])

    def perform(self, config: RunConfig) -> None:
        self.roots.append(config.root)
        self.finish(config, self.root.parent)


@pytest.fixture
def reruns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reruns:
    monkeypatch.setattr("paribus.commands.rerun.environment_changes", lambda recorded, here: [])
    overrides = ("scale=tiny", f"root={tmp_path}/root", "tracking=none")
    (run,) = prepare_runs(compose_command(parse(overrides)))
    finish(run, 0, tmp_path / "made")
    found = Reruns(run, tmp_path / "root", stopped)
    monkeypatch.setattr("paribus.commands.rerun.JobFunction", lambda code: found.perform)
    monkeypatch.setattr("paribus.commands.rerun._report", lambda original, again, console: 0)
    return found


def stopped(config: RunConfig, made: Path) -> None:
    root = OutputRoot.of(config)
    RunRecord(config, build_graph(config, root.cache), root).finish(Failure("interrupted", "stopped", "training"))
    raise KeyboardInterrupt


def finished(config: RunConfig, made: Path) -> None:
    root = OutputRoot.of(config)
    (run,) = prepare_runs(compose_command(parse(("scale=tiny", f"root={root.path}", "tracking=none"))))
    finish(run, 1, made / f"made_{root.path.name}")


def test_a_stopped_rerun_goes_on_and_a_finished_one_is_followed_by_another(
    reruns: Reruns, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reruns.again() == 130
    assert "going on" not in capsys.readouterr().out
    assert reruns.again() == 130
    assert (
        f"going on with {reruns.roots[0]}, which was not finished; remove it to begin from nothing"
        in capsys.readouterr().out
    )
    reruns.finish = finished
    assert reruns.again() == 0
    capsys.readouterr()
    assert reruns.again() == 0
    assert "going on" not in capsys.readouterr().out
    first, second, third, fourth = reruns.roots
    assert first == second == third != fourth


def test_a_rerun_of_other_devices_or_of_another_process_is_left_alone(reruns: Reruns) -> None:
    reruns.again()
    reruns.again("training.device=cpu")
    (on_a_device,) = {*reruns.roots} - {reruns.roots[0]}
    begun = OutputRoot(Path(reruns.roots[0]), 60.0)
    claim = acquire(begun.run_claim(reruns.run.run_id), begun.lease_seconds)
    assert claim is not None
    with claim:
        reruns.again()
    assert len({*reruns.roots}) == 3
    reruns.again("training.device=cpu")
    assert reruns.roots[-1] == on_a_device
    reruns.again()
    assert reruns.roots[-1] == reruns.roots[2], "the last one of two that were stopped"


def test_a_full_disk_leaves_no_root_behind(
    reruns: Reruns, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(path: Path, content: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr("paribus.commands.rerun.files.write_json", full)
    assert reruns.again() == 1
    assert "the disk is full" in capsys.readouterr().err
    assert not reruns.roots and not list((reruns.root / "reruns").iterdir())


def test_a_rerun_with_an_unreadable_rerun_json_is_not_resumed(reruns: Reruns) -> None:
    reruns.again()
    for content in ("", "{", "[]", '{"code": 3}'):
        (Path(reruns.roots[-1]) / CODE_FILE).write_text(content, encoding="utf-8")
        reruns.again()
    assert len({*reruns.roots}) == 5


def test_a_rerun_begun_by_other_code_or_packages_is_not_continued(
    reruns: Reruns, monkeypatch: pytest.MonkeyPatch
) -> None:
    reruns.again()
    here = loaded_code()
    upgraded = dataclasses.replace(here, packages={**here.packages, "torch": "0.1"})
    with monkeypatch.context() as later:
        later.setattr("paribus.commands.rerun.loaded_code", lambda: upgraded)
        reruns.again()
        reruns.again()
    reruns.again()
    before, after, again, back = reruns.roots
    assert before != after == again and back == before


def test_a_refusal_leaves_a_stopped_rerun_as_it_was(
    reruns: Reruns, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reruns.again()

    def refuse(config: RunConfig, stages: Sequence[str]) -> None:
        raise ConfigurationError("training.device: cuda:0 is not here")

    monkeypatch.setattr("paribus.commands.rerun.check", refuse)
    assert reruns.again() == 2
    assert "cuda:0 is not here" in capsys.readouterr().err
    assert len(reruns.roots) == 1
    assert [str(path) for path in (reruns.root / "reruns").iterdir()] == reruns.roots


FILES = "corpus.files"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PreparedRun:
    """A finished run on twenty files, whose names are long enough that no line has room for two digests."""
    monkeypatch.setattr("paribus.commands.rerun.environment_changes", lambda recorded, here: [])
    for number in range(20):
        (tmp_path / f"a_file_of_the_corpus_{number:02}.txt").write_text(f"text {number}", encoding="utf-8")
    overrides = ("scale=tiny", "corpus=files", f"corpus.paths=[{tmp_path}/*.txt]", f"root={tmp_path}/root")
    (found,) = prepare_runs(compose_command(parse([*overrides, "tracking=none"])))
    finish(found, 0, tmp_path / "made")
    return found


def test_files_that_are_gone_are_a_refusal(
    run: PreparedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in tmp_path.glob("*.txt"):
        path.unlink()
    root = OutputRoot.of(run.job.config).path
    assert main(["rerun", run.run_id, f"root={root}"]) == 2
    assert "the pattern matches no file" in capsys.readouterr().err
    assert not (root / "reruns").exists()


def test_the_file_that_changed_is_named_wherever_it_stands(
    run: PreparedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a_file_of_the_corpus_17.txt").write_text("other text", encoding="utf-8")
    assert main(["rerun", run.run_id, f"root={tmp_path}/root"]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if FILES in line]
    assert line.count("a_file_of_the_corpus_17.txt") == 2
    assert line.count("a_file_of_the_corpus") == 2
