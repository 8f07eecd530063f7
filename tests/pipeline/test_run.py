"""What the runner does around a stage: provenance, records, files that change, file servers that do not answer."""

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from paribus.config.groups.corpus import FilesCorpus
from paribus.config.groups.execution import SweepConfig
from paribus.errors import DataError, FullDiskError, InfrastructureError
from paribus.pipeline import run as running
from paribus.pipeline import source_files
from paribus.pipeline.display import Display
from paribus.pipeline.recorder import RunRecord, read_state
from paribus.pipeline.results import environment
from paribus.pipeline.root import OutputRoot
from paribus.pipeline.run import JobFunction, RunListener, StageRunner, run_nodes
from paribus.pipeline.source_files import SourceFiles
from paribus.store.artifacts import Artifact, Store
from paribus.store.files import State
from paribus.store.provenance import loaded_code
from paribus.tracking.events import EventReader
from support.plans import PreparedRun, planned_run, run_stages_here


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "texts" / "some.jsonl"
    path.parent.mkdir()
    path.write_text('{"text": "some text"}\n', encoding="utf-8")
    return path


@pytest.fixture
def run(tmp_path: Path, source: Path) -> PreparedRun:
    return planned_run(tmp_path / "root", corpus=FilesCorpus(paths=(str(source),)))


def stages(run: PreparedRun, recorder: Any = None) -> StageRunner:
    layout = OutputRoot.of(run.job.config)
    recorder = recorder or RunRecord(run.job.config, run.nodes, layout)
    return StageRunner(layout, RunListener(Display(Console(file=None, quiet=True)), recorder.directory, recorder))


