"""The masks with which kernels cut the key of a short pre-token out of sixteen bytes of text."""

import numpy as np
import numpy.typing as npt


def key_masks() -> npt.NDArray[np.uint64]:
    """Bytes that a pre-token of each length fills (17, 2); none for 16, which stands for all longer ones."""
    filled = np.arange(16) < np.arange(17)[:, None]
    filled[16] = False
    return np.where(filled, np.uint8(0xFF), np.uint8(0)).view(np.uint64)
