"""The longest prefix of a source that fits into `corpus.limit`."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from paribus.corpus.sources.source import Found, Skipped, Source
from paribus.errors import DataError
from paribus.stage import Reporter


@dataclass(frozen=True, slots=True)
class Read:
    """A document with its text, and of a pair its target, in UTF-8."""

    item: Found
    text: bytes
    target: bytes | None

    @property
    def size(self) -> int:
        """Bytes of text, of a pair those of both sides."""
        return len(self.text) + len(self.target or b"")


class Reading:
    """One pass over a source, up to `limit` bytes of text; `doing` says for people what it is for.

    `complete` says at the end whether that was everything. DataError where not even the first document fits.
    """

    def __init__(self, source: Source, limit: int | None, report: Reporter, doing: str) -> None:
        self.source, self.complete = source, True
        self._limit, self._report, self._doing = limit, report, doing
        self._documents = self._bytes = 0

    def __iter__(self) -> Iterator[Read | Skipped]:
        with closing(self.source.items()) as items:
            for item in items:
                if isinstance(item, Skipped):
                    yield item
                elif self._fits(read := Read(item, item.text.encode(), _encoded(item.target))):
                    yield read
                else:
                    self.complete = False
                    return
                self._progress()

    def _fits(self, read: Read) -> bool:
        if self._limit is not None and self._bytes + read.size > self._limit:
            if not self._documents:
                first = f"the first document, {read.item.id}, has {read.size} bytes"
                raise DataError(f"corpus.limit={self._limit}: {first}; raise the limit")
            return False
        self._documents += 1
        self._bytes += read.size
        return True

    def _progress(self) -> None:
        doing, source = f"{self._doing} documents ({self._documents:,})", self.source
        done = source.done / source.total if source.total else 0.0
        if self._limit is not None and self._bytes / self._limit >= done:
            self._report.progress(self._bytes, self._limit, unit="B", doing=doing)
        else:
            self._report.progress(source.done, max(source.total, source.done), unit=source.unit, doing=doing)


def _encoded(target: str | None) -> bytes | None:
    return None if target is None else target.encode()
