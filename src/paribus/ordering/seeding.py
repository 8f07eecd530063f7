"""Seeded generators: PCG64 with an explicit seed sequence, one independent stream a purpose."""

import numpy as np

SHUFFLE, JUMPS, CONTEXTS, CENTROIDS, CLUSTERS, SAMPLES, MIXED, STRETCHES, PLACES = range(9)
"""Purposes. Two purposes with one seed never share random numbers."""


def seed_sequence(purpose: int, *seeds: int) -> np.random.SeedSequence:
    """The seed sequence of a purpose; `seeds` are non-negative."""
    return np.random.SeedSequence(entropy=seeds, spawn_key=(purpose,))


def permutation(count: int, purpose: int, *seeds: int) -> np.ndarray:
    """A uniformly random permutation of range(count), (count,) int64."""
    generator = np.random.Generator(np.random.PCG64(seed_sequence(purpose, *seeds)))
    return generator.permutation(np.arange(count, dtype=np.int64))
