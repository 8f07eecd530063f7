"""A rerun that was stopped goes on in its own root; one that is finished or somebody's is left alone."""

import dataclasses
import errno
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from paribus.checks import compose_command
from paribus.cli import main
from paribus.commands.rerun import CODE_FILE
from paribus.config.arguments import parse
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError
from paribus.pipeline.graph import build_graph
from paribus.pipeline.prepare import prepare
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.recorder import RunRecord
from paribus.pipeline.records import Failure
from paribus.pipeline.root import OutputRoot
from paribus.store.claims import acquire
from paribus.store.provenance import loaded_code
from support.finished_runs import finish


@dataclasses.dataclass
class Reruns:
    """Commands of the same run in turn, which perform nothing but what `end` of a test does."""

    run: PreparedRun
    root: Path
    end: Callable[[RunConfig, Path], None]
    roots: list[str] = dataclasses.field(default_factory=list)

    def again(self, *more: str) -> int:
        return main(["rerun", self.run.run_id, f"root={self.root}", *more])

    def perform(self, config: RunConfig) -> None:
        self.roots.append(config.root)
        self.end(config, self.root.parent)


@pytest.fixture
def reruns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reruns:
    monkeypatch.setattr("paribus.commands.rerun.environment_changes", lambda recorded, here: [])
    overrides = ("scale=tiny", f"root={tmp_path}/root", "tracking=none")
    (run,) = prepare(compose_command(parse(overrides)))
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
    (run,) = prepare(compose_command(parse(("scale=tiny", f"root={root.path}", "tracking=none"))))
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
    reruns.end = finished
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


@pytest.mark.parametrize("content", ["", "{", "[]", '{"code": 3}'])
def test_a_rerun_whose_beginning_cannot_be_read_is_left_alone(content: str, reruns: Reruns) -> None:
    reruns.again()
    (Path(reruns.roots[0]) / CODE_FILE).write_text(content, encoding="utf-8")
    reruns.again()
    assert len({*reruns.roots}) == 2


def test_what_killed_processes_left_without_a_record_is_not_gone_on_with(reruns: Reruns) -> None:
    (reruns.root / "reruns" / f"{reruns.run.run_id}-empty").mkdir(parents=True)
    reruns.again()
    assert not reruns.roots[0].endswith("-empty")


def test_what_other_code_or_packages_began_is_not_gone_on_with(reruns: Reruns, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_machine_that_cannot_make_it_refuses_and_takes_nothing_from_a_stopped_rerun(
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
