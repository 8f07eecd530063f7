"""Names of sweeps and runs, what each stands for; and torn records, events, notes and caches, which are rewritten."""

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from paribus.checks import compose_command
from paribus.commands.rerun import rerun_command
from paribus.commands.status import show_status, status_document
from paribus.config.arguments import parse
from paribus.config.compose import Job
from paribus.config.groups.execution import SweepConfig
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError, DataError
from paribus.pipeline.display import Display
from paribus.pipeline.failures import failed_before
from paribus.pipeline.graph import build_graph
from paribus.pipeline.prepare import prepare_runs
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.recorder import RunRecord
from paribus.pipeline.records import SWEEP_RECORD, find, find_run_id, last_sweep, read_run_record, read_sweeps
from paribus.pipeline.results import collect
from paribus.pipeline.root import OutputRoot
from paribus.pipeline.standings import STAGES_FILE, announce, write_stages
from paribus.store import files
from paribus.store.artifacts import Store
from paribus.store.files import RUN_RECORD, FileDigests
from paribus.tokenization.existing import open_existing
from paribus.tracking.events import EventLog
from support.recorded_sweeps import OVERRIDES, identifiers, record_command, record_sweep

ARMS = ("-m", "tokenizer=bpe,scaffold_bpe", "encoder=merge_rank,longest_first", "seed=0,1")


@pytest.fixture(scope="module", name="directory")
def _directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sweeps")
    (directory / "texts.txt").write_text("some text", encoding="utf-8")
    return directory


