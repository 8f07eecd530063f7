"""In-Context Pretraining (arXiv 2310.10638): a path through the graph of nearest neighbours, so that related documents
share a context."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from paribus.native.loader import address, kernel, table_zeros
from paribus.ordering.neighbours.graph import Graph, neighbour_graph
from paribus.ordering.neighbours.lists import NeighbourLists
from paribus.ordering.neighbours.whole import whole_lists
from paribus.ordering.seeding import JUMPS, seed_sequence

_WORD = 64


@dataclass(frozen=True)
class DocumentPath:
    """A walk that meets every document once."""

    order: npt.NDArray[np.int64]
    """Document ids, (n,)."""
    weights: npt.NDArray[np.float32]
    """Weight of the edge from the document before, (n,); 0 where the document was landed on by a jump."""
    landed: npt.NDArray[np.uint64]
    """Bit map of the positions that were landed on; the first one was."""
    edges: int
    """Edges of the graph."""

    @property
    def jumps(self) -> npt.NDArray[np.bool_]:
        """Whether the document was landed on, (n,)."""
        bits = np.unpackbits(self.landed.astype("<u8").view(np.uint8), bitorder="little")
        return bits[: len(self.order)].astype(bool)


def traverse(neighbours: npt.ArrayLike, similarities: npt.ArrayLike, *, seed: int = 0) -> npt.NDArray[np.int64]:
    """Order of documents along the path of Algorithm 1 of In-Context Pretraining (arXiv 2310.10638), (n,) int64.

    `neighbours` is (n, k) int, negative where there is none; `similarities` is (n, k) float. The graph is undirected
    (see `Graph`). The path starts at a document of minimum degree and goes on to the heaviest unvisited neighbour, of
    equal ones to the smallest document id. Where none is left it jumps to an unvisited document of minimum degree.
    Degrees are those of the whole graph; `seed` chooses among equal degrees.

    Time is linear in edges. The result is a pure function of the arguments.

    Raises ValueError for shapes that differ, a document id of n or more, a similarity that is not a finite number, or
    a negative seed.
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

    `work` is a directory for whole lists, where those on disk are not.
    """
    whole = whole_lists(lists.ids, lists.similarities, kept=kept, take=neighbours, work=work)
    path = walk(neighbour_graph(whole), seed=seed)
    return DocumentPath(np.flatnonzero(kept)[path.order], path.weights, path.landed, path.edges)


def walk(graph: Graph, *, seed: int) -> DocumentPath:
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


def _landings(graph: Graph, seed: int) -> tuple[npt.NDArray[np.uint32], int]:
    """Documents in the order in which jumps want them, by degree, in random order among equals; and the edges.

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
