"""The stateless permutation of contexts."""

import numpy as np
import pytest

from paribus.ordering.shuffle import permute, unpermute


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 100, 255, 256, 257, 1000, 4097, 100_003])
def test_it_is_a_permutation(n: int) -> None:
    images = permute(np.arange(n), n, seed=3, epoch=1)
    assert images.dtype == np.int64
    assert np.array_equal(np.sort(images), np.arange(n))


def test_one_index_alone_has_the_same_image_as_among_others() -> None:
    images = permute(np.arange(500), 500, seed=9, epoch=0)
    assert [int(permute(i, 500, seed=9, epoch=0)) for i in range(0, 500, 37)] == images[::37].tolist()
    assert permute(np.zeros((2, 3), dtype=int), 500, seed=9, epoch=0).shape == (2, 3)


def test_seeds_and_epochs_give_unrelated_permutations() -> None:
    keys = [(0, 0), (0, 1), (1, 0), (1, 1)]
    images = [permute(np.arange(10_000), 10_000, seed=seed, epoch=epoch) for seed, epoch in keys]
    for i, first in enumerate(images):
        for second in images[:i]:
            assert (first == second).sum() < 10


@pytest.mark.parametrize("n", [2, 3, 5, 10])
def test_images_are_about_uniform_over_seeds(n: int) -> None:
    trials = 1000
    counts = np.zeros((n, n))
    for seed in range(trials):
        counts[np.arange(n), permute(np.arange(n), n, seed=seed, epoch=0)] += 1
    assert np.all(np.abs(counts - trials / n) < 5 * np.sqrt(trials / n))


def test_adjacent_contexts_are_sent_far_apart() -> None:
    n = 20_000
    distances = np.abs(np.diff(permute(np.arange(n), n, seed=0, epoch=0)))
    assert abs(distances.mean() / (n / 3) - 1) < 0.03
    assert (distances == 1).sum() < 20


def test_a_large_range_needs_no_memory_of_its_size() -> None:
    n = 10**12
    images = permute(np.arange(1000), n, seed=0, epoch=0)
    assert len(np.unique(images)) == 1000
    assert images.min() >= 0 and images.max() < n


def test_all_six_permutations_of_three_contexts_are_about_equally_frequent() -> None:
    seen = [tuple(permute(np.arange(3), 3, seed=seed, epoch=0).tolist()) for seed in range(1200)]
    counts = np.array([seen.count(permutation) for permutation in sorted(set(seen))])
    assert len(counts) == 6
    assert np.all(np.abs(counts - 200) < 5 * np.sqrt(200))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 16, 17, 255, 256, 257, 4097, 100_003])
def test_what_is_permuted_can_be_sent_back(n: int) -> None:
    images = permute(np.arange(n), n, seed=3, epoch=2)
    assert np.array_equal(unpermute(images, n, seed=3, epoch=2), np.arange(n))
    assert np.array_equal(permute(unpermute(np.arange(n), n, seed=3, epoch=2), n, seed=3, epoch=2), np.arange(n))
