"""In-Context Pretraining (arXiv 2310.10638): a path through the graph of nearest neighbours, so that related documents
share a context.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paribus.native.loader import address, kernel, table_zeros
from paribus.ordering.arrays import JUMPS, NEIGHBOURS, SIMILARITIES, NeighbourLists, create_array, seed_sequence

_WORD = 64
_SHARES = 10
"""Edges are sorted a share of about a tenth at a time, so that this takes little memory beside the graph."""
_RECORD_WORDS = 3
MOST_DOCUMENTS = 2**31 - 1
_SORTED = -1


@dataclass(frozen=True)
class DocumentPath:
    """A path through all documents, each met once."""

    order: npt.NDArray[np.int64]
    """Document ids, (n,)."""
    weights: npt.NDArray[np.float32]
    """Weight of the edge from the document before, (n,); 0 where the path landed on the document by a jump."""
    landed: npt.NDArray[np.uint64]
    """Bit map of the positions that the path landed on, the first among them."""
    edges: int
    """Edges of the graph."""

    @property
    def jumps(self) -> npt.NDArray[np.bool_]:
        """True where the path landed on the document, (n,)."""
        bits = np.unpackbits(self.landed.astype("<u8").view(np.uint8), bitorder="little")
        return bits[: len(self.order)].astype(bool)


def traverse(neighbours: npt.ArrayLike, similarities: npt.ArrayLike, *, seed: int = 0) -> npt.NDArray[np.int64]:
    """Order of documents along the path of Algorithm 1 of In-Context Pretraining (arXiv 2310.10638), (n,) int64.

    `neighbours` is (n, k) int, negative where there is none; `similarities` is (n, k) float. The graph is
    undirected (see `NeighbourGraph`). The path starts at a document of minimum degree and goes on to the heaviest
    unvisited neighbour, of equal ones to the smallest document id. Where none is left it jumps to an unvisited
    document of minimum degree. Degrees are those of the whole graph; `seed` chooses among equal degrees.

    Time is linear in edges. The result is a pure function of the arguments.

    Raises ValueError for shapes that differ, a document id of n or more, a similarity that is not a finite number,
    or a negative seed.
    """
    return find_path(neighbours, similarities, seed=seed).order


def find_path(neighbours: npt.ArrayLike, similarities: npt.ArrayLike, *, seed: int) -> DocumentPath:
    """The path of `traverse` with its weights."""
    ids, weights = np.asarray(neighbours), np.asarray(similarities)
    if ids.size and not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(f"neighbours must be integers, not {ids.dtype}")
    return walk(neighbour_graph(whole_lists(ids if ids.size else ids.astype(np.int32), weights)), seed=seed)


def path_through(
    lists: NeighbourLists, kept: npt.NDArray[np.bool_], neighbours: int, *, seed: int, work: Path | None = None
) -> DocumentPath:
    """The path over the kept documents, numbered as in `lists`, with the first `neighbours` kept ones of each list.

    `work` is a directory for lists of kept documents alone.
    """
    whole = whole_lists(lists.ids, lists.similarities, kept=kept, take=neighbours, work=work)
    path = walk(neighbour_graph(whole), seed=seed)
    return DocumentPath(np.flatnonzero(kept)[path.order], path.weights, path.landed, path.edges)


@dataclass(frozen=True)
class WholeLists:
    """Neighbours among existing documents, with finite weights; an id below 0, or the document's own, is none."""

    ids: npt.NDArray[np.int32]
    """(n, k), contiguous; memory-mapped where the lists are on disk."""
    weights: npt.NDArray[np.float32]
    """(n, k), contiguous."""
    exact: npt.NDArray[np.float64] | None
    """(n, k) weights in double precision; None where `weights` are exact."""
    is_sorted: bool
    """True if every list goes from the heaviest edge down and of equal ones from the smallest id up."""
    range_sizes: npt.NDArray[np.int64]
    """Edges that lead to the documents j of range j >> `shift`."""
    shift: int

    @property
    def edges(self) -> int:
        return int(self.range_sizes.sum())


# In-Context Pretraining (arXiv 2310.10638), section 2.2: documents are nodes, {i, j} is an edge if j is among i's
# neighbours or i among j's, and its weight is the cosine of the two embeddings.
@dataclass(frozen=True)
class NeighbourGraph:
    """The edges of a document: its own list, and its listings, which are the lists it is in.

    An edge of both directions is in both and counts once; where the two disagree, its weight is the larger one.
    """

    lists: WholeLists
    begin: npt.NDArray[np.int64]
    """(n + 1,): the listings of document i are begin[i] to begin[i + 1]."""
    listings: npt.NDArray[np.uint64]
    """A key for each list a document is in, of that list's document and the weight: `kernels.edge_key`."""

    def degrees(self) -> npt.NDArray[np.uint32]:
        """Distinct neighbours of each document, (n,)."""
        ids, members = self.lists.ids, np.zeros(8, dtype=np.uint64)
        degrees = table_zeros((len(ids),), np.uint32)
        arrays = (self.begin, self.listings, members, degrees)
        kernel("count_edges")(address(ids), *ids.shape, *map(address, arrays))
        return degrees


