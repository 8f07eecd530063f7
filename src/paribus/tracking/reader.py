"""Read an event file while others append to it.

A last line without its end is left for later; any other unreadable line is skipped and reported by number.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FIELDS: dict[str, frozenset[str]] = {
    "start": frozenset({"run_id", "name", "sweep", "tracking", "log"}),
    "parameter": frozenset({"name", "value"}),
    "metric": frozenset({"name", "value", "step"}),
    "tag": frozenset({"name", "value"}),
    "artifact": frozenset({"path", "folder", "digest"}),
    "dataset": frozenset({"name", "digest", "source"}),
    "end": frozenset({"status"}),
}
_IDENTITY: dict[str, tuple[str, ...]] = {
    "parameter": ("name",),
    "metric": ("name", "step"),
    "tag": ("name",),
    "artifact": ("folder", "path"),
    "dataset": ("name", "digest"),
}
_CHANGEABLE: dict[str, str] = {"tag": "value", "artifact": "digest", "end": "status", "metric": "value"}
CORRECTS = "corrects"
"""Field of a metric that stands for another value which the log has at its step."""


@dataclass(frozen=True)
class Event:
    """One line: `time` in milliseconds since 1970, `position` the byte after the line in the file."""

    event: str
    time: int
    fields: Mapping[str, Any]
    position: int


class Ledger:
    """Which events a log already holds; the same rule for the writer and for every reader."""

    def __init__(self) -> None:
        self._latest: dict[tuple[Any, ...], Any] = {}
        self._before: Any = None
        """What the latest event that was admitted replaced."""

    @property
    def is_open(self) -> bool:
        """Whether the run began and has not ended."""
        return self._latest.get(("state",)) == "start"

    def admit(self, event: str, fields: Mapping[str, Any]) -> bool:
        """Whether the event says something that the log does not say yet; if so it is remembered."""
        key = self._key(event, fields)
        content = fields[_CHANGEABLE[event]] if event in _CHANGEABLE else event
        known = self._latest.get(key)
        if key in self._latest and (known == content or self._holds(event, fields, known)):
            return False
        self._before = known
        self._latest[key] = content
        return True

    @staticmethod
    def _holds(event: str, fields: Mapping[str, Any], known: Any) -> bool:
        """Whether what the log has stays although the event says another: a finished run, the first of two numbers."""
        return (event == "start" and known == "FINISHED") or (event == "metric" and not fields.get(CORRECTS))

    def points(self) -> set[tuple[str, int]]:
        """Names and steps of all numbers."""
        return {(key[1], key[2]) for key in self._latest if key[0] == "metric"}

    def tagged(self, name: str) -> bool:
        """Whether the run has a tag now."""
        return self._latest.get(("tag", name)) is not None

    def retract(self, event: str, fields: Mapping[str, Any]) -> None:
        """Forget the event that was admitted last and could not be written: the log says what it said before."""
        key = self._key(event, fields)
        if self._before is None:
            self._latest.pop(key, None)
        else:
            self._latest[key] = self._before

    @staticmethod
    def _key(event: str, fields: Mapping[str, Any]) -> tuple[Any, ...]:
        return ("state",) if event in ("start", "end") else (event, *(fields[name] for name in _IDENTITY[event]))


class EventReader:
    """The events of `path` in order, each once; `poll` continues where the last call stopped.

    `offset` is the byte up to which lines were read, `torn` the number of bytes behind it that are not a line yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reset()

    def _reset(self) -> None:
        self.offset, self.torn, self.ledger = 0, 0, Ledger()
        self.problems: list[str] = []
        self._line_number = 0

    def poll(self) -> list[Event]:
        """Events appended since the last call; an absent file has none."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < self.offset:
                self._reset()
            file.seek(self.offset)
            data = file.read()
        complete = data.rfind(b"\n") + 1
        self.torn = len(data) - complete
        events = [self._event(line) for line in data[:complete].split(b"\n")[:-1]]
        return [event for event in events if event is not None]

    def _event(self, line: bytes) -> Event | None:
        self.offset += len(line) + 1
        self._line_number += 1
        if not line.strip():
            return None
        try:
            record = json.loads(line)
            event, time = record.pop("event"), int(record.pop("time"))
            if not _FIELDS[event] <= record.keys():
                raise KeyError(event)
            admitted = self.ledger.admit(event, record)
        except (ValueError, KeyError, TypeError, AttributeError):
            self.problems.append(f"{self.path}:{self._line_number}: unreadable line of {len(line)} bytes skipped")
            return None
        return Event(event, time, record, self.offset) if admitted else None


def complete_size(path: Path) -> int:
    """Bytes of `path` up to the end of its last whole line; 0 where it is absent."""
    if not path.exists():
        return 0
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            begin = max(0, end - 65536)
            file.seek(begin)
            found = file.read(end - begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            end = begin
    return 0
