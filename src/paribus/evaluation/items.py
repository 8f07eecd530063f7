"""Multiple-choice items: what every task is made of, and its JSON lines on disk."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Item:
    """One multiple-choice question."""

    id: str
    """Stable name: the record's place in its file, or the document the item was made from."""
    query: str
    """The prompt, without the answer."""
    choices: tuple[str, ...]
    """Possible answers; what joins an answer to the prompt is the task's delimiter."""
    gold: int
    """Index of the right choice."""

    def digest(self) -> str:
        """Hexadecimal digest of the question, whatever its id; equal questions have equal digests."""
        content = json.dumps([self.query, self.choices, self.gold], ensure_ascii=False)
        return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class ItemSet:
    """The items of a task: those that are scored, and those that examples in the prompt are drawn from."""

    evaluated: list[Item]
    fewshot: list[Item]
    fewshot_source: str
    """Where the examples come from, for the record."""

    def chance(self) -> float:
        """Expected accuracy of a blind guess."""
        return sum(1 / len(item.choices) for item in self.evaluated) / len(self.evaluated)


def write_items(path: Path, items: Iterable[Item]) -> None:
    """One item a line, as JSON."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for item in items:
            file.write(json.dumps(asdict(item), ensure_ascii=False) + "\n")


def read_items(path: Path) -> Iterator[Item]:
    """The items that `write_items` wrote, in order."""
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            record = json.loads(line)
            yield Item(record["id"], record["query"], tuple(record["choices"]), record["gold"])
