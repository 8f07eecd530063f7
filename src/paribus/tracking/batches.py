"""Cut pending events into requests that MLflow accepts: at most 1,000 entities, 100 parameters, 100 tags, 1 MB."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from paribus.tracking.reader import Event

MAX_ENTITIES, MAX_PARAMETERS, MAX_CHARACTERS = 1000, 100, 400_000
MAX_PARAMETER_LENGTH, MAX_TAG_LENGTH, MAX_NAME_LENGTH = 6000, 8000, 250
_ENTITIES = ("metric", "parameter", "tag")


@dataclass(frozen=True)
class EventBatch:
    """Events that go in one request, in the order of the log."""

    events: list[Event]

    @property
    def single(self) -> Event | None:
        """The event, when it takes a request of its own kind."""
        return None if self.events[0].event in _ENTITIES else self.events[0]

    @property
    def metrics(self) -> list[tuple[str, float, int, int]]:
        """Name, value, time in milliseconds, step."""
        return [
            (_name(event), float(event.fields["value"]), event.time, int(event.fields["step"]))
            for event in self._of("metric")
        ]

    @property
    def parameters(self) -> dict[str, str]:
        """Values by name; of two names that become one the first."""
        return {_name(event): _text(event, MAX_PARAMETER_LENGTH) for event in reversed(self._of("parameter"))}

    @property
    def tags(self) -> dict[str, str]:
        """Values by name, the last of each; without those that hold no longer."""
        last = {_name(event): event for event in self._of("tag")}
        return {name: _text(event, MAX_TAG_LENGTH) for name, event in last.items() if event.fields["value"] is not None}

    @property
    def removed_tags(self) -> list[str]:
        """Names of those that hold no longer."""
        last = {_name(event): event.fields["value"] for event in self._of("tag")}
        return [name for name, value in last.items() if value is None]

    def _of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.event == kind]


def batches(events: Iterable[Event]) -> Iterator[EventBatch]:
    """Split `events` without changing their order."""
    current: list[Event] = []
    counts: Counter[str] = Counter()
    for event in events:
        kind, size = event.event, len(str(event.fields))
        full = len(current) >= MAX_ENTITIES or (kind != "metric" and counts[kind] >= MAX_PARAMETERS)
        if current and (kind not in _ENTITIES or full or counts["characters"] + size > MAX_CHARACTERS):
            yield EventBatch(current)
            current, counts = [], Counter()
        if kind not in _ENTITIES:
            yield EventBatch([event])
            continue
        current.append(event)
        counts.update({kind: 1, "characters": size})
    if current:
        yield EventBatch(current)


def _name(event: Event) -> str:
    """The name in the characters MLflow allows."""
    return re.sub(r"[^/\w.\- :]", "_", str(event.fields["name"]))[:MAX_NAME_LENGTH]


def _text(event: Event, limit: int) -> str:
    """The value as text; one that is too long ends in the digest of the whole."""
    value = event.fields["value"]
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) <= limit:
        return text
    ending = f"... sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    return text[: limit - len(ending)] + ending
