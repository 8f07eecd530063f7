"""What a stage function receives.

A stage reads the artefacts of its inputs, fills one empty output directory and returns what its record should say.
It may keep resumable state in `work`, which outlives a killed process. It never publishes and never knows its key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from paribus.config.schema import RunConfig
from paribus.engine.engine import Engine

JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]


class Reporter(Protocol):
    """How a stage tells the parent process where it stands."""

    def progress(self, done: float, total: float, *, unit: str, doing: str, detail: str = "") -> None:
        """`done` of `total` `unit`s are finished; `doing` says what is running, `detail` what else. Throttled."""

    def metric(self, name: str, value: float, *, step: int) -> None:
        """Record a number of the run, such as `train/loss` at a step."""

    def message(self, text: str) -> None:
        """Say a line that stays on the terminal and in the stage's log."""


@dataclass(frozen=True)
class StageContext:
    """Inputs and outputs of one execution of a stage."""

    config: RunConfig
    inputs: Mapping[str, Path]
    """Directory of each input artefact by stage name."""
    output: Path
    """Empty directory to fill; it becomes the artefact when the function returns."""
    work: Path
    """Scratch directory of this artefact that survives a kill; removed once the artefact is published."""
    report: Reporter
    engine: Engine


class SilentReporter:
    """A reporter for tests and library use that shows nothing and remembers metrics and messages."""

    def __init__(self) -> None:
        self.metrics: list[tuple[str, float, int]] = []
        self.messages: list[str] = []

    def progress(self, done: float, total: float, *, unit: str, doing: str, detail: str = "") -> None:
        """Ignore progress."""

    def metric(self, name: str, value: float, *, step: int) -> None:
        """Remember the metric in order."""
        self.metrics.append((name, value, step))

    def message(self, text: str) -> None:
        """Remember the message in order."""
        self.messages.append(text)
