"""In-Context Pretraining (arXiv 2310.10638): a path through the graph of nearest neighbours, so that related documents
share a context."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paribus.ordering.graph import Graph, build_graph
from paribus.ordering.seeding import JUMPS, permutation


@dataclass(frozen=True)
class Path:
    """A walk that meets every document once."""

    order: npt.NDArray[np.int64]
    """Document ids, (n,)."""
    jumps: npt.NDArray[np.bool_]
    """Whether the document was reached by a jump, (n,); the first one was."""
    weights: npt.NDArray[np.float64]
    """Weight of the edge from the document before, (n,); 0 for a jump."""


def traverse(neighbours: npt.ArrayLike, similarities: npt.ArrayLike, *, seed: int = 0) -> npt.NDArray[np.int64]:
    """Order of documents along the path of Algorithm 1 of In-Context Pretraining (arXiv 2310.10638), (n,) int64.

    `neighbours` is (n, k) int, negative where there is none; `similarities` is (n, k) float. The graph is undirected
    (see `build_graph`). The path starts at a document of minimum degree and goes on to the heaviest unvisited
    neighbour, of equal ones to the smallest document id. Where none is left it jumps to an unvisited document of
    minimum degree. Degrees are those of the whole graph; `seed` chooses among equal degrees.

    O(E log E) time. The result is a pure function of the arguments.

    Raises ValueError for shapes that differ, a document id of n or more, a similarity that is not a finite number, or
    a negative seed.
    """
    return walk(build_graph(neighbours, similarities), seed=seed).order


def walk(graph: Graph, *, seed: int) -> Path:
    """Algorithm 1 on a graph."""
    count = len(graph.degrees)
    order, weights = np.empty(count, dtype=np.int64), np.zeros(count)
    jumps = np.zeros(count, dtype=bool)
    # Indexing a memoryview gives Python numbers several times faster than indexing an array.
    offsets, targets = graph.offsets.data, graph.targets.data
    visited = bytearray(count)
    landings = iter(_landings(graph, seed).data)
    edges = range(0)
    for position in range(count):
        for edge in edges:
            if not visited[targets[edge]]:
                document, weights[position] = targets[edge], graph.weights[edge]
                break
        else:
            document, jumps[position] = next(landing for landing in landings if not visited[landing]), True
        visited[document] = 1
        order[position] = document
        edges = range(offsets[document], offsets[document + 1])
    return Path(order, jumps, weights)


def _landings(graph: Graph, seed: int) -> npt.NDArray[np.int64]:
    """Documents in the order in which jumps want them: by degree, in one random order among equals.

    The first unvisited one is a uniformly random document of minimum degree: which documents the walk has visited
    depends on the places in this list of documents it has jumped to or passed over, never on those still to come.
    """
    return np.lexsort((permutation(len(graph.degrees), JUMPS, seed), graph.degrees)).astype(np.int64)


def nearest_kept(
    neighbours: npt.NDArray[np.int64], similarities: npt.NDArray[np.float32], kept: npt.NDArray[np.bool_], count: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """The first `count` neighbours of every kept document among kept documents, numbered among these.

    `kept` is (n,); the results are (kept, min(count, k)), with -1 where a document has fewer.
    """
    number = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    renumbered = number[neighbours[kept]]
    first = np.argsort(renumbered < 0, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(renumbered, first, axis=1), np.take_along_axis(similarities[kept], first, axis=1)
