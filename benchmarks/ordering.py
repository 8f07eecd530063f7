"""Time, memory and quality of document ordering, with what it promises checked.

python benchmarks/ordering.py traversal [--documents 1000000 10000000] [--graph topics random] [--rounds 3]
python benchmarks/ordering.py released [--documents 100000 1000000]
python benchmarks/ordering.py whole [--documents 100000] [--dimensions 768] [--workers 2]

`traversal` walks the path of In-Context Pretraining over memory-mapped lists of 20 neighbours, on one core, and once
more over arrays whose lists are in any order. `released` puts the released rule, written as plainly as it is, beside it
on the same graph. `whole` goes from embeddings to the order.
"""

import argparse
import resource
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from released_rule import released_order

from paribus.config.groups.ordering import NeighboursConfig
from paribus.engine.local import LocalEngine
from paribus.native.loader import ensure_compiled
from paribus.native.registry import RANKING, TRAVERSAL
from paribus.ordering import traverse
from paribus.ordering.arrays import JUMPS, NeighbourLists, create_lists, permutation, unit_rows, write_neighbours
from paribus.ordering.duplicates import embedding_pairs, group
from paribus.ordering.embeddings import Embeddings, EmbeddingsWriter
from paribus.ordering.in_context import DocumentPath, neighbour_graph, path_through, walk, whole_lists
from paribus.ordering.neighbours import RECALLED, NeighbourSearch

Result = TypeVar("Result")
NEIGHBOURS = 20
TOPIC = 200
THE_PAPERS = 235_266_464
RELEASED_NEIGHBOURS, RELEASED_CHAIN = 9, 21


@dataclass
class Measured:
    """Seconds of parts of one round, and the memory of the process's own that it took at most."""

    seconds: dict[str, float] = field(default_factory=dict)
    system: float = 0.0
    """Seconds of them in the operating system, which hands out memory."""
    bytes: int = 0

    @property
    def total(self) -> float:
        """Seconds of all parts."""
        return sum(self.seconds.values())


