"""The held-out pairs that bits per byte of targets are taken of: an even sample, as JSON lines."""

import heapq
import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path

from paribus.evaluation.tasks.passages import text_digest


@dataclass(frozen=True)
class TextPair:
    """A source and the target that belongs to it."""

    id: str
    source: str
    target: str


class PairSample:
    """Whole pairs of smallest digest whose targets have at most `budget` UTF-8 bytes, at least one; bounded memory."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._heap: list[tuple[int, int, TextPair]] = []
        self._limit = math.inf
        """Smallest digest that was left out: no larger one may take the room it left."""
        self._added = self._bytes = 0

    def add(self, pair: TextPair) -> None:
        """Consider a pair."""
        digest = int(text_digest(f"{pair.source}\0{pair.target}") + text_digest(pair.id), 16)
        self._added += 1
        if digest >= self._limit:
            return
        heapq.heappush(self._heap, (-digest, self._added, pair))
        self._bytes += len(pair.target.encode())
        while self._bytes > self.budget and len(self._heap) > 1:
            largest, _, dropped = heapq.heappop(self._heap)
            self._bytes -= len(dropped.target.encode())
            self._limit = -largest

    def pairs(self) -> list[TextPair]:
        """The pairs in corpus order."""
        return [pair for _, _, pair in sorted(self._heap, key=itemgetter(1))]


def write_pairs(path: Path, pairs: Iterable[TextPair]) -> None:
    """One pair a line, as JSON with id, source and target."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for pair in pairs:
            file.write(json.dumps(asdict(pair), ensure_ascii=False) + "\n")


def read_pairs(path: Path) -> list[TextPair]:
    """The pairs that `write_pairs` wrote, in order."""
    with path.open(encoding="utf-8", newline="\n") as file:
        return [TextPair(**json.loads(line)) for line in file]
