"""Bits per byte against what was read: numbers of a run that a tracker can draw over tokens and over bytes of text.

A tracker's axis is the step, which counts different amounts of text in runs with different tokenizers. So every number
in bits per byte is told three times: by training step as `train/bits_per_byte`, and in the section `bits_per_byte`,
which MLflow shows first, as `train_by_tokens` and `train_by_text_bytes`, whose steps are tokens and bytes of text read.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

LOSS, TOKENS, TEXT_BYTES = "train/loss", "train/tokens", "train/text_bytes"
TRAINING_BITS = "train/bits_per_byte"
SECTION = "bits_per_byte"
AXES = {TOKENS: "by_tokens", TEXT_BYTES: "by_text_bytes"}

Point = tuple[str, float, int]
"""Name, value, step."""


def bits_per_byte(loss: float, tokens: float, text_bytes: float) -> float:
    """From nats a token to bits a byte of the text that the tokens stand for; NaN for no text."""
    return loss * tokens / (text_bytes * math.log(2)) if text_bytes else math.nan


@dataclass
class TextAxes:
    """The points that follow from the metrics of a run, given one by one; it remembers what was read by each step."""

    _seen: dict[str, dict[int, float]] = field(default_factory=lambda: {LOSS: {}, TOKENS: {}, TEXT_BYTES: {}})

    def points(self, name: str, value: float, step: int) -> Iterator[Point]:
        """The metric itself and, where they can be known, its bits per byte by step, by tokens and by text bytes."""
        yield name, value, step
        if name in self._seen:
            self._seen[name][step] = value
        if name == TEXT_BYTES:
            yield from self._training(step)
        if name.endswith(f"/{SECTION}"):
            yield from self._against_text(name, value, step)

    def left_over(self, points: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
        """Which of these names and steps stand at an amount of text that no step read: a training before had others."""
        read = {f"_{axis}": set(self._seen[amount].values()) for amount, axis in AXES.items()}
        shown = ((name, step) for name, step in points if name.startswith(f"{SECTION}/"))
        return {
            (name, step)
            for name, step in shown
            if any(name.endswith(ending) and step not in amounts for ending, amounts in read.items())
        }

    def _training(self, step: int) -> Iterator[Point]:
        """Of a step of which the one before is known, so that the text of this step alone is."""
        before = dict.fromkeys(self._seen, 0.0) if step == 1 else self._at(step - 1)
        now = self._at(step)
        if len(before) < len(self._seen) or len(now) < len(self._seen):
            return
        read, text = now[TOKENS] - before[TOKENS], now[TEXT_BYTES] - before[TEXT_BYTES]
        bits = bits_per_byte(now[LOSS], read, text)
        if math.isfinite(bits):
            yield TRAINING_BITS, bits, step
            yield from self._against_text(TRAINING_BITS, bits, step)

    def _against_text(self, name: str, value: float, step: int) -> Iterator[Point]:
        of = name.removesuffix(f"/{SECTION}").replace("/", "_")
        for amount, axis in AXES.items():
            read = self._seen[amount].get(step)
            if read is not None:
                yield f"{SECTION}/{of}_{axis}", value, int(read)

    def _at(self, step: int) -> dict[str, float]:
        return {name: values[step] for name, values in self._seen.items() if step in values}
