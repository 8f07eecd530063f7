"""Sets of texts for bits per byte: `<data>/<name>/test.jsonl[.gz|.zst]` with `text`, and `id` where there are ids."""

import re
from collections.abc import Iterator
from pathlib import Path

from paribus.corpus.readers.record import Problem, Record, checked
from paribus.errors import DataError
from paribus.evaluation.suites.benchmark import entry, string
from paribus.evaluation.suites.files import DataFile, item_name, read_records

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""What a set may be called: it names a directory, a metric and a column."""


def text_file(name: str) -> DataFile:
    """Where the texts of a set lie."""
    return DataFile(f"text set {name}", name, ("test.jsonl",), "; or leave it out of evaluation.texts")


def read_texts(path: Path) -> Iterator[tuple[str, str]]:
    """(id, text) of each document in order, named `test/<line>` where the file's first has no `id`.

    DataError names file and line of what is no text, is empty, or repeats an id; and the file where it is empty.
    """
    named: bool | None = None
    seen: set[str] = set()
    for number, record in read_records(path):
        named = "id" in record if named is None else named
        try:
            document = str(entry(record, "id")) if named else item_name(path, number)
            found = checked(Record(number, document, string(record, "text")))
            if isinstance(found, Problem):
                raise DataError(found.message)
            if document in seen:
                raise DataError(f"the id {document!r} occurred before")
        except DataError as error:
            raise DataError(f"{path}, line {number}: {error}") from error
        seen.add(document)
        yield document, found.text
    if named is None:
        raise DataError(f"{path} is empty; a set of texts has one JSON object with `text` a line")
