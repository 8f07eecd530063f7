"""How far two output roots hold the same run: artefact by artefact, and the numbers of those that differ."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paribus.config.identity import digest
from paribus.pipeline.graph import Node
from paribus.store.artifacts import Artifact, Store
from paribus.store.files import METRICS
from paribus.training.stage import TRAINING

LOSS = re.compile(r"train/loss|finetuning/.*/loss|eval/.*/bits_per_byte")
EXACT = ("contexts.json", "readings.npy")
"""Files of a training that say what was read, which no device rounds."""
TOLERANCE = 0.01
"""How far losses that a GPU computed may be apart, as a share of the recorded one: its sums come in no fixed order."""

Numbers = Mapping[tuple[str, int], float]
"""Values by measure and step."""


@dataclass(frozen=True)
class Mismatch:
    """A number that is not the same; NaN where one side lacks it."""

    measure: str
    step: int
    original: float
    again: float

    @property
    def size(self) -> float:
        """How far they are apart; infinite where one side has no number."""
        apart = abs(self.again - self.original)
        return math.inf if math.isnan(apart) else apart


@dataclass(frozen=True)
class Match:
    """One artefact in both roots."""

    stage: str
    original: str | None
    """Digest of the artefact's files (SHA-256, 12 characters); None where it is gone."""
    again: str | None
    files: tuple[str, ...] = ()
    """Files that differ."""
    numbers: int = 0
    """How many numbers its metrics have."""
    differences: tuple[Mismatch, ...] = field(default=())

    losses: int = 0
    """How many of these are losses."""
    rounded: bool = False
    """Whether a GPU had a part in it, so that losses have to agree up to `TOLERANCE` and not bytes."""

    @property
    def agrees(self) -> bool:
        """Whether it is the same as far as may be expected of what it was computed on."""
        losses = [number for number in self.differences if LOSS.fullmatch(number.measure)]
        close = all(number.size <= TOLERANCE * abs(number.original) for number in losses)
        there = self.original is not None and self.again is not None
        comparable = self.losses > 0 and not set(EXACT).intersection(self.files)
        return self.identical or (self.rounded and there and comparable and close)

    @property
    def identical(self) -> bool:
        """Whether every byte is the same."""
        return self.original is not None and self.original == self.again


def match(node: Node, original: Store, again: Store) -> Match:
    """Compare the artefact of a node in two stores."""
    before, after = original.find(*node.place), again.find(*node.place)
    if before is None or after is None:
        return Match(node.name, _digest(before), _digest(after))
    first, second = before.record()["files"], after.record()["files"]
    files = tuple(sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name)))
    numbers = _numbers(before.path), _numbers(after.path)
    counted = len(numbers[0].keys() | numbers[1].keys())
    losses = sum(bool(LOSS.fullmatch(measure)) for measure, _ in numbers[0])
    differences, rounded = _differences(*numbers), _is_rounded(node, original, again)
    return Match(node.name, _digest(before), _digest(after), files, counted, differences, losses, rounded)


def _is_rounded(node: Node, original: Store, again: Store) -> bool:
    """Whether a GPU computed the training that an artefact is or is made of, in either store.

    A deterministic one repeats its bits on the same device.
    """
    training = node if node.stage.artefact == TRAINING.name else node.inputs.get(TRAINING.name)
    if training is None:
        return False
    found = [store.find(*training.place) for store in (original, again)]
    computed_on = [artifact.record()["result"]["computed_on"] for artifact in found if artifact is not None]
    repeated = training.config.training.deterministic and all(devices == computed_on[0] for devices in computed_on)
    return not repeated and any(not device.startswith("cpu ") for devices in computed_on for device in devices)


def _digest(artifact: Artifact | None) -> str | None:
    return None if artifact is None else digest(artifact.record()["files"])[:12]


def _numbers(path: Path) -> Numbers:
    file = path / METRICS
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    found: dict[tuple[str, int], float] = {}
    for values in map(json.loads, lines):
        step = int(values.pop("step"))
        found |= {(name, step): float(value) for name, value in values.items()}
    return found


def _differences(original: Numbers, again: Numbers) -> tuple[Mismatch, ...]:
    """In the order of steps."""
    places = sorted(original.keys() | again.keys(), key=lambda place: (place[1], place[0]))
    pairs = [(*place, original.get(place, math.nan), again.get(place, math.nan)) for place in places]
    return tuple(Mismatch(*pair) for pair in pairs if repr(pair[2]) != repr(pair[3]))