@pytest.fixture(scope="module", name="sweep")
def _sweep(directory: Path) -> tuple[Path, str, list[str]]:
    """Root, identifier and runs of a sweep of four arms with two seeds each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        identifier, runs = record_sweep(directory / "root", *ARMS)
    return directory / "root", identifier, identifiers(runs)


def test_identifiers_their_beginnings_names_and_last_mean_sweeps_and_runs(sweep: tuple[Path, str, list[str]]) -> None:
    root, identifier, runs = sweep
    for name in (identifier, identifier[:9], "last", "tokenizer-encoder"):
        assert (find(name, root).sweep.id, find(name, root).run) == (identifier, None)
    for run in runs:
        assert [one.run_id for one in find(run[:12], root).runs] == [run]
        assert find_run_id(run[:12], root) == run


@pytest.mark.parametrize("place", [None, 3])
def test_the_command_of_what_is_named_makes_the_same_runs(
    sweep: tuple[Path, str, list[str]], directory: Path, monkeypatch: pytest.MonkeyPatch, place: int | None
) -> None:
    monkeypatch.chdir(directory)
    root, _, runs = sweep
    found = find("last" if place is None else runs[place], root)
    made = prepare_runs(compose_command(found.command), tolerate_missing=True)
    assert identifiers(made) == [run.run_id for run in found.runs] == (runs if place is None else [runs[place]])


def test_unknown_and_ambiguous_names_are_refused_with_the_known_ones(sweep: tuple[Path, str, list[str]]) -> None:
    root, identifier, runs = sweep
    with pytest.raises(
        ConfigurationError, match=rf"no run or sweep 'nothing' below .*; there are\n  {identifier}  sweep"
    ):
        find("nothing", root)
    with pytest.raises(ConfigurationError, match="is several runs; name one:") as raised:
        find_run_id(identifier, root)
    assert [line.split()[0] for line in str(raised.value).splitlines()[1:]] == runs


def test_the_same_run_in_two_sweeps_is_one_run_and_last_is_the_command_given_last(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory)
    first, runs = record_sweep(tmp_path, "-m", "tokenizer=bpe,scaffold_bpe")
    second, _ = record_sweep(tmp_path, "tokenizer=bpe")
    last = last_sweep(tmp_path)
    assert last is not None
    assert last.sweep.id == second != first
    assert find(runs[0].run_id[:8], tmp_path).runs[0].run_id == runs[0].run_id
    record_sweep(tmp_path, "-m", "tokenizer=bpe,scaffold_bpe")
    assert [sweep.id for sweep in read_sweeps(tmp_path)] == [first, second]


def test_no_password_of_a_tracker_is_written_down(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory)
    uri = "tracking.uri='http://me:secret-word@localhost:5000'"
    words = [text for text in OVERRIDES if text != "tracking=none"]
    words += [f"root={tmp_path}", "tracking=mlflow", uri]
    identifier, _ = record_command(parse(words))
    text = (tmp_path / "sweeps" / identifier / SWEEP_RECORD).read_text(encoding="utf-8")
    assert "secret-word" not in text
    assert "tracking.uri='http://localhost:5000'" in json.loads(text)["overrides"]


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def another_object(path: Path) -> None:
    path.write_text('{"status": "done", "stages": 3, "class": [], "files": 1}\n', encoding="utf-8")


TEARS = (cut, empty, zeros, another_object)
Tear = Callable[[Path], None]
SWEEP = SweepConfig(id="0" * 16, name="sweep", invocation="once", jobs=2)


@pytest.fixture(scope="module")
def composed() -> RunConfig:
    return compose_command(parse(["scale=tiny", "corpus=pydocs_small", "tracking=none"])).jobs[0].config


@pytest.fixture
def run(composed: RunConfig, tmp_path: Path) -> PreparedRun:
    config = dataclasses.replace(composed, root=str(tmp_path), sweep=SWEEP)
    return PreparedRun(Job((), config), build_graph(config, tmp_path / "cache"))


@pytest.fixture
def layout(run: PreparedRun) -> OutputRoot:
    return OutputRoot.of(run.job.config)


def shown(run: PreparedRun) -> str:
    console = Console(record=True, width=300)
    document = status_document([run])
    assert not document["done"]
    show_status(document, console)
    return console.export_text()


@pytest.mark.parametrize("tear", TEARS)
def test_a_torn_record_of_a_run_is_named_and_written_again(run: PreparedRun, layout: OutputRoot, tear: Tear) -> None:
    recorder = RunRecord(run.job.config, run.nodes, layout)
    recorder.finish(None)
    path = recorder.directory / RUN_RECORD
    tear(path)
    unreadable = "is of another version of paribus, or damaged"
    assert unreadable in shown(run) and "unreadable" in shown(run)
    records, (missing,) = collect([run], ["encoder"], layout)
    assert records == [] and str(path) in missing.reason and unreadable in missing.reason
    with pytest.raises(ConfigurationError, match=unreadable):
        rerun_command([run.run_id, f"root={layout.path}"], Console())
    with pytest.raises((DataError, ConfigurationError), match=r"run\.json|nothing yet"):
        open_existing(recorder.directory)
    RunRecord(run.job.config, run.nodes, layout).finish(None)
    again = read_run_record(recorder.directory)
    assert again is not None and again["status"] == "done" and again["run_id"] == run.run_id


@pytest.mark.parametrize("tear", TEARS)
def test_torn_events_are_skipped_and_said_again(run: PreparedRun, layout: OutputRoot, tear: Tear) -> None:
    recorder = RunRecord(run.job.config, run.nodes, layout)
    recorder.metric("train/loss", 1.0, 3)
    recorder.finish(None)
    path = recorder.directory / "events.jsonl"
    before = {line.split('"event": ', 1)[1] for line in path.read_text(encoding="utf-8").splitlines()}
    tear(path)
    again = RunRecord(run.job.config, run.nodes, layout)
    again.metric("train/loss", 1.0, 3)
    again.finish(None)
    with EventLog(path) as log:
        assert len(log.problems) == (tear is not empty)
    lines = [line for line in path.read_bytes().splitlines() if b'"event": ' in line]
    said = {line.split(b'"event": ', 1)[1].decode() for line in lines if line.endswith(b"}") and line.startswith(b"{")}
    parameters = {line for line in before if "parameter" in line or "metric" in line}
    assert parameters <= said


@pytest.mark.parametrize("tear", TEARS)
def test_a_torn_note_or_list_of_stages_hinders_nothing(run: PreparedRun, layout: OutputRoot, tear: Tear) -> None:
    node = run.nodes["corpus"]
    note = layout.failure(node)
    note.parent.mkdir(parents=True)
    failure = {"class": "data", "message": "a file", "stage": "corpus", "invocation": "once"}
    files.write_json(note, failure)
    assert failed_before(node, layout) == failure
    tear(note)
    assert failed_before(node, layout) is None
    write_stages(layout, SWEEP, [run])
    tear(layout.sweep(SWEEP.id) / STAGES_FILE)
    announce(layout, run.job.config, Display(Console()))


@pytest.mark.parametrize("tear", TEARS)
def test_a_torn_cache_is_made_again(tmp_path: Path, tear: Tear) -> None:
    source, cache = tmp_path / "source.txt", tmp_path / "cache"
    source.write_text("some text", encoding="utf-8")
    os.utime(source, (1e9, 1e9))
    digest = FileDigests(cache).of(source)
    (entry,) = cache.iterdir()
    whole = json.loads(entry.read_text(encoding="utf-8"))
    tear(entry)
    assert FileDigests(cache).of(source) == digest
    assert json.loads(entry.read_text(encoding="utf-8")) == whole


@pytest.mark.parametrize("tear", TEARS)
def test_a_torn_memory_of_what_was_sound_is_not_believed(tmp_path: Path, tear: Tear) -> None:
    store, key = Store(tmp_path), "f" * 64
    held = store.claim("corpus", key)
    assert held is not None
    with held:
        (store.empty_output(held, "corpus", key) / "data").write_text("content", encoding="utf-8")
        store.publish(held, "corpus", key, {"result": {}})
    memory = store.memory("corpus", key).path
    tear(memory)
    assert store.find("corpus", key) is not None
    tear(memory)
    (store.path("corpus", key) / "data").write_text("Content", encoding="utf-8")
    assert store.damage("corpus", key) == "data differs from its digest"
