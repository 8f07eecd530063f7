"""What a tracker's list of runs has of a run: its name among others, who gave it, and its scores."""

import getpass
import hashlib
import io
import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from paribus.config.groups.execution import SweepConfig
from paribus.pipeline import prepared
from paribus.pipeline.display import Display
from paribus.pipeline.recorder import RunRecord, table_numbers
from paribus.pipeline.records import read_sweeps
from paribus.pipeline.root import OutputRoot
from paribus.pipeline.run import perform
from paribus.store import files
from paribus.store.artifacts import read_record, write_record
from paribus.store.provenance import built_from, git_state, loaded_code
from support.recorded_sweeps import OVERRIDES, finished_sweep, record

pytestmark = pytest.mark.usefixtures("beside_text")

ARMS = ("-m", "tokenizer=bpe,scaffold_bpe", "seed=0,1")


def events(root: Path, *words: str) -> list[dict[str, Any]]:
    """What the log of the last run of a command says after it began, as its job begins it."""
    sweep, runs = record(root, *words)
    sweep_config = SweepConfig(id=sweep, name="a sweep", invocation="1", jobs=len(runs))
    config = replace(runs[-1].job.config, sweep=sweep_config)
    recorder = RunRecord(config, runs[-1].nodes, OutputRoot.of(config))
    recorder.events.close()
    lines = (recorder.directory / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def tags(log: list[dict[str, Any]]) -> dict[str, str]:
    return {event["name"]: event["value"] for event in log if event["event"] == "tag"}


def test_a_run_is_named_by_what_differs_in_its_sweep(tmp_path: Path) -> None:
    names = {ARMS: "scaffold_bpe seed=1", ("seed=1",): "bpe-merge_rank-standard-seed1"}
    for words, name in names.items():
        (start,) = [event for event in events(tmp_path / "root", *words) if event["event"] == "start"]
        assert start["name"] == name


def test_the_first_line_of_a_run_names_its_arm(tmp_path: Path) -> None:
    names = {
        ("-m", "arm=bpe,lbpe", "seed=0,1"): "lbpe seed=1  bpe-longest_first-standard-seed1",
        ("-m", "pretokenizer=spans_1,spans_3"): "spans_3  bpe-merge_rank-standard-spans_3-seed0",
        ("encoder=longest_first",): "bpe-longest_first-standard-seed0",
    }
    for words, name in names.items():
        identifier, runs = record(tmp_path / "root", *words)
        sweep = SweepConfig(id=identifier, name="a sweep", invocation="1", jobs=len(runs), number=len(runs))
        config = replace(runs[-1].job.config, sweep=sweep)
        console = Console(file=io.StringIO(), width=200)
        files.write_text(OutputRoot.of(config).stop_mark(sweep), "so that nothing is made")
        assert perform(config, Display(console), loaded_code()) is None
        first = console.file.getvalue().splitlines()[0]  # type: ignore[attr-defined]
        assert first == f"run {len(runs)} of {len(runs)}  {name}  {runs[-1].run_id}"


def test_a_run_has_its_command_its_user_and_the_commit(tmp_path: Path) -> None:
    root = tmp_path / "root"
    found = tags(events(root, *ARMS))
    assert shlex.split(found["paribus.command"]) == ["paribus", "run", "-m", *OVERRIDES, f"root={root}", *ARMS[1:]]
    assert found["mlflow.user"] == getpass.getuser()
    git = git_state(Path(prepared.__file__)) or built_from() or {}
    assert found.get("mlflow.source.git.commit") == git.get("commit")
    assert ("mlflow.source.git.dirty" in found) == bool(git.get("diff") or git.get("changes"))


def test_a_run_has_its_sweep_and_the_held_out_text_that_it_is_scored_on(tmp_path: Path) -> None:
    runs = finished_sweep(tmp_path / "made", *ARMS, texts={"heldout.jsonl": '{"id": "a", "text": "b"}\n'})
    (sweep,) = read_sweeps(Path("paribus_runs"))
    sweep_config = SweepConfig(id=sweep.id, name=sweep.name, invocation="1", jobs=len(runs))
    found = []
    for run in runs:
        recorder = RunRecord(replace(run.job.config, sweep=sweep_config), run.nodes, OutputRoot.of(run.job.config))
        recorder.finish(None)
        log = (recorder.directory / "events.jsonl").read_text(encoding="utf-8").splitlines()
        found.append(tags([json.loads(line) for line in log]))
    assert {each["paribus.sweep"] for each in found} == {f"{sweep.name} {sweep.id}"}
    content = hashlib.sha256(b'{"id": "a", "text": "b"}\n').hexdigest()
    assert {each["paribus.heldout"] for each in found} == {content[:12]}


def test_the_same_command_again_tells_nothing_again(tmp_path: Path) -> None:
    assert events(tmp_path / "root", *ARMS) == events(tmp_path / "root", *ARMS)


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
