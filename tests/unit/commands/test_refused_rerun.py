"""What `paribus rerun` says of files that are gone or changed: it refuses, and names those that differ."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from paribus.checks import compose_command
from paribus.cli import main
from paribus.commands.rerun import MOST_ENTRIES, causes_of_other_keys
from paribus.config.arguments import parse
from paribus.pipeline.graph import build_graph
from paribus.pipeline.prepare import prepare
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.records import read_run_record
from paribus.pipeline.root import OutputRoot
from support.finished_runs import finish

FILES = "corpus.files"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PreparedRun:
    """A finished run on twenty files, whose names are long enough that no line has room for two digests."""
    monkeypatch.setattr("paribus.commands.rerun.environment_changes", lambda recorded, here: [])
    for number in range(20):
        (tmp_path / f"a_file_of_the_corpus_{number:02}.txt").write_text(f"text {number}", encoding="utf-8")
    overrides = ("scale=tiny", "corpus=files", f"corpus.paths=[{tmp_path}/*.txt]", f"root={tmp_path}/root")
    (found,) = prepare(compose_command(parse([*overrides, "tracking=none"])))
    finish(found, 0, tmp_path / "made")
    return found


def told(run: PreparedRun) -> Sequence[str]:
    config = run.job.config
    root = OutputRoot.of(config)
    record = read_run_record(root.run(run.run_id))
    assert record is not None
    return list(causes_of_other_keys(record, config, build_graph(config, root.cache)))


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


@pytest.mark.parametrize(
    ("change", "sides"),
    [
        (lambda path: (path / "new.txt").write_text("new", encoding="utf-8"), (" absent", "new.txt 3 ")),
        (lambda path: (path / "a_file_of_the_corpus_03.txt").unlink(), ("a_file_of_the_corpus_03.txt 6 ", "absent")),
    ],
)
def test_a_file_more_or_less_is_absent_on_one_side(
    change: Callable[[Path], None], sides: tuple[str, str], run: PreparedRun, tmp_path: Path
) -> None:
    change(tmp_path)
    (line,) = [line for line in told(run) if FILES in line]
    shown = line.partition(", here ")
    assert sides[0] in shown[0] and sides[1] in shown[2]
    assert "a_file_of_the_corpus_04" not in line


def test_of_many_files_some_are_named_and_the_rest_counted(run: PreparedRun, tmp_path: Path) -> None:
    for path in tmp_path.glob("*.txt"):
        path.write_text("other text", encoding="utf-8")
    (line,) = [line for line in told(run) if FILES in line]
    assert line.count("a_file_of_the_corpus") == 2 * MOST_ENTRIES
    assert line.count(f", {20 - MOST_ENTRIES} more") == 2


def test_a_field_that_is_no_list_is_shown_as_it_is(run: PreparedRun) -> None:
    config = run.job.config
    other = dataclasses.replace(config, training=dataclasses.replace(config.training, learning_rate=0.5))
    lines = told(dataclasses.replace(run, job=dataclasses.replace(run.job, config=other)))
    assert lines == [f"training.learning_rate {config.training.learning_rate}, here 0.5"]
