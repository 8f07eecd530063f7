"""The order of the corpus."""

import numpy as np
import numpy.typing as npt


def as_in_corpus(kept: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Document indices of the `kept` documents, (n,) bool, in corpus order, (m,) int64."""
    return np.flatnonzero(kept).astype(np.int64)
