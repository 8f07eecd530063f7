"""The usual baseline: a seeded shuffle of documents."""

import numpy as np
import numpy.typing as npt

from paribus.ordering.seeding import SHUFFLE, permutation


def shuffled(documents: int, *, seed: int) -> npt.NDArray[np.int64]:
    """Document indices in shuffled order, (documents,) int64; a pure function of both arguments."""
    return permutation(documents, SHUFFLE, seed)
