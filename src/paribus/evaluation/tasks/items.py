"""Items: what every task is made of, and their JSON lines on disk.

A language model answers by the probability of a text, or by writing one.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class _Question:
    """What all items share."""

    id: str
    """Stable name: the record's place in its file, or the document the item was made from."""

    @property
    def chance(self) -> float:
        """Expected accuracy of a blind guess; 0 where the answer is not chosen among a few."""
        return 0.0

    def digest(self) -> str:
        """Hexadecimal digest of the question, whatever its id; equal questions have equal digests."""
        _, *content = asdict(self).values()
        text = json.dumps(content, ensure_ascii=False)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Item(_Question):
    """A multiple-choice question: which text follows the prompt."""

    query: str
    """The prompt, without the answer."""
    choices: tuple[str, ...]
    """Possible answers; what joins an answer to the prompt is the task's delimiter."""
    gold: int
    """Index of the right choice."""

    @property
    def chance(self) -> float:
        """Expected accuracy of a blind guess."""
        return 1 / len(self.choices)


@dataclass(frozen=True)
class BlankItem(_Question):
    """A multiple-choice question whose choices fill a blank: after which context is the ending most probable.

    Trinh and Le 2018 call it partial scoring (arXiv 1806.02847).
    """

    contexts: tuple[str, ...]
    """The text up to the blank and each choice in it."""
    ending: str
    """The text after the blank."""
    gold: int
    """Index of the right context."""

    @property
    def chance(self) -> float:
        """Expected accuracy of a blind guess."""
        return 1 / len(self.contexts)


@dataclass(frozen=True)
class TextItem(_Question):
    """One text to predict after a prompt."""

    query: str
    """The prompt."""
    target: str
    """The text that follows, with the whitespace before it."""


@dataclass(frozen=True)
class AnswerItem(_Question):
    """A question whose answer the model writes."""

    query: str
    """The prompt, without the answer."""
    answers: tuple[tuple[str, ...], ...]
    """Accepted answers, the one that examples show first; each is one span of text, or several (DROP)."""


AnyItem = Item | BlankItem | TextItem | AnswerItem


@dataclass(frozen=True)
class ItemSet:
    """The items of a task, all of one class: those that are scored, and those that examples are drawn from."""

    evaluated: Sequence[AnyItem]
    fewshot: Sequence[AnyItem]
    fewshot_source: str
    """Where the examples come from, for the record."""

    def chance(self) -> float:
        """Expected accuracy of a blind guess."""
        return sum(item.chance for item in self.evaluated) / len(self.evaluated)


def write_items(path: Path, items: Iterable[AnyItem]) -> None:
    """One item a line, as JSON."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for item in items:
            file.write(json.dumps(asdict(item), ensure_ascii=False) + "\n")


def read_records(path: Path) -> list[dict[str, Any]]:
    """The items that `write_items` wrote, in order, as plain data."""
    with path.open(encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


def read_items(path: Path) -> Iterator[Item]:
    """The multiple-choice items that `write_items` wrote, in order."""
    for record in read_records(path):
        yield Item(record["id"], record["query"], tuple(record["choices"]), record["gold"])
