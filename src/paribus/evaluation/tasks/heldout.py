"""The held-out text that bits per byte and statistics are taken of: an even sample of documents, as JSON lines."""

import json
from collections.abc import Iterable
from pathlib import Path

from paribus.evaluation.tasks.passages import text_digest

HELDOUT = "heldout.jsonl"


class TextSample:
    """Documents of smallest text digest that together have `budget` UTF-8 bytes; one pass, bounded memory."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._documents: dict[int, tuple[str, str, str]] = {}
        self._added = self._bytes = 0

    def add(self, document: str, text: str) -> None:
        """Consider a document."""
        self._documents[self._added] = (text_digest(text), document, text)
        self._added += 1
        self._bytes += len(text.encode())
        if self._bytes > 2 * self.budget + 2**20:
            self._prune()

    def documents(self) -> list[tuple[str, str]]:
        """(id, text) in corpus order; the last by digest is cut at a character so that the budget is not exceeded."""
        self._prune()
        excess = self._bytes - self.budget
        chosen = {place: (document, text) for place, (_, document, text) in self._documents.items()}
        if excess > 0:
            last = max(self._documents, key=lambda place: (self._documents[place][0], place))
            document, text = chosen.pop(last)
            cut = text.encode()[:-excess].decode(errors="ignore")
            if cut:
                chosen[last] = (document, cut)
        return [chosen[place] for place in sorted(chosen)]

    def _prune(self) -> None:
        """Drop the largest digests while what is left still fills the budget."""
        for place in sorted(self._documents, key=lambda place: (self._documents[place][0], place), reverse=True):
            size = len(self._documents[place][2].encode())
            if self._bytes - size < self.budget:
                break
            self._bytes -= size
            del self._documents[place]


def write_heldout(path: Path, documents: Iterable[tuple[str, str]]) -> None:
    """One document (id, text) a line, as JSON."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for document, text in documents:
            file.write(json.dumps({"id": document, "text": text}, ensure_ascii=False) + "\n")


def read_heldout(path: Path) -> list[tuple[str, str]]:
    """(id, text) of each document, in corpus order."""
    with path.open(encoding="utf-8", newline="\n") as file:
        records = [json.loads(line) for line in file]
    return [(record["id"], record["text"]) for record in records]
