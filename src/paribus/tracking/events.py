"""Event log of a run (`events.jsonl`): writing, reading, and its points over tokens and bytes of text."""

import errno
import hashlib
import json
import math
import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from paribus.store.files import naming
from paribus.tracking.destination import public_uri

FILE_NAME = "events.jsonl"
FAILURE_TAG, STOPPED_TAG = "paribus.failure", "paribus.stopped_after"
SCHEDULED = "SCHEDULED"
"""Status of a run that was to stop after a stage, so that its other stages are still to be made."""
STATUSES = ("FINISHED", "FAILED", "KILLED", SCHEDULED)
Point = tuple[str, int]
"""Name and step of a number."""
_RUN_ID = re.compile(r"[A-Za-z0-9._-]{1,200}")
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
LOSS, TOKENS, TEXT_BYTES = "train/loss", "train/tokens", "train/text_bytes"
TRAINING_BITS = "train/bits_per_byte"
SECTION = "bits_per_byte"
AXES = {TOKENS: "by_tokens", TEXT_BYTES: "by_text_bytes"}
TextPoint = tuple[str, float, int]
"""Name, value, step."""


class EventLog:
    """Writer of `path`, made where absent; `problems` lists lines that a kill or a full disk left unreadable.

    Append-only JSON lines, the truth that every tracker only repeats. A line is one `os.write` to a file opened with
    O_APPEND, so several processes may log at once and a kill can tear no line but the last. An event that says nothing
    new is not written, so that the same command adds only what is missing: the first value of a parameter, or of a
    metric at a step, stays; a tag, an artifact or a status is written again when it changes. Only `correct` replaces a
    metric, by that of an artefact that was made again.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path.resolve()
        reader = EventReader(self.path)
        metrics = [event for event in reader.poll() if event.event == "metric"]
        self._newest = max((event.time for event in metrics), default=0)
        self.problems = list(reader.problems)
        self._ledger = reader.ledger
        self._lock = threading.Lock()
        self._torn = False
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        if reader.torn:
            self.problems.append(f"{self.path}: the last line was torn ({reader.torn} bytes) and is skipped")
            os.write(self._descriptor, b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        """True if the run began and has not ended, as far as this log said when it was opened and since."""
        return self._ledger.is_open

    def close(self) -> None:
        """Release the file; further events raise."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def start(self, run_id: str, name: str, sweep: Mapping[str, Any] | None, tracking: Mapping[str, Any]) -> None:
        """Log that the run begins, or continues after it failed.

        `sweep` has `id` and optionally `name`; a log whose `run_id` is its sweep's id describes the sweep itself.
        `tracking` says where the run is shown (`kind`, `uri`, `experiment`); credentials in the URI are not kept.
        """
        for identifier in (run_id, str(sweep["id"]) if sweep else run_id):
            if not _RUN_ID.fullmatch(identifier):
                raise ValueError(f"{identifier!r} is no identifier: letters, digits, '.', '_', '-', at most 200")
        uri = tracking.get("uri")
        shown = dict(tracking) | {"uri": public_uri(uri) if uri else None}
        sweep_fields = dict(sweep) if sweep else None
        self._append("start", run_id=run_id, name=name, sweep=sweep_fields, tracking=shown, log=uuid.uuid4().hex)

    def parameter(self, name: str, value: Any) -> None:
        """Log a setting of the run; its first value wins."""
        self._append("parameter", name=name, value=value)

    def metric(self, name: str, value: float, step: int) -> None:
        """Log a number at a step; the first value of a step wins. NaN and infinities are kept as such."""
        self._append("metric", name=name, value=float(value), step=int(step))

    def correct(self, points: Mapping[Point, float], concerns: Callable[[str, int], bool]) -> None:
        """Log those of `points`, by name and step, that the log lacks or has with another value.

        Logged points that `concerns` selects and `points` lacks become NaN: their artefact was made again without them.
        Corrections get later times than all numbers before them, even where another machine's clock was ahead: of two
        numbers at a step a tracker shows the later. One process at a time may correct a log.
        """
        known = self.points()
        gone = {point: math.nan for point in sorted(known - points.keys()) if concerns(*point)}
        later = self._newest + 1
        for (name, step), value in {**gone, **points}.items():
            mark = {CORRECTS: True} if (name, step) in known else {}
            self._append("metric", earliest=later if mark else 0, name=name, value=float(value), step=int(step), **mark)

    def points(self) -> set[Point]:
        """Names and steps of all numbers of the log."""
        with self._lock:
            return self._ledger.points()

    def tag(self, name: str, value: str | None) -> None:
        """Set a tag; its last value wins. None removes it, and is not logged for a tag that the run does not have."""
        if value is not None or self._ledger.tagged(name):
            self._append("tag", name=name, value=value)

    def artifact(self, path: Path | str, folder: str = "") -> None:
        """Log a file or directory to show with the run in `folder`; a relative path starts at the run's directory.

        Paths inside the output root are kept relative, so the root may move to another machine before it is synced.
        """
        absolute = Path(os.path.normpath(self.path.parent / path))
        root = self.path.parent.parent.parent
        inside = absolute.is_relative_to(root)
        shown = os.path.relpath(absolute, self.path.parent) if inside else str(absolute)
        self._append("artifact", path=shown, folder=folder, digest=_content_digest(absolute))

    def dataset(self, name: str, digest: str, source: str) -> None:
        """Log a data set with its digest and source."""
        self._append("dataset", name=name, digest=digest, source=source)

    def end(self, status: str) -> None:
        """Log that the run ended, as one of `STATUSES` (any case). Everything so far is on the disk afterwards."""
        if status.upper() not in STATUSES:
            raise ValueError(f"status {status!r} is none of {', '.join(STATUSES)}")
        self._append("end", status=status.upper())
        os.fsync(self._descriptor)

    def _append(self, event: str, *, earliest: int = 0, **fields: Any) -> None:
        """Add the event, with the time `earliest` or a later one, unless the log has it already."""
        safe = {name: json_safe(value) for name, value in fields.items()}
        with self._lock:
            if not self._ledger.admit(event, safe):
                return
            try:
                now = max(time.time_ns() // 1_000_000, earliest)
                self._write({"time": now, "event": event, **safe})
            except BaseException:  # logged again, it must not pass for an event that the log has
                self._ledger.retract(event, safe)
                raise
            self._newest = max(self._newest, now) if event == "metric" else self._newest

    def _write(self, record: Mapping[str, Any]) -> None:
        """Append a line, after the end of one that a full disk cut."""
        data = b"\n" * self._torn + json.dumps(record, allow_nan=False).encode() + b"\n"
        with naming(self.path):
            written = os.write(self._descriptor, data)
        self._torn = written != len(data)
        if self._torn:
            reason = f"only {written} of {len(data)} bytes were written"
            raise OSError(errno.ENOSPC, reason, str(self.path))


def end_stopped(events: EventLog, until: str) -> None:
    """End the log of a run that was to stop after a stage: it has not failed, and it is not finished."""
    events.tag(FAILURE_TAG, None)
    events.tag(STOPPED_TAG, until)
    events.end(SCHEDULED)


def json_safe(value: Any) -> Any:
    """`value` in JSON's own types; NaN and infinities become the strings NaN, Infinity and -Infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_safe(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _content_digest(path: Path) -> str | None:
    """SHA-256 of a file, or of the names and contents below a directory; None where there is nothing."""
    if not path.exists():
        return None
    digest = hashlib.sha256()
    files = sorted(item for item in path.rglob("*") if item.is_file()) if path.is_dir() else [path]
    for file in files:
        digest.update(str(file.relative_to(path)).encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


@dataclass(frozen=True)
class Event:
    """One line: `time` in milliseconds since 1970, `position` the byte after the line in the file."""

    event: str
    time: int
    fields: Mapping[str, Any]
    position: int


class Ledger:
    """Events that a log holds already, by one rule for the writer and every reader."""

    def __init__(self) -> None:
        self._latest: dict[tuple[Any, ...], Any] = {}
        self._before: Any = None
        """Value that the latest admitted event replaced."""

    @property
    def is_open(self) -> bool:
        """True if the run began and has not ended."""
        return self._latest.get(("state",)) == "start"

    def admit(self, event: str, fields: Mapping[str, Any]) -> bool:
        """Remember an event, and return True, if it says something that the log does not say yet."""
        key = self._key(event, fields)
        content = fields[_CHANGEABLE[event]] if event in _CHANGEABLE else event
        known = self._latest.get(key)
        # A finished run and the first value of a metric stay.
        stays = (event == "start" and known == "FINISHED") or (event == "metric" and not fields.get(CORRECTS))
        if key in self._latest and (known == content or stays):
            return False
        self._before = known
        self._latest[key] = content
        return True

    def points(self) -> set[tuple[str, int]]:
        return {(key[1], key[2]) for key in self._latest if key[0] == "metric"}

    def tagged(self, name: str) -> bool:
        """True if the run has a tag now."""
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

    `offset` is the byte up to which lines were read, `torn` the number of bytes behind it that are not a line yet: they
    are left for later. Any other unreadable line is skipped and is one of `problems`, by number.
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
    # Read from the end: the tracking service asks again and again, and logs may be long.
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            begin = max(0, end - 65536)
            file.seek(begin)
            newline = file.read(end - begin).rfind(b"\n")
            if newline >= 0:
                return begin + newline + 1
            end = begin
    return 0


# A tracker's axis is the step, which counts other amounts of text with other tokenizers. So every number in bits per
# byte is logged three times: under its own name by training step, and in the section `bits_per_byte`, which MLflow
# shows first, as `<source>_by_tokens` and `<source>_by_text_bytes`, whose steps are tokens and bytes read.
def bits_per_byte(loss: float, tokens: float, text_bytes: float) -> float:
    """Bits a byte of the text that the tokens stand for, from nats a token; NaN for no text."""
    return loss * tokens / (text_bytes * math.log(2)) if text_bytes else math.nan


@dataclass
class TextAxes:
    """Points that follow from the metrics of a run, given one by one; it remembers what each step has read."""

    _seen: dict[str, dict[int, float]] = field(default_factory=lambda: {LOSS: {}, TOKENS: {}, TEXT_BYTES: {}})

    def points(self, name: str, value: float, step: int) -> Iterator[TextPoint]:
        """The metric itself and, where they can be known, its bits per byte by step, by tokens and by text bytes."""
        yield name, value, step
        if name in self._seen:
            self._seen[name][step] = value
        if name == TEXT_BYTES:
            yield from self._training(step)
        if name.endswith(f"/{SECTION}"):
            yield from self._against_text(name, value, step)

    def stale_points(self, points: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
        """The `points`, name and step, at an amount of text that no step read, left by an earlier training."""
        read = {f"_{axis}": set(self._seen[amount].values()) for amount, axis in AXES.items()}
        shown = ((name, step) for name, step in points if name.startswith(f"{SECTION}/"))
        return {
            (name, step)
            for name, step in shown
            if any(name.endswith(ending) and step not in amounts for ending, amounts in read.items())
        }

    def _training(self, step: int) -> Iterator[TextPoint]:
        """Points of a step, where the one before is known and so the text of this step alone."""
        before = dict.fromkeys(self._seen, 0.0) if step == 1 else self._values_at(step - 1)
        now = self._values_at(step)
        if len(before) < len(self._seen) or len(now) < len(self._seen):
            return
        read, text = now[TOKENS] - before[TOKENS], now[TEXT_BYTES] - before[TEXT_BYTES]
        bits = bits_per_byte(now[LOSS], read, text)
        if math.isfinite(bits):
            yield TRAINING_BITS, bits, step
            yield from self._against_text(TRAINING_BITS, bits, step)

    def _against_text(self, name: str, value: float, step: int) -> Iterator[TextPoint]:
        source = name.removesuffix(f"/{SECTION}").replace("/", "_")
        for amount, axis in AXES.items():
            read = self._seen[amount].get(step)
            if read is not None:
                yield f"{SECTION}/{source}_{axis}", value, int(read)

    def _values_at(self, step: int) -> dict[str, float]:
        return {name: values[step] for name, values in self._seen.items() if step in values}