def anonymous_memory() -> int:
    """Bytes of memory that are not pages of a file."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this system does not say how much anonymous memory a process has")


@contextmanager
def watched(measured: Measured) -> Iterator[None]:
    """Note the most memory taken meanwhile."""
    before, done = anonymous_memory(), threading.Event()

    def watch() -> None:
        while not done.wait(0.01):
            measured.bytes = max(measured.bytes, anonymous_memory() - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def timed(measured: Measured, part: str, function: Callable[..., Result], *arguments: object) -> Result:
    """The result of a part, whose seconds are noted."""
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_stime, time.perf_counter()
    result = function(*arguments)
    measured.seconds[part] = measured.seconds.get(part, 0.0) + time.perf_counter() - started
    measured.system += resource.getrusage(resource.RUSAGE_SELF).ru_stime - before
    return result


def write_graph(directory: Path, documents: int, graph: str) -> NeighbourLists:
    """Lists of 20 neighbours, none of them kept in memory: of 200 documents of a topic, or of all at random.

    Documents of a topic lie anywhere in the corpus. Weights fall along a list, and no two of a list are equal.
    """
    generator = np.random.default_rng(0)
    ids, weights = create_lists(directory, documents, NEIGHBOURS)
    members = generator.permutation(documents).astype(np.int32)
    place = np.empty(documents, dtype=np.int32)
    place[members] = np.arange(documents, dtype=np.int32)
    for start in range(0, documents, 1_000_000):
        part = slice(start, min(start + 1_000_000, documents))
        shape = (part.stop - part.start, NEIGHBOURS)
        own = np.arange(part.start, part.stop, dtype=np.int32)[:, None]
        if graph == "random":
            chosen = generator.integers(0, documents, shape, dtype=np.int32)
        else:
            topic = place[part][:, None] // TOPIC * TOPIC
            chosen = members[np.minimum(topic + generator.integers(0, TOPIC, shape), documents - 1)]
        ids[part] = np.where(chosen == own, (own + 1) % documents, chosen)
        steps = np.arange(NEIGHBOURS) + 0.9 * generator.random(shape)
        weights[part] = 1 - steps / NEIGHBOURS
    return NeighbourLists(directory)


def traverse_once(lists: NeighbourLists) -> tuple[DocumentPath, Measured]:
    """The path and what its parts took."""
    measured = Measured()
    with watched(measured):
        whole = timed(measured, "check", whole_lists, lists.ids, lists.similarities)
        graph = timed(measured, "graph", neighbour_graph, whole)
        path = timed(measured, "walk", partial(walk, seed=0), graph)
    return path, measured


def check_path(path: DocumentPath, lists: NeighbourLists) -> None:
    """Every document once, and after each comes the heaviest neighbour that was not visited, in both directions."""
    place = np.full(lists.count, -1, dtype=np.int64)
    place[path.order] = np.arange(lists.count)
    assert (place >= 0).all() and len(path.order) == lists.count
    # Weight of the step from each document; a jump weighs less than any edge.
    steps = np.full(lists.count, -np.inf)
    steps[path.order[:-1]] = np.where(path.jumps[1:], -np.inf, path.weights[1:])
    for column in range(lists.width):
        others, weights = lists.ids[:, column].astype(np.int64), lists.similarities[:, column]
        own = np.arange(lists.count)
        first = np.where(place[own] < place[others], own, others)
        assert (steps[first] >= weights).all()


def traversal(documents: list[int], graphs: list[str], rounds: int) -> None:
    """A line for each graph and size."""
    for graph in graphs:
        for count in documents:
            with tempfile.TemporaryDirectory(dir=".") as directory:
                lists = write_graph(Path(directory), count, graph)
                results = [traverse_once(lists) for _ in range(rounds)]
                check_path(results[0][0], lists)
                assert all(np.array_equal(path.order, results[0][0].order) for path, _ in results)
                disordered = traverse_arrays(lists, results[0][0], rounds)
            report_traversal(graph, count, results[0][0], [measured for _, measured in results])
            sys.stdout.write(f"  as arrays, lists in any order: {count / disordered / 1e6:.2f}M documents/s\n")
            sys.stdout.flush()


def traverse_arrays(lists: NeighbourLists, path: DocumentPath, rounds: int) -> float:
    """Median seconds of `traverse` for lists shuffled alike, whose path is the same."""
    shuffled = np.random.default_rng(1).permutation(lists.width)
    ids, weights = lists.ids[:, shuffled], lists.similarities[:, shuffled]
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        order = traverse(ids, weights, seed=0)
        seconds.append(time.perf_counter() - started)
        assert np.array_equal(order, path.order)
    return statistics.median(seconds)


def report_traversal(graph: str, count: int, path: DocumentPath, rounds: list[Measured]) -> None:
    """Medians over rounds, and what the slope makes of the paper's corpus."""
    seconds = statistics.median(measured.total for measured in rounds)
    least = min(measured.total for measured in rounds)
    parts = {name: statistics.median(m.seconds[name] for m in rounds) for name in rounds[0].seconds}
    told = ", ".join(f"{name} {1e9 * value / count:.0f}" for name, value in parts.items())
    system = statistics.median(measured.system for measured in rounds)
    memory = max(measured.bytes for measured in rounds) / count
    sys.stdout.write(
        f"{graph}, {count:,} documents: {count / seconds / 1e6:.2f}M documents/s (best {count / least / 1e6:.2f}M), "
        f"ns a document: {told}, of it {1e9 * system / count:.0f} in the system; {memory:.0f} bytes a document; "
        f"{path.edges:,} edges, {path.jumps[1:].sum():,} jumps; "
        f"at this pace {THE_PAPERS:,} documents take {THE_PAPERS * seconds / count / 60:.1f} min and "
        f"{THE_PAPERS * memory / 1e9:.0f} GB\n"
    )
    sys.stdout.flush()


def released(documents: list[int]) -> None:
    """The compiled path beside the released rule in plain Python, on one graph of topics."""
    for count in documents:
        with tempfile.TemporaryDirectory(dir=".") as directory:
            lists = write_graph(Path(directory), count, "topics")
            path, ours = traverse_once(lists)
            check_path(path, lists)
            plain = lists.ids[:, :RELEASED_NEIGHBOURS].tolist()
            random = permutation(count, JUMPS, 0).tolist()
            theirs = Measured()
            order = timed(theirs, "released", released_order, plain, RELEASED_CHAIN, random)
            assert sorted(order) == list(range(count))
        sys.stdout.write(
            f"{count:,} documents: path {ours.total:.2f} s, released rule in Python {theirs.total:.1f} s "
            f"({theirs.total / ours.total:.0f} times)\n"
        )
        sys.stdout.flush()