def walk(graph: NeighbourGraph, *, seed: int) -> DocumentPath:
    """Algorithm 1 on a graph. 28 bytes a document beside the graph's own."""
    ids, weights = graph.lists.ids, graph.lists.weights
    documents, width = ids.shape
    landings, edges = _landings(graph, seed)
    order, steps = table_zeros((documents,), np.int64), table_zeros((documents,), np.float32)
    words = documents // _WORD + 1
    visited, landed = table_zeros((words,), np.uint64), table_zeros((words,), np.uint64)
    arrays = (visited, graph.begin, graph.listings, landings, order, steps, landed)
    exact = 0 if graph.lists.exact is None else address(graph.lists.exact)
    form = (exact, documents, width, int(graph.lists.is_sorted))
    kernel("walk")(address(ids), address(weights), *form, *map(address, arrays))
    return DocumentPath(order, steps, landed, edges)


def _landings(graph: NeighbourGraph, seed: int) -> tuple[npt.NDArray[np.uint32], int]:
    """Documents in the order in which jumps try them, by degree and at random among equals, and the number of edges.

    The first unvisited one is a uniformly random document of minimum degree: which documents the walk has visited
    depends on the places in this list of documents it has jumped to or passed over, never on those still to come.
    """
    degrees = graph.degrees()
    landings = table_zeros((len(degrees),), np.uint32)
    largest = int(degrees.max(initial=0))
    begin = np.zeros(largest + 2, dtype=np.int64)
    state = int(seed_sequence(JUMPS, seed).generate_state(1, np.uint64)[0])
    kernel("sort_landings")(address(degrees), len(degrees), address(begin), largest, state, address(landings))
    return landings, int(degrees.sum(dtype=np.int64)) // 2


def neighbour_graph(lists: WholeLists) -> NeighbourGraph:
    """The graph of whole lists, in time linear in edges.

    With 20 neighbours it takes 168 bytes a document, 192 while it is made.
    """
    documents = len(lists.ids)
    begin, listings = table_zeros((documents + 1,), np.int64), table_zeros((lists.edges,), np.uint64)
    capacity = int(lists.range_sizes.max()) + lists.edges // _SHARES
    records = table_zeros((_RECORD_WORDS * capacity,), np.int32)
    counts = np.zeros((1 << lists.shift) + 1, dtype=np.int64)
    placed = 0
    for first, last in _shares(lists.range_sizes, capacity):
        _partition_edges(lists, first, last, records)
        form = (first, last, lists.shift, documents, placed)
        targets = (address(begin), address(listings), address(counts))
        placed = kernel("place_edges")(address(records), address(lists.range_sizes), *form, *targets)
    begin[documents] = placed
    return NeighbourGraph(lists, begin, listings)


def _shares(sizes: npt.NDArray[np.int64], capacity: int) -> Iterator[tuple[int, int]]:
    """(first, last) of consecutive ranges with at most `capacity` edges together."""
    first, held = 0, 0
    for number, size in enumerate(sizes.tolist()):
        if held + size > capacity:
            yield first, number
            first, held = number, 0
        held += size
    yield first, len(sizes)


