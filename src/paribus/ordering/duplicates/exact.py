"""Documents of equal text, by a 128-bit digest of it."""

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from paribus.ordering.arrays import save_array
from paribus.ordering.parts import CorpusPart

WORDS = 2
"""A digest is so many numbers of 64 bits."""


def digests(contents: Iterable[bytes]) -> npt.NDArray[np.uint64]:
    """BLAKE2b of each content, (n, 2) uint64."""
    joined = b"".join(hashlib.blake2b(content, digest_size=8 * WORDS).digest() for content in contents)
    return np.frombuffer(joined, dtype="<u8").reshape(-1, WORDS)


def digest_part(part: CorpusPart) -> CorpusPart:
    """Write the digests of the texts of a part, unless that is done."""
    if not part.target.exists():
        save_array(part.target, digests(text.encode() for text in part.texts()))
    return part
