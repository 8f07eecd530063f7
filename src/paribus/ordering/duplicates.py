"""Near-duplicate removal (In-Context Pretraining, arXiv 2310.10638, Appendix A.1)."""

import numpy as np
import numpy.typing as npt


def first_of_duplicates(
    neighbours: npt.NDArray[np.int64], similarities: npt.NDArray[np.float32], *, threshold: float
) -> npt.NDArray[np.bool_]:
    """Which documents stay, (n,) bool.

    Documents are near duplicates if a neighbour's cosine is above `threshold`; a group is a connected component of
    such pairs, and of each group the document that comes first in the corpus stays.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = len(neighbours)
    rows, columns = np.nonzero((neighbours >= 0) & (similarities > threshold))
    pairs = coo_array((np.ones(len(rows), dtype=bool), (rows, neighbours[rows, columns])), shape=(count, count))
    _, group = connected_components(pairs, directed=False)
    kept = np.zeros(count, dtype=bool)
    kept[np.unique(group, return_index=True)[1]] = True
    return kept
