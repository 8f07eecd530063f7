"""The undirected graph of nearest neighbours.

In-Context Pretraining (arXiv 2310.10638), section 2.2: documents are nodes, {i, j} is an edge if j is among i's
neighbours or i among j's, and its weight is the cosine of the two embeddings.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Graph:
    """Adjacency lists end to end. A document's edges go from the heaviest down, equal ones by document id."""

    offsets: npt.NDArray[np.int64]
    """(n + 1,): the edges of document i are offsets[i] to offsets[i + 1]."""
    targets: npt.NDArray[np.int64]
    """(2E,): the document at the other end."""
    weights: npt.NDArray[np.float64]
    """(2E,)."""

    @property
    def degrees(self) -> npt.NDArray[np.int64]:
        """Distinct neighbours of each document, (n,)."""
        return np.diff(self.offsets)


def build_graph(neighbours: npt.ArrayLike, similarities: npt.ArrayLike) -> Graph:
    """Graph of lists of neighbours, in O(E log E).

    `neighbours` is (n, k) int, negative where there is none; `similarities` is (n, k) float. Edges of a document to
    itself are left out. Where the two directions of an edge disagree, its weight is the larger one.

    Raises ValueError for shapes that differ, a document id of n or more, or a similarity that is not a finite number.
    """
    source, target, weight = _edges(np.asarray(neighbours), np.asarray(similarities))
    count = len(np.asarray(neighbours))
    low, high, weight = _distinct(np.minimum(source, target), np.maximum(source, target), weight, count)
    # In this order the targets of each source ascend, and a stable sort keeps that among equal weights.
    source, target = np.concatenate([high, low]), np.concatenate([low, high])
    weight = np.concatenate([weight, weight])
    heaviest_first = np.lexsort((-weight, source))
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(source, minlength=count), out=offsets[1:])
    return Graph(offsets, target[heaviest_first], weight[heaviest_first])


def _edges(
    neighbours: npt.NDArray[np.generic], similarities: npt.NDArray[np.generic]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    if neighbours.ndim != 2 or neighbours.shape != similarities.shape:
        raise ValueError(f"neighbours {neighbours.shape} and similarities {similarities.shape} must both be (n, k)")
    if neighbours.size and not np.issubdtype(neighbours.dtype, np.integer):
        raise ValueError(f"neighbours must be integers, not {neighbours.dtype}")
    if neighbours.size and neighbours.max() >= len(neighbours):
        raise ValueError(f"neighbours has document {neighbours.max()}, but only {len(neighbours)} rows")
    source = np.repeat(np.arange(len(neighbours), dtype=np.int64), neighbours.shape[1])
    target = neighbours.reshape(-1).astype(np.int64)
    real = (target >= 0) & (target != source)
    weight = similarities.reshape(-1)[real].astype(np.float64)
    if not np.isfinite(weight).all():
        raise ValueError("similarities must be finite numbers wherever there is a neighbour")
    return source[real], target[real], weight


def _distinct(
    low: npt.NDArray[np.int64], high: npt.NDArray[np.int64], weight: npt.NDArray[np.float64], count: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Each edge once, with its largest weight, by its lower and then its higher end."""
    if not len(low):
        return low, high, weight
    edge = low * count + high
    by_edge = np.argsort(edge)
    edge = edge[by_edge]
    first = np.flatnonzero(np.diff(edge, prepend=-1))
    return edge[first] // count, edge[first] % count, np.maximum.reduceat(weight[by_edge], first)
