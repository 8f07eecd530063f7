"""Rows of unit length."""

from typing import Any

import numpy as np
import numpy.typing as npt


def unit_rows(vectors: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float32]:
    """The rows of (n, d) `vectors` scaled to length 1, float32; a row of zeros stays one (it is like no document)."""
    exact = vectors.astype(np.float64)
    lengths = np.sqrt(np.einsum("nd,nd->n", exact, exact))[:, None]
    unit = np.divide(exact, lengths, out=np.zeros_like(exact), where=lengths > 0)
    return np.asarray(unit, dtype=np.float32)
