"""What was measured of one shape, and what follows from it."""

import math
import statistics
from dataclasses import dataclass, field
from typing import Any

from loops.shapes import Shape

CHECKPOINTED = "paribus_checkpoints"
UNDISTURBED = "paribus_alone"
"""With which checkpoints are compared where contestants take turns: writing them goes on in the turns of others."""
REFERENCE = "bare"
TOLERANCE = {"fp32": 1e-3, "bf16": 2e-2}
"""Largest relative difference of a loss that rounding may make."""
LOSSES_COMPARED = 5
"""Steps whose losses must agree; rounding grows with every further step."""


@dataclass
class Results:
    """The answers of the processes of each contestant."""

    shape: Shape
    flops: int
    """Training FLOPs of a token."""
    precision: str
    problem: str | None = None
    """Why nothing was measured."""
    together: bool = False
    """Whether the contestants took turns every few steps."""
    answers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def problem_of(self, name: str) -> str | None:
        """What went wrong with a contestant."""
        return next((answer["problem"] for answer in self.answers[name] if "problem" in answer), None)

    @property
    def measured(self) -> list[str]:
        """The contestants with which nothing went wrong."""
        return [name for name in self.answers if not self.problem_of(name)]

    @property
    def out_of_memory(self) -> bool:
        """Whether any contestant wanted for memory."""
        return any("out_of_memory" in answer for answers in self.answers.values() for answer in answers)

    def windows(self, name: str) -> list[float]:
        """Seconds a step of all windows of all rounds."""
        return [value for answer in self.answers[name] for value in answer["seconds"]]

    def seconds(self, name: str) -> float:
        """Median seconds of a step."""
        return statistics.median(self.windows(name))

    def mean_seconds(self, name: str) -> float:
        """Seconds of a step on average; the median round."""
        return statistics.median(answer["whole"] / answer["steps"] for answer in self.answers[name])

    def processor_seconds(self, name: str) -> float:
        """Seconds of processors a step, of all threads; the median round."""
        return statistics.median(answer["processor"] / answer["steps"] for answer in self.answers[name])

    def tokens_per_second(self, name: str) -> float:
        """Tokens a second at the median step."""
        return self.shape.step_tokens / self.seconds(name)

    def ratios(self, name: str, reference: str = REFERENCE) -> list[float]:
        """Time of a step over that of the reference: a value a window in turn, or of median steps a value a round."""
        pairs = zip(self.answers[name], self.answers[reference], strict=True)
        if not self.together:
            return [statistics.median(one["seconds"]) / statistics.median(other["seconds"]) for one, other in pairs]
        windows = (zip(one["seconds"], other["seconds"], strict=True) for one, other in pairs)
        return [mine / theirs for both in windows for mine, theirs in both]

    @property
    def unsaved(self) -> str:
        """The contestant that differs from `CHECKPOINTED` in its checkpoints only."""
        return UNDISTURBED if self.together else "paribus"

    def share(self, name: str, part: str) -> float:
        """Share of all seconds that a part took; the median round."""
        return statistics.median(answer["parts"].get(part, 0.0) / answer["whole"] for answer in self.answers[name])

    def peak(self, name: str) -> float | None:
        """Most bytes of memory of any round."""
        return max((answer["peak"] for answer in self.answers[name] if answer["peak"] is not None), default=None)

    def difference(self, name: str) -> float | None:
        """Largest relative difference of the first losses to those of the reference."""
        if REFERENCE not in self.measured:
            return None
        expected = self.answers[REFERENCE][0]["losses"][:LOSSES_COMPARED]
        found = [answer["losses"] for answer in self.answers[name]]
        return max(abs(a - b) / abs(b) for losses in found for a, b in zip(losses, expected, strict=False))

    @property
    def right(self) -> bool:
        """Whether nothing went wrong and the losses agree."""
        differences = [self.difference(name) or 0.0 for name in self.measured]
        return len(self.measured) == len(self.answers) and max(differences, default=0.0) <= TOLERANCE[self.precision]


def spread(values: list[float]) -> tuple[float, float, float]:
    """The median, and the ends of its 95 % confidence interval: order statistics, whatever the distribution is."""
    ordered, count = sorted(values), len(values)
    reach = math.ceil(1.96 * math.sqrt(count) / 2)
    low, high = max(0, count // 2 - reach), min(count - 1, (count - 1) // 2 + reach)
    return statistics.median(values), ordered[low], ordered[high]
