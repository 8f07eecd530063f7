"""The documents of a corpus as all contestants get them.

A directory with the UTF-8 of the documents behind each other, their sizes, and two plain files for trainers that read
files themselves: documents ended by a newline, and documents with a separator between them.
"""

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

SEPARATOR = "<|end of document|>"


@dataclass(frozen=True, slots=True)
class Text:
    """Documents in a directory made by `write`."""

    directory: Path

    @property
    def plain(self) -> Path:
        """All documents, each ended by a newline."""
        return self.directory / "plain.txt"

    @property
    def separated(self) -> Path:
        """All documents with `SEPARATOR` between them."""
        return self.directory / "separated.txt"

    def sizes(self) -> list[int]:
        """UTF-8 bytes of each document."""
        sizes: list[int] = json.loads((self.directory / "sizes.json").read_text())
        return sizes

    def documents(self, limit: float | None = None) -> Iterator[str]:
        """The documents, or the first ones that together reach `limit` megabytes."""
        with (self.directory / "documents.utf8").open("rb") as file:
            for size in self.sizes()[: self.count(limit)]:
                yield file.read(size).decode()

    def count(self, limit: float | None = None) -> int:
        """How many documents `documents` yields."""
        sizes = self.sizes()
        total = 0
        for number, size in enumerate(sizes):
            if limit is not None and total >= limit * 1e6:
                return number
            total += size
        return len(sizes)

    def megabytes(self, limit: float | None = None) -> float:
        """Size of these documents."""
        return sum(self.sizes()[: self.count(limit)]) / 1e6

    def lines(self) -> Iterator[str]:
        """The lines of `plain`, newlines kept: the documents of trainers that read a file line by line."""
        with self.plain.open(encoding="utf-8", newline="\n") as file:
            yield from file

    def strings(self, number: int, shortest: int = 20, longest: int = 200) -> list[str]:
        """Pieces of the documents, such as an evaluation harness encodes one by one."""
        generator = random.Random(0)
        documents = [text for text in islice(self.documents(), 5000) if len(text) > shortest]
        drawn = []
        for _ in range(number):
            text = generator.choice(documents)
            start = generator.randrange(len(text) - shortest)
            drawn.append(text[start : start + generator.randint(shortest, longest)])
        return drawn


def write(documents: Iterable[str], directory: Path, limit: float | None = None) -> Text:
    """Store documents, at most the first `limit` megabytes."""
    directory.mkdir(parents=True)
    text, sizes = Text(directory), []
    with (
        (directory / "documents.utf8").open("wb") as joined,
        text.plain.open("wb") as plain,
        text.separated.open("wb") as separated,
    ):
        for document in documents:
            if limit is not None and sum(sizes) >= limit * 1e6:
                break
            data = document.encode()
            assert SEPARATOR.encode() not in data
            separated.write(data if not sizes else SEPARATOR.encode() + data)
            plain.write(data + b"\n")
            joined.write(data)
            sizes.append(len(data))
    (directory / "sizes.json").write_text(json.dumps(sizes))
    return text
