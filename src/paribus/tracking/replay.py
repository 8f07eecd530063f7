"""How far the event file of one run has been sent to one destination.

The cursor is saved after every batch, so at most one batch is sent twice, and the sink makes that harmless.
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paribus.store.files import read_object_if_any, write_json
from paribus.tracking.destination import Destination
from paribus.tracking.events import FILE_NAME
from paribus.tracking.reader import Event, EventReader, complete_size


@dataclass
class Sent:
    """What one replay did: number of events by kind, and what could not be shown and why."""

    events: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def cursor_path(run_directory: Path, destination: Destination) -> Path:
    """The file beside the log that says how far `destination` is."""
    return run_directory / f"tracking-{destination.key}.json"


def is_delivered(run_directory: Path, destination: Destination) -> bool:
    """Whether every whole line of the run's log has been sent."""
    sent = int(read_object_if_any(cursor_path(run_directory, destination)).get("offset", 0))
    return sent >= complete_size(run_directory / FILE_NAME)


class Replay:
    """Reader and cursor of one run; `pending` are the events that the destination still lacks."""

    def __init__(self, run_directory: Path, destination: Destination) -> None:
        self.run_directory = run_directory
        self.mlflow_run_id: str | None = None
        self.verified = False
        self.pending: list[Event] = []
        self.start: Event | None = None
        self._destination = destination
        self._saved = 0
        self._cursor = cursor_path(run_directory, destination)
        self._reader = EventReader(run_directory / FILE_NAME)

    @property
    def lock(self) -> Path:
        """Held while events of this run are sent."""
        return self._cursor.with_suffix(".lock")

    @property
    def problems(self) -> list[str]:
        """Lines of the log that nobody can read."""
        return self._reader.problems

    def refresh(self) -> None:
        """Take up what was logged here and what other processes have sent since the last call."""
        events = self._reader.poll()
        self.start = self.start or next((event for event in events if event.event == "start"), None)
        cursor = read_object_if_any(self._cursor)
        offset = int(cursor.get("offset", 0))
        if self.start is None or cursor.get("log") != self.start.fields["log"]:
            cursor, offset = {}, 0
        self._saved = offset
        self.mlflow_run_id = cursor.get("mlflow_run_id")
        self.pending = [event for event in [*self.pending, *events] if event.position > offset]

    def restart(self) -> None:
        """The destination does not know the run (any more): send everything again."""
        self._cursor.unlink(missing_ok=True)
        self.mlflow_run_id = None
        self.start = None
        self._reader = EventReader(self._reader.path)
        self.pending = []
        self.refresh()

    def advance(self, count: int) -> None:
        """The first `count` pending events have arrived."""
        offset = self.pending[count - 1].position
        self.pending = self.pending[count:]
        self._save(offset)

    def finish(self) -> None:
        """Everything read so far has arrived, also the lines that are no events of their own."""
        if self._reader.offset != self._saved:
            self._save(self._reader.offset)

    def _save(self, offset: int) -> None:
        assert self.start is not None
        cursor: dict[str, Any] = {
            "uri": self._destination.shown,
            "experiment": self._destination.experiment,
            "log": self.start.fields["log"],
            "mlflow_run_id": self.mlflow_run_id,
            "offset": offset,
        }
        write_json(self._cursor, cursor)
        self._saved = offset
