"""Time and memory of the path of In-Context Pretraining, which is checked.

python benchmarks/ordering.py [--documents 1000000 10000000] [--graph topics random] [--rounds 3]

It is walked over memory-mapped lists of 20 neighbours, on one core.
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from paribus.native.loader import ensure_compiled
from paribus.native.registry import RANKING, TRAVERSAL
from paribus.ordering.arrays import NeighbourLists, create_lists
from paribus.ordering.in_context import DocumentPath, neighbour_graph, walk, whole_lists

Result = TypeVar("Result")
NEIGHBOURS, TOPIC = 20, 200
"""Neighbours of each document; documents of each topic."""
CHUNK_DOCUMENTS = 1_000_000
PAPER_DOCUMENTS = 235_266_464


@dataclass
class Measured:
    """Seconds of parts of one round, and the memory of the process's own that it took at most."""

    seconds: dict[str, float] = field(default_factory=dict)
    bytes: int = 0

    @property
    def total(self) -> float:
        """Seconds of all parts."""
        return sum(self.seconds.values())

    def timed(self, part: str, function: Callable[..., Result], *arguments: object) -> Result:
        """The result of a part, whose seconds are noted."""
        began = time.perf_counter()
        result = function(*arguments)
        self.seconds[part] = time.perf_counter() - began
        return result

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note the most memory taken meanwhile."""
        before, done = anonymous_memory(), threading.Event()

        def watch() -> None:
            while not done.wait(0.01):
                self.bytes = max(self.bytes, anonymous_memory() - before)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


def anonymous_memory() -> int:
    """Bytes of memory that are not pages of a file."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) * 1024


def traversal(documents: Sequence[int], graphs: Sequence[str], rounds: int) -> None:
    """A line for each graph and size: medians over rounds, and what the slope makes of the paper's corpus."""
    for graph in graphs:
        for count in documents:
            with tempfile.TemporaryDirectory(dir=".") as directory:
                lists = write_graph(Path(directory), count, graph)
                paths, measured = zip(*(traverse_once(lists) for _ in range(rounds)), strict=True)
                check_path(paths[0], lists)
                assert all(np.array_equal(path.order, paths[0].order) for path in paths)
            totals = [one.total for one in measured]
            seconds, memory = statistics.median(totals), max(one.bytes for one in measured) / count
            parts = {part: statistics.median(one.seconds[part] for one in measured) for part in measured[0].seconds}
            told = ", ".join(f"{part} {1e9 * value / count:.0f}" for part, value in parts.items())
            sys.stdout.write(
                f"{graph}, {count:,} documents: {count / seconds / 1e6:.2f}M documents/s (best "
                f"{count / min(totals) / 1e6:.2f}M), ns a document: {told}; {memory:.0f} bytes a document; "
                f"{paths[0].edges:,} edges, {paths[0].jumps[1:].sum():,} jumps; at this pace {PAPER_DOCUMENTS:,} "
                f"documents take {PAPER_DOCUMENTS * seconds / count / 60:.1f} min and "
                f"{PAPER_DOCUMENTS * memory / 1e9:.0f} GB\n"
            )


def write_graph(directory: Path, documents: int, graph: str) -> NeighbourLists:
    """Lists of 20 neighbours, none of them kept in memory: of 200 documents of a topic, or of all at random.

    Documents of a topic lie anywhere in the corpus. Weights fall along a list, and no two of a list are equal.
    """
    generator = np.random.default_rng(0)
    ids, weights = create_lists(directory, documents, NEIGHBOURS)
    members = generator.permutation(documents).astype(np.int32)
    place = np.empty(documents, dtype=np.int32)
    place[members] = np.arange(documents, dtype=np.int32)
    for start in range(0, documents, CHUNK_DOCUMENTS):
        part = slice(start, min(start + CHUNK_DOCUMENTS, documents))
        own = np.arange(part.start, part.stop, dtype=np.int32)[:, None]
        shape = (len(own), NEIGHBOURS)
        if graph == "random":
            chosen = generator.integers(0, documents, shape, dtype=np.int32)
        else:
            topic = place[own] // TOPIC * TOPIC
            chosen = members[np.minimum(topic + generator.integers(0, TOPIC, shape), documents - 1)]
        ids[part] = np.where(chosen == own, (own + 1) % documents, chosen)
        weights[part] = 1 - (np.arange(NEIGHBOURS) + 0.9 * generator.random(shape)) / NEIGHBOURS
    return NeighbourLists(directory)


def traverse_once(lists: NeighbourLists) -> tuple[DocumentPath, Measured]:
    """The path and what its parts took."""
    measured = Measured()
    with measured.watched():
        whole = measured.timed("check", whole_lists, lists.ids, lists.similarities)
        graph = measured.timed("graph", neighbour_graph, whole)
        path = measured.timed("walk", partial(walk, seed=0), graph)
    return path, measured


def check_path(path: DocumentPath, lists: NeighbourLists) -> None:
    """Every document once, and after each comes the heaviest neighbour that was not visited, in both directions."""
    place = np.full(lists.count, -1, dtype=np.int64)
    place[path.order] = np.arange(lists.count)
    assert (place >= 0).all() and len(path.order) == lists.count
    # Weight of the step from each document; a jump weighs less than any edge.
    steps = np.full(lists.count, -np.inf)
    steps[path.order[:-1]] = np.where(path.jumps[1:], -np.inf, path.weights[1:])
    own = np.arange(lists.count)
    for column in range(lists.width):
        others = lists.ids[:, column].astype(np.int64)
        first = np.where(place[own] < place[others], own, others)
        assert (steps[first] >= lists.similarities[:, column]).all()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--graph", nargs="+", default=["topics", "random"], choices=["topics", "random"])
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    ensure_compiled(RANKING | TRAVERSAL)
    traversal(given.documents, given.graph, given.rounds)
