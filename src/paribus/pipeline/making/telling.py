"""What a stage says while it runs, and who hears it: the terminal, the record of the run, and its artefact.

The numbers of a stage belong to its artefact, so that a run which finds it made has them too.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rich.markup import escape

from paribus.pipeline.graph import Node
from paribus.pipeline.show.display import Display
from paribus.store import files
from paribus.store.artifacts import Artifact
from paribus.store.files import METRICS
from paribus.tracking.events import TextPoint


class StageRecorder(Protocol):
    """Who keeps what stages say; `Recorder` does so for a run."""

    @property
    def directory(self) -> Path:
        """Where logs of stages go."""

    def metric(self, name: str, value: float, step: int) -> None:
        """A stage reported a number."""

    def published(self, points: Iterable[TextPoint]) -> None:
        """A published artefact has these numbers."""

    def stage(self, node: Node, artifact: Artifact, state: str, seconds: float) -> None:
        """An artefact is there, `made` or `cached`."""


@dataclass(frozen=True)
class Telling:
    """The listener of one stage after the other."""

    display: Display
    recorder: StageRecorder
    metrics: list[tuple[str, float, int]] = field(default_factory=list)
    """Of the stage that runs."""

    def progress(self, done: float, total: float, unit: str, doing: str, detail: str) -> None:
        """Show the running stage's progress."""
        self.display.progress(done, total, unit, doing, detail)

    def metric(self, name: str, value: float, step: int) -> None:
        """Keep a number for the artefact and for the run's events."""
        self.metrics.append((name, value, step))
        with suppress(OSError):  # the file server may answer again; what is missing is told again with the artefact
            self.recorder.metric(name, value, step)

    def message(self, text: str) -> None:
        """Show a line of the running stage above its bar."""
        self.display.message(f"  {escape(text)}")

    def say(self, text: str) -> None:
        """Show a line of the pipeline itself, with its marks, above the bar."""
        self.display.message(f"  {text}")

    def keep_metrics(self, output: Path) -> None:
        """Write the numbers of the running stage into its artefact."""
        if self.metrics and not (output / METRICS).exists():
            lines = [{"step": step, name: value} for name, value, step in self.metrics]
            files.write_text(output / METRICS, "".join(json.dumps(line) + "\n" for line in lines))

    def there(self, node: Node, artifact: Artifact, state: str, seconds: float) -> None:
        """Record an artefact with its numbers, which may differ from those that one of its key had before."""
        self.recorder.stage(node, artifact, state, seconds)
        path = artifact.path / METRICS
        # Those of a first training are also the first ones of the training that goes on from it.
        if path.is_file() and node.stage.makes is None:
            self.recorder.published(_read_points(path))


def _read_points(path: Path) -> Iterator[TextPoint]:
    for line in path.read_text(encoding="utf-8").splitlines():
        values = json.loads(line)
        step = values.pop("step")
        yield from ((name, float(value), step) for name, value in values.items())
