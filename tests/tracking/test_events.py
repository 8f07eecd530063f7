"""The event file of a run, without any tracker: nothing is written twice, torn, lost or with a password."""

import errno
import json
import math
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from paribus.commands.report import correct_numbers
from paribus.config.groups.execution import TrackingConfig
from paribus.errors import ConfigurationError
from paribus.tracking import events
from paribus.tracking import events as events_module
from paribus.tracking.destination import Destination, public_uri
from paribus.tracking.events import EventLog, EventReader, TextAxes, complete_size


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "run" / "events.jsonl"


def lines(path: Path, event: str = "") -> list[dict[str, Any]]:
    """The lines of this kind, or all."""
    written = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in written if event in ("", line["event"])]


def metrics(path: Path) -> list[tuple[str, float]]:
    return [(line["name"], line["value"]) for line in lines(path, "metric")]


def write_run(path: Path, steps: int, status: str = "") -> None:
    with EventLog(path) as log:
        log.start("run", "a run", None, {"uri": None})
        log.parameter("seed", 0)
        for step in range(steps):
            log.metric("loss", step / 2, step)
        if status:
            log.end(status)


def test_the_same_command_again_appends_nothing(path: Path) -> None:
    write_run(path, 5, "finished")
    before = path.read_bytes()
    write_run(path, 5, "FINISHED")
    assert path.read_bytes() == before


def test_a_resumed_run_adds_only_the_steps_it_lacks_and_the_first_value_wins(path: Path) -> None:
    write_run(path, 3)
    with EventLog(path) as log:
        log.metric("loss", 99.0, 2)
        log.metric("loss", 1.5, 3)
        log.parameter("seed", 1)
    assert [(line["step"], line["value"]) for line in lines(path, "metric")] == [(0, 0.0), (1, 0.5), (2, 1.0), (3, 1.5)]
    assert [line["value"] for line in lines(path, "parameter")] == [0]


def test_a_changed_artifact_or_tag_is_logged_again(path: Path, tmp_path: Path) -> None:
    with EventLog(path) as log:
        for content in ("1", "1", "2"):
            (tmp_path / "table.md").write_text(content)
            log.artifact(tmp_path / "table.md", "tables")
            log.tag("rows", content)
    assert [line["path"] for line in lines(path, "artifact")] == ["../../table.md"] * 2
    assert [line["value"] for line in lines(path, "tag")] == ["1", "2"]


# Writers that are killed, or write at once, or to a disk that fails


def test_a_torn_last_line_is_reported_and_the_log_goes_on(path: Path) -> None:
    write_run(path, 3)
    os.truncate(path, path.stat().st_size - 7)
    reader = EventReader(path)
    assert [event.fields["step"] for event in reader.poll() if event.event == "metric"] == [0, 1]
    assert reader.torn > 0
    assert complete_size(path) == reader.offset
    with EventLog(path) as log:
        assert "torn" in log.problems[0]
        log.metric("loss", 1.0, 2)
    assert [event.fields["step"] for event in reader.poll()] == [2]
    assert [problem.partition(": ")[0] for problem in reader.problems] == [f"{path}:5"]


def hammer(path: Path, worker: int) -> None:
    with EventLog(path) as log:
        for step in range(500):
            log.metric(f"worker_{worker}", step, step)
            log.metric("shared", step, step)


def test_four_processes_write_whole_lines_and_every_event_is_read_once(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=hammer, args=(path, worker)) for worker in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    reader = EventReader(path)
    events = reader.poll()
    assert reader.problems == []
    assert len({(event.fields["name"], event.fields["step"]) for event in events}) == len(events) == 2500


def write_for_ever(path: Path) -> None:
    with EventLog(path) as log:
        for step in range(10**9):
            log.metric("loss", 0.0, step)


