"""What every source yields, and the rules they share: unique ids, and nothing left out unless asked and counted."""

import hashlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import Literal, Protocol

from paribus.corpus.readers.record import Item, RecordProblem
from paribus.errors import DataError


@dataclass(frozen=True, slots=True)
class Found:
    """A document as its source has it; of a pair, `text` is the source side.

    Documents of one `group` are pieces of one source; None is a document by itself.
    """

    id: str
    text: str
    source: str
    target: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """What was left out, and why: `reason` is a short name to count by, `message` is for people."""

    file: str
    line: int | None
    reason: str
    message: str


class Source(Protocol):
    """Documents in corpus order, with the progress made in reading them."""

    done: float
    total: float
    unit: str

    def items(self) -> Generator[Found | Skipped, None, None]:
        """Documents in corpus order, and what was left out between them."""

    def hint(self) -> str:
        """What to change where this source has too few documents."""


class Intake:
    """Turns the items of readers into documents with unique ids; one for a whole corpus.

    Remembers 16 bytes an explicit id to find duplicates. At a problem it raises, or, with `on_invalid="skip"`, yields
    what it leaves out.
    """

    def __init__(self, on_invalid: Literal["error", "skip"]) -> None:
        self._on_invalid = on_invalid
        self._ids: set[bytes] = set()

    def take(self, item: Item, *, path: str, label: str, unit: str) -> Found | Skipped:
        """The document of an item of the file at `path`, which ids and records call `label`; DataError."""
        if not isinstance(item, RecordProblem) and not self._is_first(item.id):
            item = RecordProblem(item.position, "duplicate_id", f"the id {item.id!r} (corpus.id_field) occurred before")
        if not isinstance(item, RecordProblem):
            id = f"{label}:{item.position}" if item.id is None else item.id
            return Found(id, item.text, label, group=item.group)
        if self._on_invalid == "skip":
            return Skipped(label, item.position, item.reason, item.message)
        raise DataError(
            f"{path}, {unit} {item.position}: {item.message}. Correct it, or leave such records out, counted and "
            "logged, with corpus.on_invalid=skip"
        )

    def without_records(self, *, path: str, label: str, what: str) -> Skipped:
        """What is left out where the file at `path` holds nothing, not one `what`; DataError as `take`."""
        message = f"the file has no {what}, only blank lines or nothing"
        if self._on_invalid == "skip":
            return Skipped(label, None, "empty_file", message)
        raise DataError(f"{path}: {message}; leave it out, or count it as skipped: corpus.on_invalid=skip")

    def _is_first(self, id: str | None) -> bool:
        if id is None:
            return True
        digest = hashlib.blake2b(id.encode(), digest_size=16).digest()
        if digest in self._ids:
            return False
        self._ids.add(digest)
        return True
