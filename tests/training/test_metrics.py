"""The metrics file."""

from pathlib import Path

import pytest

from paribus.training.metrics import MetricsFile


def filled(path: Path, steps: int) -> MetricsFile:
    metrics = MetricsFile(path)
    for step in range(1, steps + 1):
        metrics.append(step, {"train/loss": 1 / step})
    metrics.sync()
    return metrics


@pytest.mark.parametrize("tail", ["", '{"step": 4, "train/lo', "null\n", '{"step": 9}\n'])
def test_only_whole_lines_in_sequence_count(tail: str, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics = filled(path, 3)
    whole = path.read_text()
    path.write_text(whole + tail)
    assert metrics.complete_steps() == 3
    metrics.truncate(3)
    assert path.read_text() == whole
    assert metrics.recent("train/loss") == 1 / 3


def test_a_line_can_be_read_as_soon_as_it_is_appended(tmp_path: Path) -> None:
    metrics = MetricsFile(tmp_path / "metrics.jsonl")
    for step in range(1, 4):
        metrics.append(step, {"train/loss": 1.0})
        assert MetricsFile(metrics.path).complete_steps() == step
    metrics.truncate(2)
    metrics.append(3, {"train/loss": 0.5})
    metrics.sync()
    assert metrics.recent("train/loss") == 0.5
    assert metrics.complete_steps() == 3


def test_truncation_to_an_earlier_step_drops_the_later_lines(tmp_path: Path) -> None:
    metrics = filled(tmp_path / "metrics.jsonl", 5)
    metrics.truncate(2)
    assert metrics.complete_steps() == 2
    metrics.truncate(0)
    assert metrics.path.read_text() == ""


def test_a_recent_metric_is_the_mean_of_the_last_twentieth_of_the_steps(tmp_path: Path) -> None:
    metrics = MetricsFile(tmp_path / "metrics.jsonl")
    for step in range(1, 41):
        metrics.append(step, {"train/loss": float(step)})
    assert metrics.recent("train/loss") == 39.5


def test_a_count_is_read_at_the_step_that_is_resumed_whatever_came_after_it(tmp_path: Path) -> None:
    metrics = MetricsFile(tmp_path / "metrics.jsonl")
    for step, skipped in enumerate([0, 1, 1, 2], start=1):
        metrics.append(step, {"train/skipped_steps": skipped} if skipped else {})
    assert [metrics.at(step, "train/skipped_steps") for step in range(6)] == [0, 0, 1, 1, 2, 0]