def test_a_killed_writer_loses_nothing_it_had_logged(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    writer = multiprocessing.get_context("spawn").Process(target=write_for_ever, args=(path,))
    writer.start()
    while complete_size(path) < 100_000:
        assert writer.is_alive()
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    steps = [event.fields["step"] for event in EventReader(path).poll()]
    assert steps == list(range(len(steps)))


def fail(*arguments: object) -> NoReturn:
    raise OSError(errno.EIO, "no answer")


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda log: log.metric("loss", 2.0, 2), [(1, 1.0), (2, 2.0)]),
        (lambda log: log.correct({("loss", 1): 2.0}, lambda name, step: False), [(1, 1.0), (1, 2.0)]),
    ],
    ids=["metric", "correction"],
)
def test_a_line_that_could_not_be_written_is_written_when_it_is_logged_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[EventLog], None], expected: list[tuple[int, float]]
) -> None:
    with EventLog(path) as log:
        log.metric("loss", 1.0, 1)
        with monkeypatch.context() as patched:
            patched.setattr(events_module.os, "write", fail)
            with pytest.raises(OSError, match="no answer"):
                write(log)
        write(log)
    assert [(line["step"], line["value"]) for line in lines(path)] == expected


def test_a_line_that_a_full_disk_cut_spoils_no_other(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    with EventLog(path) as log:
        with monkeypatch.context() as patched:
            patched.setattr(events_module.os, "write", lambda descriptor, data: write(descriptor, data[:20]))
            with pytest.raises(OSError, match=r"only 20 of \d+ bytes were written: '.*events\.jsonl'"):
                log.metric("loss", 1.0, 1)
        log.metric("loss", 1.0, 1)
        log.metric("loss", 2.0, 2)
    reader = EventReader(path)
    assert [event.fields["step"] for event in reader.poll()] == [1, 2]
    assert len(reader.problems) == 1


# Numbers of stages that were made again


def test_metrics_of_a_repeated_stage_correct_the_log(path: Path) -> None:
    with EventLog(path) as log:
        log.metric("eval/acc", 0.5, 10)
    for _ in range(2):
        with EventLog(path) as log:
            log.metric("eval/acc", 0.125, 10)
            log.correct({("eval/acc", 10): 0.25, ("eval/f1", 10): 1.0}, lambda name, step: False)
            log.metric("eval/acc", 0.125, 10)
    assert metrics(path) == [("eval/acc", 0.5), ("eval/acc", 0.25), ("eval/f1", 1.0)]
    assert [line.get("corrects") for line in lines(path)] == [None, True, None]
    assert [event.fields["value"] for event in EventReader(path).poll()] == [0.5, 0.25, 1.0]


def test_metrics_absent_from_a_repeated_stage_become_nan(path: Path, tmp_path: Path) -> None:
    for _ in range(2):
        with EventLog(path) as log:
            log.metric("eval/acc", 0.5, 10)
            log.metric("train/loss", 2.0, 10)
            log.correct({("eval/f1", 10): 1.0}, lambda name, step: name.startswith("eval/"))
    assert metrics(path) == [("eval/acc", 0.5), ("train/loss", 2.0), ("eval/acc", "NaN"), ("eval/f1", 1.0)]
    table = tmp_path / "table.jsonl"
    for numbers in ({"table/a": 1.0, "table/b": 2.0}, {"table/b": 3.0}):
        with EventLog(table) as log:
            log.metric("loss", 1.0, 0)
            correct_numbers(log, numbers)
    assert metrics(table)[3:] == [("table/a", "NaN"), ("table/b", 3.0)]


# Addresses of trackers


PUBLIC = {
    "postgresql://user:pa/ss@host:5432/db": "postgresql://host:5432/db",
    "postgresql+psycopg2://user:pa?ss@host/db": "postgresql+psycopg2://host/db",
    "mysql+pymysql://user:p@s/s@host/db?options=a@b": "mysql+pymysql://host/db",
    "postgresql://us/er:pass@host/db": "postgresql://host/db",
    "postgresql:/user:pass@host/db": "postgresql:/host/db",
    "postgresql://host/db?user=me&password=a@b": "postgresql://host/db",
    "postgres://user:pa/ss@host/db": "postgres://host/db",
    "http://user:pa/ss@host:5000/x": "http://host:5000/x",
    "https://user:pa?ss@host/x": "https://host/x",
    "https://user:pa@ss@host:5000/a@b/c": "https://host:5000/a@b/c",
    "http://[::1]:5000/a@b?password=x": "http://[::1]:5000/a@b",
    "sqlite:////a@b:c/mlflow.db": "sqlite:////a@b:c/mlflow.db",
    "sqlite:////a b/mlflow.db?timeout=3": "sqlite:////a b/mlflow.db",
}


def test_no_part_of_a_password_is_kept_of_a_uri_and_no_path_is_cut(tmp_path: Path) -> None:
    assert {uri: public_uri(uri) for uri in PUBLIC} == PUBLIC
    for place, (uri, public) in enumerate(PUBLIC.items()):
        path = tmp_path / f"{place}.jsonl"
        with EventLog(path) as log:
            log.start("run", "a run", None, {"uri": uri})
        assert lines(path)[0]["tracking"] == {"uri": public}


def test_a_uri_that_mlflow_cannot_open_or_whose_password_is_not_quoted_is_refused(tmp_path: Path) -> None:
    def refusal(uri: str) -> str:
        with pytest.raises(ConfigurationError, match=r"tracking\.uri") as error:
            Destination.resolve(TrackingConfig(kind="mlflow", uri=uri), tmp_path)
        return str(error.value)

    for uri in ("file:///tmp/mlruns", "mlruns", "sqlite://", "ftp://host/x"):
        refusal(uri)
    for uri in ("http://user:pa/ss@host:5000", "https://user:pa?ss@host", "http://user:pa#ss@host/x"):
        message = refusal(uri)
        assert "write / as %2F" in message
        assert "ss@" not in message and "user:" not in message


# Bits per byte by step, by tokens and by bytes of text

TOKENS, TEXT, LOSS = (0, 100, 220, 300), (0, 250, 500, 750), (0.0, 5.0, 4.0, 3.0)


def derived(axes: TextAxes, steps: range) -> dict[str, dict[int, float]]:
    """What follows from the metrics of training at `steps`, by name and step, without those metrics themselves."""
    points: dict[str, dict[int, float]] = {}
    for step in steps:
        given = {"train/loss": LOSS[step], "train/tokens": TOKENS[step], "train/text_bytes": TEXT[step]}
        for name, value in given.items():
            own, *others = axes.points(name, value, step)
            assert own == (name, value, step)
            for other, number, at in others:
                points.setdefault(other, {})[at] = number
    return points


def test_the_loss_of_a_step_is_logged_in_bits_of_its_own_text_on_three_axes() -> None:
    bits = [LOSS[step] * (TOKENS[step] - TOKENS[step - 1]) / 250 / math.log(2) for step in range(1, 4)]
    assert derived(TextAxes(), range(1, 4)) == {
        "train/bits_per_byte": pytest.approx(dict(zip((1, 2, 3), bits, strict=True))),
        "bits_per_byte/train_by_tokens": pytest.approx(dict(zip(TOKENS[1:], bits, strict=True))),
        "bits_per_byte/train_by_text_bytes": pytest.approx(dict(zip(TEXT[1:], bits, strict=True))),
    }
    axes = TextAxes()  # that knows the own text of a step only once it has read the step before
    assert derived(axes, range(2, 3)) == {}
    assert set(derived(axes, range(1, 4))["train/bits_per_byte"]) == {1, 2, 3}


def test_scores_in_bits_per_byte_stand_at_what_training_had_read_by_their_step() -> None:
    axes = TextAxes()
    derived(axes, range(1, 4))
    for name, of in (("eval/bits_per_byte", "eval"), ("eval/web/bits_per_byte", "eval_web")):
        assert list(axes.points(name, 2.5, 3)) == [
            (name, 2.5, 3),
            (f"bits_per_byte/{of}_by_tokens", 2.5, 300),
            (f"bits_per_byte/{of}_by_text_bytes", 2.5, 750),
        ]
    assert list(axes.points("eval/bits_per_byte", 2.5, 9)) == [("eval/bits_per_byte", 2.5, 9)]


def test_a_correction_is_later_than_what_it_corrects_whatever_the_clock(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EventLog(path) as log:
        log.metric("a", 1.0, 1)
    monkeypatch.setattr(events.time, "time_ns", lambda: 0)
    with EventLog(path) as log:
        log.correct({("a", 1): 2.0}, lambda name, step: False)
    first, second = EventReader(path).poll()
    assert second.time > first.time
