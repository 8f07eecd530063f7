"""Where `paribus export` says that the checkpoints of a pruned run are, or how they are made again."""

import json
import shlex
import shutil
from pathlib import Path

import pytest

from paribus.cli import main
from paribus.pipeline.output_root import OutputRoot, named_root
from paribus.pipeline.prepared_run import PreparedRun
from support.recorded_sweeps import finished_sweep

CHECKPOINT = "step_00000001/w"


@pytest.fixture(name="run", params=["paribus_runs", "my runs"])
def _run(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PreparedRun:
    """A finished run of the usual root or of another, whose training has a checkpoint."""
    monkeypatch.chdir(tmp_path)
    Path("texts.txt").write_text("some text", encoding="utf-8")
    (found,) = finished_sweep(tmp_path / "made", f"root='{request.param}'")
    store, place = root_of(found).store, found.nodes["training"].place
    held = store.claim(*place)
    assert held is not None
    with held:
        store.remove(held, *place)
        output = store.empty_output(held, *place)
        (output / CHECKPOINT).parent.mkdir()
        (output / CHECKPOINT).write_text("w", encoding="utf-8")
        store.publish(held, *place, {"result": {}, "provenance": {}})
    return found


def root_of(run: PreparedRun) -> OutputRoot:
    return OutputRoot.of(run.job.config)


def made_again(run: PreparedRun, name: str) -> Path:
    """The root of a rerun that finished."""
    root, again = root_of(run).path, root_of(run).path / "reruns" / f"{run.run_id}-{name}"
    for part in ("artifacts", "runs"):
        shutil.copytree(root / part, again / part)
    return again


def stopped_before_training(run: PreparedRun, again: Path) -> None:
    """What a kill in an earlier stage leaves."""
    shutil.rmtree(again / "artifacts/training")
    path = again / "runs" / run.run_id / "run.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    stages = {name: stage for name, stage in record["stages"].items() if name == "corpus"}
    path.write_text(json.dumps(record | {"status": "interrupted", "stages": stages}), encoding="utf-8")


def pruned(run: PreparedRun, root: OutputRoot) -> None:
    store, place = root.store, run.nodes["training"].place
    held = store.claim(*place)
    assert held is not None
    with held:
        store.prune(held, *place, [CHECKPOINT], readable=False)


def suggested(run: PreparedRun, capsys: pytest.CaptureFixture[str], *more: str) -> list[str]:
    """The command between backticks, as the shell takes it."""
    assert main(["export", run.run_id, "model", *more, f"root={root_of(run).path}"]) == 1
    told = capsys.readouterr().err
    assert f"the checkpoints of run {run.run_id} were pruned; " in told
    return shlex.split(told.split("`")[1])


def test_a_rerun_is_named_only_where_it_has_the_training(
    run: PreparedRun, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    whole = made_again(run, "aaaa")
    stopped_before_training(run, made_again(run, "bbbb"))
    pruned(run, OutputRoot(made_again(run, "cccc"), 60.0))
    (made_again(run, "dddd") / "runs" / run.run_id / "run.json").write_text("{", encoding="utf-8")
    pruned(run, root_of(run))
    assert suggested(run, capsys) == ["paribus", "export", run.run_id, "model", f"root={whole}"]
    assert suggested(run, capsys, "step=3") == ["paribus", "export", run.run_id, "model", "step=3", f"root={whole}"]


def test_where_no_rerun_has_it_the_command_that_makes_it_is_named(
    run: PreparedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped_before_training(run, made_again(run, "aaaa"))
    pruned(run, root_of(run))
    root = root_of(run).path
    own = [] if root == named_root(None).path else [f"root={root}"]
    assert suggested(run, capsys) == ["paribus", "rerun", run.run_id, *own]
