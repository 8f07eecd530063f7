"""Groups of duplicates: connected components of pairs, of which the first document of the corpus stays."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from paribus.ordering.duplicates.pairs import Indices, Pairs


@dataclass(frozen=True)
class Groups:
    """Which document stands for each document."""

    first: Indices
    """(n,) first document of the group of each document, which stays; a document without duplicates is its own."""
    similarities: npt.NDArray[np.float32]
    """(n,) similarity to the most similar document that linked it to its group; 0 without duplicates."""

    @property
    def kept(self) -> npt.NDArray[np.bool_]:
        """(n,) documents that stay."""
        return np.asarray(self.first == np.arange(len(self.first)))

    @property
    def sizes(self) -> Indices:
        """Documents of each group of two or more, in the order of their first documents."""
        sizes = np.bincount(self.first, minlength=1)
        return sizes[sizes > 1]


def group(count: int, pairs: Pairs) -> Groups:
    """Groups of `count` documents; time and memory are linear in documents and pairs."""
    linked = coo_array((np.ones(len(pairs.first), dtype=bool), (pairs.first, pairs.second)), shape=(count, count))
    _, labels = connected_components(linked, directed=False)
    similarities = np.zeros(count, np.float32)
    np.maximum.at(similarities, pairs.first, pairs.similarities)
    np.maximum.at(similarities, pairs.second, pairs.similarities)
    return Groups(np.unique(labels, return_index=True)[1][labels].astype(np.int64), similarities)
