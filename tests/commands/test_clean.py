"""`paribus clean`: no number is lost, and nothing that a run of another root may need goes unasked."""

import json
import re
from pathlib import Path

import pytest

from paribus.cli import main
from support.command_line import OVERRIDES, SWEEP, run_of, training_of

BPE, SCAFFOLD = "bpe standard", "scaffold_lbpe standard"
ROOT = Path("paribus_runs")

pytestmark = pytest.mark.usefixtures("own_sweep")


def files_below(*names: str) -> dict[str, bytes]:
    paths = (path for name in names for path in Path(name).rglob("*") if path.is_file())
    return {path.as_posix(): path.read_bytes() for path in paths}


def recorded() -> dict[str, int]:
    """When each artefact and run was recorded: what is made again has another time."""
    paths = [*ROOT.glob("artifacts/*/*/record.json"), *ROOT.glob("runs/*/run.json")]
    return {path.as_posix(): path.stat().st_mtime_ns for path in paths}


def printed(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert main(list(words)) == status
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_removable_files_are_listed_and_nothing_is_removed_unasked(capsys: pytest.CaptureFixture[str]) -> None:
    before = files_below("paribus_runs")
    listed = printed(capsys, "clean")
    assert "nothing can be removed\n" in listed
    assert all(run_of(ROOT, label) in listed for label in (BPE, SCAFFOLD))
    assert "weights and optimizer states (4)" in printed(capsys, "clean", "last")
    after = files_below("paribus_runs")
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert {name.split("/")[2] for name in changed} <= {"verified", "claims"}


def test_reports_and_results_outlive_weights_and_optimizer_states(capsys: pytest.CaptureFixture[str]) -> None:
    printed(capsys, "report", *SWEEP)
    before, times = files_below("paribus_runs/reports"), recorded()
    removed = printed(capsys, "clean", "last", "--yes")
    assert "removed " in removed and "weights and optimizer states (4)" in removed
    for left in ("step_*/model.safetensors", "state/*"):
        assert list(ROOT.glob(f"artifacts/training/*/{left}")) == []
    printed(capsys, "report", *SWEEP)
    assert files_below("paribus_runs/reports") == before
    assert printed(capsys, "run", *SWEEP).startswith("4 of 4 runs done already")
    assert "damaged: 0" in printed(capsys, "clean", "--verify")
    assert recorded() == times
    assert "nothing can be removed" in printed(capsys, "clean", "last")
    refused = printed(capsys, "export", "last", "model", status=1)
    assert "were removed; `paribus rerun" in refused and str(ROOT / "reruns") in refused


def test_a_training_that_another_run_starts_from_stays(capsys: pytest.CaptureFixture[str]) -> None:
    first = run_of(ROOT, BPE)
    start = (*OVERRIDES, "tokenizer=bpe", "duplicates=embedding", "start=checkpoint", f"start.run={first}")
    resumed = (*start, "start.root=paribus_runs", "start.optimizer=resumed", "budget.tokens=18000", "root=other")
    for run in ((*start, "budget.tokens=2000"), (*resumed, "training.keep_checkpoints=1")):
        printed(capsys, "run", *run)
    assert "removed 0 B" in printed(capsys, "clean", "--yes")
    assert list(training_of(ROOT, BPE).glob("state/*"))
    assert printed(capsys, "run", *resumed, "training.keep_checkpoints=1").startswith("1 of 1 run done already")
    printed(capsys, "clean", first, "--yes")
    assert len(list(training_of(ROOT, BPE).glob("step_*"))) == 4, "a run of this root starts from it"
    assert printed(capsys, "run", *start, "budget.tokens=2000").startswith("1 of 1 run done already")


def test_new_scores_train_again_where_checkpoints_went_and_only_there(capsys: pytest.CaptureFixture[str]) -> None:
    new = (*(word for word in SWEEP if "shots" not in word and "ordering" not in word), "evaluation.shots=[0]")
    printed(capsys, "clean", run_of(ROOT, SCAFFOLD), "--yes")
    plan = json.loads(printed(capsys, "plan", "--json", *new, "ordering=standard"))
    assert [run["training"]["state"] for run in plan["runs"]] == ["cached", "missing"]
    removed = training_of(ROOT, SCAFFOLD) / "record.json"
    before = json.loads(removed.read_text(encoding="utf-8"))["files"]
    done = printed(capsys, "run", *new, "ordering=standard")
    assert (len(re.findall(r"training +cached", done)), len(re.findall(r"training +done", done))) == (1, 1)
    again = json.loads(removed.read_text(encoding="utf-8"))["files"]
    weights = [name for name in before if name.endswith("model.safetensors")]
    assert weights and [again[name] for name in weights] == [before[name] for name in weights]
