"""Sets of texts for bits per byte: `<data>/<name>/test.jsonl[.gz|.zst]` with `text`, and `id` where there are ids."""

import re
from collections.abc import Iterator
from pathlib import Path

from paribus.corpus.readers import Record, RecordProblem, checked
from paribus.errors import DataError
from paribus.evaluation.suites.benchmark import Record as Fields
from paribus.evaluation.suites.benchmark import entry, string
from paribus.evaluation.suites.files import DataFile, read_lines

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
"""What a set may be called: it names a directory, a metric and a column."""


HELDOUT_CLEAN, HELDOUT_CONCATENATED = "heldout_clean", "heldout_concatenated"
"""Sets that a run has without naming them: no other set may have these names."""
_CONCATENATED = "_concatenated"


def concatenated(name: str) -> str:
    """What the texts of a set are called end to end."""
    return name + _CONCATENATED


def text_file(name: str) -> DataFile:
    """Where the texts of a set lie."""
    return DataFile(f"text set {name}", name, ("test.jsonl",), "; or leave it out of evaluation.texts")


def read_texts(path: Path) -> Iterator[tuple[str, str]]:
    """(id, text) of each document in order, named `test/<line>` where the file's first has no `id`.

    DataError names file and line of what is no text, is empty, or repeats an id; and the file where it is empty.
    """
    return read_lines(path, "a set of texts", _Documents().of)


class _Documents:
    """Makes documents of records; the first says whether they have ids."""

    def __init__(self) -> None:
        self._named: bool | None = None
        self._seen: set[str] = set()

    def of(self, name: str, record: Fields) -> tuple[str, str]:
        """(id, text) of a record; DataError."""
        self._named = "id" in record if self._named is None else self._named
        document = str(entry(record, "id")) if self._named else name
        found = checked(Record(0, document, string(record, "text")))
        if isinstance(found, RecordProblem):
            raise DataError(found.message)
        if document in self._seen:
            raise DataError(f"the id {document!r} occurred before")
        self._seen.add(document)
        return document, found.text