def test_a_file_changed_meanwhile_is_named(run: PreparedRun, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def grows(job: dict[str, Any]) -> None:
        (Path(job["work"]) / "read_before").touch()
        with source.open("a", encoding="utf-8") as file:
            file.write('{"text": "more"}\n')

    run_stages_here(monkeypatch, grows)
    node, store = run.nodes["corpus"], OutputRoot.of(run.job.config).store
    with pytest.raises(DataError, match=r"^some\.jsonl changed while the stage corpus read it, so nothing is"):
        stages(run).ensure(node)
    assert store.find("corpus", node.key) is None
    assert not list(store.root.glob("partial/*/*"))


def test_a_file_that_changed_before_is_named(run: PreparedRun, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began = run_stages_here(monkeypatch)
    node, store = run.nodes["corpus"], OutputRoot.of(run.job.config).store
    work = store.work(node.name, node.key)
    (work / "read_before").touch()
    source.write_text('{"text": "another"}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"^some\.jsonl changed since the command began"):
        stages(run).ensure(node)
    assert began == []
    assert (work / "read_before").exists()


def test_a_file_server_that_does_not_answer_is_asked_again(run: PreparedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    look, absences = SourceFiles._look, iter([True, False, True, True, False])

    def look_if_there(self: SourceFiles) -> tuple[str, dict[str, State]]:
        if next(absences):
            raise OSError(errno.EIO, "Input/output error")
        return look(self)

    monkeypatch.setattr(SourceFiles, "_look", look_if_there)
    monkeypatch.setattr(source_files, "SECONDS_UNTIL_ASKED_AGAIN", (0.0, 0.0))
    run_stages_here(monkeypatch)
    assert stages(run).ensure(run.nodes["corpus"]).record()["result"] == {"documents": 1}
    assert next(absences, None) is None


def test_an_artefact_published_meanwhile_is_not_made_again(run: PreparedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    began = run_stages_here(monkeypatch)
    node = run.nodes["corpus"]
    stages(run).ensure(node)
    find, looks = Store.find, []

    def find_late(self: Store, stage: str, key: str) -> Artifact | None:
        looks.append(stage)
        return None if len(looks) == 1 else find(self, stage, key)

    monkeypatch.setattr(Store, "find", find_late)
    stages(run).ensure(node)
    assert began == ["corpus"]


def test_work_of_a_killed_attempt_is_gone_on_with(run: PreparedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(job: dict[str, Any]) -> None:
        (Path(job["work"]) / "part").touch()
        raise KeyboardInterrupt

    with monkeypatch.context() as killing:
        run_stages_here(killing, killed)
        killing.setattr(SourceFiles, "touched", lambda self, before: "")
        with pytest.raises(KeyboardInterrupt):
            stages(run).ensure(run.nodes["corpus"])
    found: list[bool] = []
    run_stages_here(monkeypatch, lambda job: found.append((Path(job["work"]) / "part").exists()))
    stages(run).ensure(run.nodes["corpus"])
    assert found == [True]


@pytest.mark.parametrize("ending", ["fails", "done", "killed"])
def test_work_on_other_contents_is_never_gone_on_with_also_if_the_file_is_put_back(
    run: PreparedRun, source: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    original, times = source.read_text(encoding="utf-8"), source.stat()

    def put(text: str) -> None:
        source.unlink()
        source.write_text(text, encoding="utf-8")
        os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))

    def reads_wrong_text(job: dict[str, Any]) -> None:
        put("x" * len(original))
        (Path(job["work"]) / "part").write_text("of wrong text", encoding="utf-8")
        if ending == "fails":
            raise InfrastructureError("killed from outside")
        put(original)
        if ending == "killed":
            monkeypatch.setattr(SourceFiles, "touched", lambda self, before: "")
            raise KeyboardInterrupt

    looks = SourceFiles.touched
    run_stages_here(monkeypatch, reads_wrong_text)
    node = run.nodes["corpus"]
    with pytest.raises((InfrastructureError, KeyboardInterrupt, DataError)):
        stages(run).ensure(replace(node, config=replace(run.job.config, retries=0)))
    put(original)
    monkeypatch.setattr(SourceFiles, "touched", looks)
    found: list[bool] = []
    run_stages_here(monkeypatch, lambda job: found.append((Path(job["work"]) / "part").exists()))
    stages(run).ensure(node)
    assert found == [False]


def test_the_record_counts_gpus_and_no_time_of_waiting(run: PreparedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]

    @contextlib.contextmanager
    def slots(*_: Any) -> Iterator[dict[str, str]]:
        clock[0] += 100
        yield {"CUDA_VISIBLE_DEVICES": "0,2,3"}

    monkeypatch.setattr(running, "reserve_gpus", slots)
    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    run_stages_here(monkeypatch, lambda job: clock.__setitem__(0, clock[0] + 7))
    record = stages(run).ensure(run.nodes["corpus"]).record()
    assert (record["gpus"], record["seconds"]) == (3, 7)


def test_all_attempts_that_made_an_artefact_are_compared(run: PreparedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training that a kill cut in two may be made with two versions of a package."""
    node = run.nodes["training"]
    runner_of_stages = stages(run)
    run_stages_here(monkeypatch)
    for other in ("corpus", "vocabulary", "tokens", "order", "contexts"):
        runner_of_stages.ensure(run.nodes[other])

    def attempt(version: str, *, leaves: str | None = None) -> dict[str, Any]:
        def works(job: dict[str, Any]) -> None:
            if leaves is not None:
                (Path(job["work"]) / leaves).touch()
                raise KeyboardInterrupt

        monkeypatch.setattr(running, "provenance", lambda: {"packages": {"torch": version}, "python": "3.11.7"})
        run_stages_here(monkeypatch, works)
        if leaves is None:
            return dict(runner_of_stages.ensure(node).record())
        with pytest.raises(KeyboardInterrupt):
            runner_of_stages.ensure(node)
        return {}

    attempt("2.11.0", leaves="part")
    attempt("2.12.0", leaves="part")
    attempt("2.11.0", leaves="part")
    found = attempt("2.13.0")
    assert [entry["torch"] for entry in found["attempts"]] == ["2.11.0", "2.12.0"]
    compared = environment({"code_versions": {}}, {"training": {**found, "result": {}}})
    assert compared["packages.training.torch"] == "2.11.0, then 2.12.0, then 2.13.0"


def test_an_artefact_made_again_corrects_its_numbers_once(run: PreparedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    layout, node = OutputRoot.of(run.job.config), run.nodes["corpus"]
    for made in ({"eval/acc": {1: 0.5, 2: 0.5}}, {"eval/acc": {1: 0.25}}, {"eval/acc": {1: 0.25}}):
        recorder = RunRecord(run.job.config, run.nodes, layout)
        working = stages(run, recorder)

        def measures(job: dict[str, Any], working: StageRunner = working, made: Any = made) -> None:
            working.listener.recorder.metric("train/tokens_per_second", 1000.0, 1)
            for name, values in made.items():
                for step, value in values.items():
                    working.listener.metric(name, value, step=step)

        run_stages_here(monkeypatch, measures)
        working.ensure(node)
        working.ensure(node)
        shutil.rmtree(layout.store.path(node.name, node.key))
    events = EventReader(recorder.directory / "events.jsonl").poll()
    metrics = [
        tuple(event.fields[key] for key in ("name", "step", "value")) for event in events if event.event == "metric"
    ]
    assert metrics == [
        ("train/tokens_per_second", 1, 1000.0),
        ("eval/acc", 1, 0.5),
        ("eval/acc", 2, 0.5),
        ("eval/acc", 2, "NaN"),
        ("eval/acc", 1, 0.25),
    ]


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (FullDiskError("the disk is full"), 1),
        (OSError(errno.ENOSPC, "No space left on device"), 1),
        (InfrastructureError("the machine failed"), 3),
    ],
)
def test_a_failure_that_may_pass_is_tried_again_and_a_full_disk_is_not(
    run: PreparedRun, monkeypatch: pytest.MonkeyPatch, error: Exception, tries: int
) -> None:
    def fails(job: dict[str, Any]) -> None:
        raise error

    tried = run_stages_here(monkeypatch, fails)
    node = replace(run.nodes["corpus"], config=replace(run.job.config, retries=2))
    with pytest.raises(type(error)):
        stages(run).ensure(node)
    assert len(tried) == tries


def test_a_job_that_composes_another_run_runs_nothing(run: PreparedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    layout, planned = OutputRoot.of(run.job.config), replace(run.job.config, seed=7)
    sweep = SweepConfig(id="s", name="s", invocation="once", jobs=1, run=run.run_id)
    JobFunction(loaded_code())(replace(planned, sweep=sweep))
    assert not (layout.path / "runs").exists()
    state = read_state(layout, run)
    assert state.status == "failed"
    assert state.failure is not None
    assert f"this job was to be run {run.run_id}: a file of the configuration" in state.failure.message
    run_stages_here(monkeypatch)
    monkeypatch.setattr(RunRecord, "_log_numbers", lambda self: None)
    JobFunction(loaded_code())(replace(run.job.config, sweep=sweep))
    assert not layout.refusal(run.run_id).exists()


def test_a_failure_is_noted_until_the_stage_succeeds_and_an_exit_is_none(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = planned_run(tmp_path / "root", corpus=FilesCorpus(paths=(str(source),)))
    layout = OutputRoot.of(run.job.config)
    node = replace(run.nodes["corpus"], config=replace(run.job.config, retries=0))

    def ending(error: BaseException) -> Callable[[Any], object]:
        def work(job: Any) -> object:
            raise error

        return work

    for error, noted in ((SystemExit(1), False), (InfrastructureError("x"), True)):
        run_stages_here(monkeypatch, ending(error))
        with pytest.raises(type(error)):
            stages(run).ensure(node)
        assert layout.failure(node).exists() is noted
    run_stages_here(monkeypatch)
    stages(run).ensure(node)
    assert not layout.failure(node).exists()


def test_tokens_that_training_would_refuse_stop_the_run_before_text_is_encoded(
    run: PreparedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = run_stages_here(monkeypatch)
    monkeypatch.setattr(running, "check_tokens", lambda config, path: [("start", "has other tokens")])
    failure = run_nodes(run.nodes, stages(run))
    assert failure is not None and (failure.stage, failure.failure_class) == ("vocabulary", "configuration")
    assert "vocabulary" in made and "tokens" not in made