def write_vectors(directory: Path, documents: int, dimensions: int) -> Embeddings:
    """Unit vectors about one topic for 100 documents, which spread in 128 directions and a little in all others."""
    generator = np.random.default_rng(0)
    directions = generator.normal(size=(128, dimensions)).astype(np.float32) / np.sqrt(128)
    topics = generator.normal(size=(max(1, documents // 100), 128)).astype(np.float32)
    directory.mkdir()
    writer = EmbeddingsWriter(directory)
    for number, start in enumerate(range(0, documents, 10_000)):
        rows = min(10_000, documents - start)
        inside = topics[generator.integers(0, len(topics), rows)] + 0.7 * generator.normal(size=(rows, 128))
        vectors = inside.astype(np.float32) @ directions + 0.05 * generator.normal(size=(rows, dimensions))
        np.save(directory / f"part_{number}.npy", unit_rows(vectors).astype(np.float16))
        writer.add([directory / f"part_{number}.npy"])
    writer.close()
    return Embeddings(directory)


def whole(documents: int, dimensions: int, workers: int) -> None:
    """From embeddings to the order, with the share of each part, for the index the rule picks and for exact search."""
    for index in ("auto", "flat"):
        with tempfile.TemporaryDirectory(dir=".") as name:
            root = Path(name)
            embeddings = write_vectors(root / "embeddings", documents, dimensions)
            (root / "work").mkdir()
            (root / "lists").mkdir()
            measured = Measured()
            with watched(measured):
                recall, plan = search(embeddings, index, workers, root, measured)
                lists = NeighbourLists(root / "lists")
                kept = timed(measured, "duplicates", without_duplicates, lists)
                path = timed(measured, "path", partial(path_through, seed=0, work=root), lists, kept, NEIGHBOURS)
            parts = ", ".join(f"{part} {value:.1f} s" for part, value in measured.seconds.items())
            sys.stdout.write(
                f"{documents:,} x {dimensions}, {workers} workers, {plan}: {measured.total:.0f} s ({parts}); "
                f"recall@{RECALLED} {recall:.4f}; {measured.bytes / 1e6:.0f} MB; {len(path.order):,} documents in "
                f"order, mean similarity of adjacent {path.weights[1:].mean():.3f}\n"
            )
            sys.stdout.flush()


def search(embeddings: Embeddings, index: str, workers: int, root: Path, measured: Measured) -> tuple[float, str]:
    """Write the lists; the recall of a sample and the index."""
    config = NeighboursConfig(index=index)  # type: ignore[arg-type, call-arg]
    task = NeighbourSearch(embeddings, config, LocalEngine(workers), root / "work", lambda *_: None)
    plan, blocks, sample = timed(measured, "neighbours", task.run)
    parts = list(zip(*map(blocks.read, range(blocks.count)), strict=True))
    write_neighbours(root / "lists", np.concatenate(parts[0]), np.concatenate(parts[1]))
    recall = sample.recall(NeighbourLists(root / "lists"))
    return (1.0 if recall is None else recall), str(plan)


def without_duplicates(lists: NeighbourLists) -> npt.NDArray[np.bool_]:
    """Documents that stay, by the default threshold."""

    return group(lists.count, embedding_pairs(lists, 0.95)).kept


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    one = actions.add_parser("traversal")
    one.add_argument("--documents", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    one.add_argument("--graph", nargs="+", default=["topics", "random"], choices=["topics", "random"])
    one.add_argument("--rounds", type=int, default=3)
    two = actions.add_parser("released")
    two.add_argument("--documents", type=int, nargs="+", default=[100_000, 1_000_000])
    three = actions.add_parser("whole")
    three.add_argument("--documents", type=int, default=100_000)
    three.add_argument("--dimensions", type=int, default=768)
    three.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    ensure_compiled(RANKING | TRAVERSAL)
    if given.action == "traversal":
        traversal(given.documents, given.graph, given.rounds)
    elif given.action == "released":
        released(given.documents)
    else:
        whole(given.documents, given.dimensions, given.workers)
