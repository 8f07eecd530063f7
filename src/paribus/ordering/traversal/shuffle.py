"""A stateless permutation of contexts.

Contexts are shuffled so that related documents share a context but adjacent contexts are unrelated (In-Context
Pretraining, arXiv 2310.10638). The place of one context is computed alone, so a batch is a pure function of its step
and no permutation is kept in memory.
"""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from paribus.ordering.seeding import CONTEXTS, seed_sequence

ROUNDS = 10
MIN_HALF_BITS = 2
Words = npt.NDArray[np.uint64]


def permute(indices: npt.ArrayLike, n: int, *, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """Images of `indices` under a pseudo-random permutation of range(n) keyed by (seed, epoch), int64, same shape.

    A Feistel network over the next even power of two (Luby and Rackoff, 1988) with cycle walking (Black and Rogaway,
    2002): values outside range(n) are permuted again until they fall inside.

    Raises ValueError for an index outside range(n).
    """
    keys = _keys(seed, epoch)
    return _walked(indices, n, lambda values, half_bits: _feistel(values, keys, half_bits))


def unpermute(images: npt.ArrayLike, n: int, *, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """The indices whose images under `permute` are `images`, int64, same shape.

    Raises ValueError for an image outside range(n).
    """
    keys = _keys(seed, epoch)[::-1]

    def inverse(values: Words, half_bits: int) -> Words:
        return _swapped(_feistel(_swapped(values, half_bits), keys, half_bits), half_bits)

    return _walked(images, n, inverse)


def _keys(seed: int, epoch: int) -> Words:
    return seed_sequence(CONTEXTS, seed, epoch).generate_state(ROUNDS, np.uint64).astype(np.uint64)


def _walked(indices: npt.ArrayLike, n: int, permuted: Callable[[Words, int], Words]) -> npt.NDArray[np.int64]:
    """`permuted`, a permutation of range(4 ** half_bits), applied until the values are in range(n)."""
    values = np.array(indices, dtype=np.int64)
    if values.size and (values.min() < 0 or values.max() >= n):
        raise ValueError(f"indices must be in range({n}), not from {values.min()} to {values.max()}")
    half_bits = max(MIN_HALF_BITS, (max(n - 1, 1).bit_length() + 1) // 2)
    walked = permuted(values.reshape(-1).astype(np.uint64), half_bits)
    outside = np.flatnonzero(walked >= n)
    while len(outside):
        walked[outside] = permuted(walked[outside], half_bits)
        outside = outside[walked[outside] >= n]
    return walked.astype(np.int64).reshape(values.shape)


def _feistel(values: Words, keys: Iterable[np.uint64], half_bits: int) -> Words:
    """A permutation of range(4 ** half_bits); with the keys reversed and the halves swapped, its inverse."""
    bits, mask = np.uint64(half_bits), np.uint64((1 << half_bits) - 1)
    left, right = values >> bits, values & mask
    for key in keys:
        left, right = right, left ^ (_mix(right ^ key) & mask)
    return (left << bits) | right


def _swapped(values: Words, half_bits: int) -> Words:
    """The two halves of the bits exchanged."""
    bits, mask = np.uint64(half_bits), np.uint64((1 << half_bits) - 1)
    return ((values & mask) << bits) | (values >> bits)


def _mix(values: Words) -> Words:
    """The finalizer of splitmix64 (Steele, Lea and Flood, 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