def _partition_edges(lists: WholeLists, first: int, last: int, records: npt.NDArray[np.int32]) -> None:
    """Write the edges that lead to ranges `first` to `last` into `records`, range after range."""
    documents, width = lists.ids.shape
    sizes = lists.range_sizes[first:last]
    cursors = np.zeros(len(lists.range_sizes), dtype=np.int64)
    cursors[first:last] = _RECORD_WORDS * (np.cumsum(sizes) - sizes)
    reciprocal = -(-(2**64) // width) if width > 1 else 0
    bounds = (first << lists.shift, min(last << lists.shift, documents))
    arrays = (address(lists.ids), address(lists.weights))
    kernel("part_edges")(
        *arrays, documents, width, reciprocal, lists.shift, *bounds, address(cursors), address(records)
    )


def whole_lists(
    ids: npt.NDArray[Any],
    weights: npt.NDArray[Any],
    *,
    kept: npt.NDArray[np.bool_] | None = None,
    take: int | None = None,
    work: Path | None = None,
) -> WholeLists:
    """The first `take` neighbours of every kept document among kept documents, numbered among these.

    `ids` (integers) and `weights` (floats) are (n, k), `kept` is (n,). With all documents and neighbours the lists stay
    as they are; otherwise they are written anew in single precision, heaviest edge first and with -1 after the last,
    to mapped files in `work` if it is given, which are unlinked at once.

    Raises ValueError for shapes that differ, more than 2**31 - 1 documents, a document id of n or more, or a similarity
    that is not a finite number.
    """
    if ids.ndim != 2 or ids.shape != weights.shape:
        raise ValueError(f"neighbours {ids.shape} and similarities {weights.shape} must both be (n, k)")
    if len(ids) > MOST_DOCUMENTS:
        raise ValueError(f"{len(ids)} documents are more than the {MOST_DOCUMENTS} that a path can be found through")
    narrow, single = np.ascontiguousarray(_narrow(ids)), np.ascontiguousarray(_single(weights))
    if (kept is None or bool(kept.all())) and take in (None, ids.shape[1]):
        return _survey(narrow, single, _exact(weights, single))
    mask = np.ones(len(ids), dtype=bool) if kept is None else kept
    width = ids.shape[1] if take is None else min(take, ids.shape[1])
    return _survey(*_compact(narrow, single, mask, width, work), None)


def _narrow(ids: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """Ids as int32; one that does not fit becomes -1 or the largest int32, which no document has."""
    if ids.dtype == np.int32:
        return ids.view(np.int32)
    if ids.size and (ids.max() > MOST_DOCUMENTS or ids.min() < -MOST_DOCUMENTS):
        ids = np.clip(ids, -1, MOST_DOCUMENTS)
    narrow: npt.NDArray[np.int32] = ids.astype(np.int32)
    return narrow


def _single(weights: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    if weights.dtype == np.float32:
        return weights
    with np.errstate(over="ignore"):
        single: npt.NDArray[np.float32] = weights.astype(np.float32)
    # What is finite in double precision stays so; the exact weights decide between the largest.
    largest = np.float32(np.finfo(np.float32).max)
    return np.clip(single, -largest, largest, out=single, where=np.isfinite(weights))


def _exact(weights: npt.NDArray[Any], single: npt.NDArray[np.float32]) -> npt.NDArray[np.float64] | None:
    if weights.dtype == np.float32:
        return None
    exact = np.ascontiguousarray(weights, dtype=np.float64)
    return None if np.array_equal(exact, single, equal_nan=True) else exact


def _survey(
    ids: npt.NDArray[np.int32], weights: npt.NDArray[np.float32], exact: npt.NDArray[np.float64] | None
) -> WholeLists:
    documents, width = ids.shape
    # Ranges of 2,048 documents, whose listings fit into a second-level cache, or at most 8,192 larger ranges.
    shift = max(11, (documents - 1).bit_length() - 13)
    sizes = np.zeros((max(documents - 1, 0) >> shift) + 1, dtype=np.int64)
    place = kernel("survey_lists")(address(ids), address(weights), documents, width, shift, address(sizes))
    if place >= 0:
        raise _entry_error(ids.reshape(-1)[place], documents)
    # Lists that are sorted in single precision may not be in double precision.
    return WholeLists(ids, weights, exact, place == _SORTED and exact is None, sizes, shift)


def _compact(
    ids: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32],
    kept: npt.NDArray[np.bool_],
    take: int,
    work: Path | None,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    documents, width = ids.shape
    numbers = np.where(kept, np.cumsum(kept, dtype=np.int32) - 1, -1).astype(np.int32)
    shape = (int(kept.sum()), take)
    compact = (_new_array(work, NEIGHBOURS, shape, np.int32), _new_array(work, SIMILARITIES, shape, np.float32))
    keys = np.zeros(take + 1, dtype=np.uint64)
    source = (address(ids), address(weights), documents, width, address(numbers), take)
    wrong = kernel("compact_lists")(*source, *map(address, compact), address(keys))
    if wrong >= 0:
        raise _entry_error(ids.reshape(-1)[wrong], documents)
    return compact


def _entry_error(document: int, documents: int) -> ValueError:
    if document >= documents:
        return ValueError(f"neighbours has document {document}, but only {documents} rows")
    return ValueError("similarities must be finite numbers wherever there is a neighbour")


def _new_array(work: Path | None, name: str, shape: tuple[int, int], kind: npt.DTypeLike) -> npt.NDArray[Any]:
    if work is None or not shape[0] * shape[1]:
        return np.empty(shape, dtype=kind)
    path = work / f"whole_{name}"
    array = create_array(path, kind, shape)
    # The mapping outlives the name, and a kill leaves no file: a resumed stage writes the lists anew.
    path.unlink()
    return array
