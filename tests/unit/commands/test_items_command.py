"""The verb `paribus items`, of a finished sweep whose answers and texts are known."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from paribus.cli import main
from paribus.config.arguments import parse
from paribus.config.flags import VALUES_OF_A_VERB, known_flags
from paribus.errors import ConfigurationError
from support import finished_runs
from support.recorded_sweeps import OVERRIDES, finished_sweep
from support.tables import write_scores

pytestmark = pytest.mark.usefixtures("undrawn")

SWEEP = ("-m", "training.learning_rate=0.001,0.002", "seed=0,1")
BOOLQ = "".join(
    json.dumps({"id": f"boolq-{item:04d}", "query": f"Question {item} \x1b[31m?", "choices": ["no", "yes"], "gold": 1})
    + "\n"
    for item in range(40)
)
HELDOUT = "".join(json.dumps({"id": f"doc-{item:03d}", "text": f"document {item}"}) + "\n" for item in range(40))


@pytest.fixture(scope="module", autouse=True)
def _finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("finished")
    (directory / "texts.txt").write_text("some text", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        patch.setenv("COLUMNS", "100")
        finished_sweep(directory / "made", *SWEEP, texts={"boolq.jsonl": BOOLQ, "heldout.jsonl": HELDOUT})
        yield directory


def told(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert main(["items", *words]) == status
    found = capsys.readouterr()
    return found.out if status == 0 else found.out + found.err


def test_the_last_sweep_in_numbers_is_what_the_report_says(capsys: pytest.CaptureFixture[str]) -> None:
    shown = told(capsys)
    assert "A: 0.001, B: 0.002" in shown
    assert all(name in shown for name in ("boolq", "piqa", "heldout", "both right", "only A", "B fewer"))
    assert main(["report", "--json"]) == 0
    cells = json.loads(capsys.readouterr().out)["rows"][1]["cells"]
    found = json.loads(told(capsys, "--json"))
    for task in found["tasks"]:
        name = {"heldout": "bits_per_byte"}.get(task["task"], f"{task['task']}/mean")
        (pair,) = task["pairs"]
        assert pair["difference"] == pytest.approx(cells[name]["difference"], abs=1e-12)
        if task["kind"] == "right":
            assert pair["answers"] == 40 * 2 * 2 * 5
            apart = pair["better_row"] - pair["better_baseline"]
            assert apart / pair["answers"] == pytest.approx(cells[name]["difference"], abs=1e-12)


def test_items_of_a_task_have_their_texts_and_the_answers_of_each_arm(capsys: pytest.CaptureFixture[str]) -> None:
    shown = told(capsys, "--task", "boolq", "--limit", "3")
    assert shown.count("✓ yes") == 3 and "of 20 right" in shown and "3 of 40 items" in shown
    assert "\x1b[31m" not in shown and "\\x1b[31m?" in shown
    one = told(capsys, "last", "--task=boolq", "--shots", "5", "--checkpoint", "last", "--all")
    assert one.count("✓ yes") == 40 and "of 2 right" in one
    assert told(capsys, "--task", "heldout", "--limit", "1").count("document ") == 1


def test_a_run_alone_has_items_too(capsys: pytest.CaptureFixture[str]) -> None:
    (run, _) = json.loads(told(capsys, "--json"))["rows"][0]["runs"]
    shown = told(capsys, run[:8], "--task", "boolq", "--limit", "1")
    assert "answered worst first" in shown and "of 10 right" in shown


def test_the_file_has_all_items_of_all_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "items.parquet"
    assert f"{path}: 4,000 lines" in told(capsys, "--file", str(path))
    found = pd.read_parquet(path)
    assert len(found) == 4 * 5 * (2 * 2 * 40 + 40)
    assert set(found["training.learning_rate"]) == {"0.001", "0.002"}
    assert set(found[found.task == "boolq"].question) == {f"Question {item} \x1b[31m?" for item in range(40)}
    path = tmp_path / "items.csv"
    document = json.loads(told(capsys, "--file", str(path), "--task", "piqa", "--json"))
    assert [task["task"] for task in document["tasks"]] == ["piqa"]
    assert set(pd.read_csv(path).task) == {"piqa"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--task", "bolq"], "--task: 'bolq' is unknown; did you mean 'boolq'? known: boolq, piqa, heldout"),
        (["--task", "boolq", "--shots", "two"], "--shots two: give a whole number, 0 or more"),
        (
            ["--task", "boolq", "--shots", "2"],
            "--shots 2: boolq: no answers with so many examples in the prompt; there are 0, 5",
        ),
        (["--shots", "2"], "--shots 2: no answers with so many examples in the prompt; there are 0, 5"),
        (
            ["--task", "heldout", "--shots", "2"],
            "--shots 2: heldout: no answers with so many examples in the prompt; there are none",
        ),
        (["--task", "boolq", "--checkpoint", "77"], "--checkpoint 77: was not scored; there are last, 0, 1, 2, 3, 4"),
        (["--task", "boolq", "--limit", "0"], "--limit 0: give a whole number, 1 or more"),
        (["--task", "boolq", "--better", "0.003"], "--better '0.003' is no row; there are '0.001', '0.002'"),
        (["--task", "boolq", "--better", "0"], "--better '0' may be several rows"),
        (["--limit", "3"], "--limit is of the items of a task: say --task"),
        (["--all"], "--all is of the items of a task: say --task"),
        (["--task", "boolq", "--all", "--limit", "3"], "--all and --limit do not go together"),
        (["--task"], "--task needs a value: TASK"),
        (["--task", "boolq", "--task", "piqa"], "--task is given twice"),
        (["--file", "items.xlsx"], "--file items.xlsx: a name ends in .parquet, .csv, .jsonl"),
        (["--file", "nowhere/items.csv"], "there is no directory"),
        (["--file", "a\x1bb.csv"], "which no name may have"),
        (["nothing_like_it"], "no run, arm or sweep 'nothing_like_it'"),
        (["--why"], "--why is no flag of paribus items: it is one of paribus report"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert message in told(capsys, *words, status=2)


def test_runs_that_are_not_scored_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("-m", *OVERRIDES, "training.learning_rate=0.001,0.002", "seed=0,7")
    shown = told(capsys, *words, status=1)
    assert "left out, 0.001: seed 7: not started" in shown
    document = json.loads(told(capsys, *words, "--json", status=1))
    assert [run["reason"] for run in document["missing"]] == ["seed 7: not started"] * 2
    assert "no finished run was found" in told(capsys, *OVERRIDES, "seed=9", status=2)


def test_an_artefact_with_texts_that_is_gone_is_named_and_the_answers_stay(
    _finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(_finished / "paribus_runs", tmp_path / "root")
    (tasks,) = (tmp_path / "root/artifacts/tasks").iterdir()
    shutil.rmtree(tasks)
    shown = told(capsys, f"root={tmp_path}/root", "--task", "boolq")
    assert "boolq-00" in shown and "of 20 right" in shown and "✓" not in shown
    assert f"no texts: {tasks} is gone" in shown
    assert "until=tasks makes it again" in shown


def test_scores_that_are_gone_are_named_and_the_others_stay(
    _finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(_finished / "paribus_runs", tmp_path / "root")
    (run, _) = json.loads(told(capsys, "--json"))["rows"][0]["runs"]
    record = json.loads((tmp_path / "root/runs" / run / "run.json").read_text(encoding="utf-8"))
    shutil.rmtree(tmp_path / "root/artifacts/evaluation" / record["stages"]["evaluation"]["key"])
    shown = told(capsys, f"root={tmp_path}/root", "--task", "boolq", status=1)
    assert f"left out, 0.001: run {run} (seed 0): its evaluation is gone" in shown
    assert "of 10 right" in shown and "of 20 right" in shown
    shutil.rmtree(tmp_path / "root/artifacts/evaluation")
    assert "none of these runs has scores" in told(capsys, f"root={tmp_path}/root", "--task", "boolq", status=2)


def test_items_that_some_run_cut_are_listed_and_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts.txt").write_text("some text", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    cut = [["boolq-0003"], []]

    def write(directory: Path, *scores: Any, **more: Any) -> Path:
        about = {"boolq": {"truncated_items": {"0": cut.pop(), "5": []}}}
        return write_scores(directory, *scores, statistics={"heldout": {}, "tasks": about}, **more)

    monkeypatch.setattr(finished_runs, "write_scores", write)
    finished_sweep(tmp_path / "made", "-m", "tokenizer=bpe,scaffold_bpe")
    found = json.loads(told(capsys, "--task", "boolq", "--all", "--json"))
    assert [(task["items"], task["left_out"]) for task in found["tasks"]] == [(39, 1)]
    assert [item["item"] for item in found["items"] if item["left_out"]] == ["boolq-0003"]
    assert len(found["items"]) == 40
    assert "boolq: 1 of 40 items are left out of the table" in told(capsys)
    told(capsys, "--file", "items.parquet")
    lines = pd.read_parquet("items.parquet")
    assert set(lines[lines.left_out].item) == {"boolq-0003"} and set(lines[lines.left_out].task) == {"boolq"}


def test_nothing_is_written_below_the_root(_finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in sorted(_finished.rglob("*")) if path.is_file()}
    told(capsys, "--task", "boolq")
    told(capsys, "--json")
    assert before == {path: path.stat().st_mtime_ns for path in sorted(_finished.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("flag", VALUES_OF_A_VERB["items"])
def test_a_flag_with_a_value_is_read_in_both_spellings(flag: str) -> None:
    for words in ([flag, "x1"], [f"{flag}=x1"]):
        command = parse(["last", *words], "items")
        assert (command.value(flag), command.overrides) == ("x1", ("last",))
    assert flag not in known_flags("report")


def test_a_field_that_people_mean_by_a_flag_of_this_verb_stays_the_one_that_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"evaluation\.limit=3"):
        parse(["--limit", "3"], "run")
