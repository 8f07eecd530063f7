"""Bits per byte by step, by tokens and by bytes of text."""

import json
import math
from pathlib import Path

import pytest

from paribus.tracking.events import EventLog, TextAxes

TOKENS, TEXT, LOSS = (0, 100, 220, 300), (0, 250, 500, 750), (0.0, 5.0, 4.0, 3.0)


def told(axes: TextAxes, steps: range) -> dict[str, dict[int, float]]:
    """What follows from the metrics of training at `steps`, by name and step, without those metrics themselves."""
    found: dict[str, dict[int, float]] = {}
    for step in steps:
        given = {"train/loss": LOSS[step], "train/tokens": TOKENS[step], "train/text_bytes": TEXT[step]}
        for name, value in given.items():
            own, *others = axes.points(name, value, step)
            assert own == (name, value, step)
            for other, number, at in others:
                found.setdefault(other, {})[at] = number
    return found


def test_the_loss_of_a_step_is_told_in_bits_of_its_own_text_on_three_axes() -> None:
    found = told(TextAxes(), range(1, 4))
    bits = [LOSS[step] * (TOKENS[step] - TOKENS[step - 1]) / 250 / math.log(2) for step in range(1, 4)]
    assert found == {
        "train/bits_per_byte": pytest.approx(dict(zip((1, 2, 3), bits, strict=True))),
        "bits_per_byte/train_by_tokens": pytest.approx(dict(zip(TOKENS[1:], bits, strict=True))),
        "bits_per_byte/train_by_text_bytes": pytest.approx(dict(zip(TEXT[1:], bits, strict=True))),
    }


def test_a_step_whose_own_text_is_not_known_is_left_out_until_it_is() -> None:
    axes = TextAxes()
    assert told(axes, range(2, 3)) == {}
    assert set(told(axes, range(1, 4))["train/bits_per_byte"]) == {1, 2, 3}


def test_scores_in_bits_per_byte_stand_at_what_training_had_read_by_their_step() -> None:
    axes = TextAxes()
    told(axes, range(1, 4))
    for name, of in (("eval/bits_per_byte", "eval"), ("eval/web/bits_per_byte", "eval_web")):
        assert list(axes.points(name, 2.5, 3)) == [
            (name, 2.5, 3),
            (f"bits_per_byte/{of}_by_tokens", 2.5, 300),
            (f"bits_per_byte/{of}_by_text_bytes", 2.5, 750),
        ]
    assert list(axes.points("eval/bits_per_byte", 2.5, 9)) == [("eval/bits_per_byte", 2.5, 9)]


def test_what_training_said_live_is_not_changed_when_its_metrics_are_read_again(tmp_path: Path) -> None:
    with EventLog(tmp_path / "events.jsonl") as log:
        live, again = TextAxes(), TextAxes()
        for name, value in {"train/tokens": 300, "train/text_bytes": 750, "train/bits_per_byte": 1.5}.items():
            for point in live.points(name, value, 3):
                log.metric(*point)
        for step in (1, 2, 3):
            for name, values in {"train/loss": LOSS, "train/tokens": TOKENS, "train/text_bytes": TEXT}.items():
                for point in again.points(name, values[step], step):
                    log.metric(*point)
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    by_tokens = [
        (event["step"], event["value"]) for event in events if event["name"] == "bits_per_byte/train_by_tokens"
    ]
    assert sorted(step for step, _ in by_tokens) == [100, 220, 300]
    assert (300, 1.5) in by_tokens
