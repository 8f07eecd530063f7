"""Nearest neighbours against all pairs in double precision."""

import faiss
import numpy as np
import numpy.typing as npt
import pytest
from threadpoolctl import threadpool_limits

from paribus.ordering.embed.unit import unit_rows
from paribus.ordering.neighbours import find_neighbours

Vectors = npt.NDArray[np.float32]


def clustered(count: int, dimensions: int = 24, seed: int = 0) -> Vectors:
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(12, dimensions))
    return unit_rows(centres[generator.integers(0, 12, count)] + 0.4 * generator.normal(size=(count, dimensions)))


def all_pairs(vectors: Vectors, count: int) -> tuple[list[list[int]], list[list[float]]]:
    ids, cosines = [], []
    for i, vector in enumerate(vectors.astype(np.float64)):
        similar = np.clip((vectors.astype(np.float64) * vector).sum(axis=1), -1, 1).astype(np.float32)
        others = [j for j in range(len(vectors)) if j != i and vectors[i].any() and vectors[j].any()]
        nearest = sorted(others, key=lambda j: (-similar[j], j))[:count]
        ids.append(nearest + [-1] * (count - len(nearest)))
        cosines.append([float(similar[j]) for j in nearest] + [0.0] * (count - len(nearest)))
    return ids, cosines


def assert_exact(vectors: Vectors, count: int) -> None:
    ids, cosines = find_neighbours(vectors, count)
    expected_ids, expected_cosines = all_pairs(vectors, count)
    assert ids.dtype == np.int64 and cosines.dtype == np.float32
    assert np.allclose(cosines, expected_cosines, atol=1e-7)
    assert np.array_equal(ids, expected_ids)


def test_flat_search_finds_the_nearest_of_all_pairs() -> None:
    assert_exact(clustered(600), 10)


def test_equal_documents_are_listed_by_id_even_when_there_are_more_than_neighbours() -> None:
    vectors = clustered(120)
    vectors[10:90] = vectors[10]
    assert_exact(vectors, 5)


def test_a_small_corpus_is_padded_and_a_zero_row_has_no_neighbours() -> None:
    vectors = clustered(6)
    vectors[2] = 0
    assert_exact(vectors, 9)
    assert (find_neighbours(vectors, 9)[0][2] == -1).all()


@pytest.mark.parametrize("index", ["flat", "ivf"])
@pytest.mark.parametrize("count", [0, 1])
def test_nothing_to_compare_gives_padding(count: int, index: str) -> None:
    ids, cosines = find_neighbours(clustered(count), 3, index=index)  # type: ignore[arg-type]
    assert ids.tolist() == [[-1] * 3] * count
    assert cosines.tolist() == [[0.0] * 3] * count


def test_an_inverted_file_finds_nearly_all_of_them_with_exact_cosines() -> None:
    vectors = clustered(2000)
    flat, _ = find_neighbours(vectors, 10)
    found, cosines = find_neighbours(vectors, 10, index="ivf", probes=16)
    assert np.mean([len(set(a) & set(b)) / 10 for a, b in zip(flat.tolist(), found.tolist(), strict=True)]) > 0.95
    exact = np.einsum("nd,nkd->nk", vectors.astype(np.float64), vectors[found].astype(np.float64))
    assert np.allclose(cosines, exact, atol=1e-7)


def test_probing_every_list_is_exact() -> None:
    vectors = clustered(800)
    assert np.array_equal(find_neighbours(vectors, 8)[0], find_neighbours(vectors, 8, index="ivf", probes=10_000)[0])


@pytest.mark.parametrize("index", ["flat", "ivf"])
def test_the_result_does_not_depend_on_the_number_of_threads(index: str) -> None:
    vectors = np.concatenate([clustered(3000, 64), clustered(100, 64)])
    results = []
    before = faiss.omp_get_max_threads()
    for threads in (1, 2):
        faiss.omp_set_num_threads(threads)
        with threadpool_limits(threads):
            results.append(find_neighbours(vectors, 10, index=index))  # type: ignore[arg-type]
    faiss.omp_set_num_threads(before)
    assert np.array_equal(results[0][0], results[1][0])
    assert np.array_equal(results[0][1], results[1][1])


def test_progress_reaches_the_number_of_documents() -> None:
    seen: list[int] = []
    find_neighbours(clustered(2500), 2, progress=seen.append)
    assert seen == [2048, 2500]
