"""Orders that ask for no neighbours: a seeded shuffle of documents, the usual baseline, and that of the corpus."""

import numpy as np
import numpy.typing as npt

from paribus.ordering.seeding import SHUFFLE, permutation


def shuffled(kept: npt.NDArray[np.bool_], *, seed: int) -> npt.NDArray[np.int64]:
    """Document indices of the `kept` documents, (n,) bool, in shuffled order, (m,) int64."""
    documents: npt.NDArray[np.int64] = np.flatnonzero(kept).astype(np.int64)
    shuffle: npt.NDArray[np.int64] = permutation(len(documents), SHUFFLE, seed)
    return documents[shuffle]


def as_in_corpus(kept: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Document indices of the `kept` documents, (n,) bool, in corpus order, (m,) int64."""
    return np.flatnonzero(kept).astype(np.int64)
