"""What a run tells a tracker of itself: its command, who gave it, and its scores."""

import getpass
import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from paribus.config.groups.execution import SweepConfig
from paribus.pipeline import prepared
from paribus.pipeline.recorder import RunRecord, table_numbers
from paribus.pipeline.root import OutputRoot
from paribus.store.artifacts import read_record, write_record
from paribus.store.provenance import built_from, git_state
from support.recorded_sweeps import OVERRIDES, finished_sweep, record

pytestmark = pytest.mark.usefixtures("beside_text")

ARMS = ("-m", "tokenizer=bpe,scaffold_bpe", "seed=0,1")


def test_a_run_has_its_command_its_user_and_the_commit(tmp_path: Path) -> None:
    root = tmp_path / "root"
    sweep, runs = record(root, *ARMS)
    sweep_config = SweepConfig(id=sweep, name="a sweep", invocation="1", jobs=len(runs))
    config = replace(runs[-1].job.config, sweep=sweep_config)
    recorder = RunRecord(config, runs[-1].nodes, OutputRoot.of(config))
    recorder.events.close()
    lines = (recorder.directory / "events.jsonl").read_text(encoding="utf-8").splitlines()
    tags = {event["name"]: event["value"] for event in map(json.loads, lines) if event["event"] == "tag"}
    assert shlex.split(tags["paribus.command"]) == ["paribus", "run", "-m", *OVERRIDES, f"root={root}", *ARMS[1:]]
    assert tags["mlflow.user"] == getpass.getuser()
    git = git_state(Path(prepared.__file__)) or built_from() or {}
    assert tags.get("mlflow.source.git.commit") == git.get("commit")
    assert ("mlflow.source.git.dirty" in tags) == bool(git.get("diff") or git.get("changes"))


def test_scores_are_among_the_numbers_that_a_finished_run_logs_at_its_last_step(tmp_path: Path) -> None:
    (run,) = finished_sweep(tmp_path / "made", "seed=1")
    store, node = OutputRoot.of(run.job.config).store, run.nodes["evaluation"]
    place = store.path(node.name, node.key)
    content = read_record(place)
    content["result"]["metrics"] = {"eval/bits_per_byte": 0.7, "eval/boolq/0shot/acc": 0.5}
    write_record(place, content)
    numbers, step = table_numbers({name: {"key": node.key} for name, node in run.nodes.items()}, store)
    assert ({name: value for name, value in numbers.items() if "/" not in name}, step) == (
        {"bits_per_byte": 0.7, "boolq": 0.5},
        125,
    )
