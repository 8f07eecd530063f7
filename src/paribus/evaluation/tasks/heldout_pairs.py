"""The held-out pairs that bits per byte of targets are taken of: an even sample, as JSON lines."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from paribus.evaluation.tasks.heldout import sample_of
from paribus.evaluation.tasks.passages import text_digest


@dataclass(frozen=True)
class TextPair:
    """A source and the target that belongs to it."""

    id: str
    source: str
    target: str


def sample_pairs(pairs: Iterable[TextPair], count: int) -> list[TextPair]:
    """The pairs that are scored, whole."""
    return sample_of(pairs, count, lambda pair: text_digest(f"{pair.source}\0{pair.target}") + text_digest(pair.id))


def write_pairs(path: Path, pairs: Iterable[TextPair]) -> None:
    """One pair a line, as JSON with id, source and target."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for pair in pairs:
            file.write(json.dumps(asdict(pair), ensure_ascii=False) + "\n")


def read_pairs(path: Path) -> list[TextPair]:
    """The pairs that `write_pairs` wrote, in order."""
    with path.open(encoding="utf-8", newline="\n") as file:
        return [TextPair(**json.loads(line)) for line in file]
