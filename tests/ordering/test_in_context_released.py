"""The released traversal against plain Python and on chains that can be followed by hand; what is dropped after it."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.ordering.arrays import JUMPS, NeighbourLists, permutation, write_neighbours
from paribus.ordering.in_context_released import Chained, in_chains, without_alike, write_dropped

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def released_order(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The released rule in plain Python."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("released_rule").released_order


def chained(
    directory: Path, rows: list[list[int]], chain: int, kept: np.ndarray | None = None, seed: int = 0
) -> Chained:
    width = max((len(row) for row in rows), default=0)
    ids = np.array([row + [-1] * (width - len(row)) for row in rows], dtype=np.int32).reshape(len(rows), width)
    write_neighbours(directory, ids, np.tile(np.linspace(1, 0, width), (len(rows), 1)))
    stay = np.ones(len(rows), dtype=bool) if kept is None else kept
    return in_chains(NeighbourLists(directory), stay, max(1, width), chain, seed=seed)


@st.composite
def neighbour_rows(draw: st.DrawFn) -> list[list[int]]:
    count = draw(st.integers(1, 40))
    rows = [draw(st.lists(st.integers(0, count - 1), max_size=5, unique=True)) for _ in range(count)]
    return [[near for near in row if near != document] for document, row in enumerate(rows)]


@given(neighbour_rows(), st.integers(1, 7), st.integers(0, 5))
def test_chains_are_those_of_the_plain_rule_with_the_same_random_documents(
    tmp_path: Path, released_order: Any, rows: list[list[int]], chain: int, seed: int
) -> None:
    found = chained(tmp_path, rows, chain, seed=seed)
    assert found.documents.tolist() == released_order(rows, chain, permutation(len(rows), JUMPS, seed).tolist())
    assert sorted(found.documents.tolist()) == list(range(len(rows)))


def test_documents_that_are_not_kept_are_out_of_chains_and_lists(tmp_path: Path, released_order: Any) -> None:
    generator = np.random.default_rng(8)
    rows = ((np.arange(300)[:, None] + generator.integers(1, 20, (300, 6))) % 300).tolist()
    kept = generator.random(300) < 0.7
    left = np.flatnonzero(kept)
    number = {document: place for place, document in enumerate(left.tolist())}
    among_left = [[number[near] for near in rows[document] if kept[near]] for document in left]
    expected = released_order(among_left, 5, permutation(len(left), JUMPS, 1).tolist())
    assert chained(tmp_path, rows, 5, kept, seed=1).documents.tolist() == left[expected].tolist()


def test_a_full_chain_ends_and_stays_whole(tmp_path: Path) -> None:
    ring = [[(document + 1) % 12] for document in range(12)]
    whole = chained(tmp_path, ring, 12, seed=3)
    start = permutation(12, JUMPS, 3)[0]
    assert whole.documents.tolist() == [(start + step) % 12 for step in range(12)]
    single = chained(tmp_path, ring, 1, seed=3)
    assert single.documents.tolist() == permutation(12, JUMPS, 3).tolist()
    assert (single.chains, single.dissolved, single.moved) == (12, 0, 0)


def test_a_short_chain_goes_before_its_nearest_neighbours_in_another(tmp_path: Path) -> None:
    # 0, 1, 2 follow each other; 3 looks at 1, and nobody looks at 3.
    rows = [[1], [2], [0], [1, 2]]
    seed = next(seed for seed in range(100) if permutation(4, JUMPS, seed)[0] == 0)
    found = chained(tmp_path, rows, 3, seed=seed)
    assert found.documents.tolist() == [0, 3, 1, 2]
    assert (found.chains, found.dissolved, found.moved) == (2, 1, 1)


def test_a_document_that_starts_like_the_last_one_kept_is_dropped() -> None:
    texts = ["abcdefgh", "abcdefgX", "abcdefgh", "something else"]
    # 0 and 1 share 5 of 7 trigrams, 0 and 2 all.
    order, dropped = without_alike(np.array([0, 1, 2, 3]), texts, 0.7)
    assert order.tolist() == [0, 3]
    assert (dropped.documents, dropped.before) == ([1, 2], [0, 0])
    assert dropped.similarities == pytest.approx([5 / 7, 1.0])
    assert without_alike(np.array([0, 1, 2, 3]), texts, 5 / 7)[0].tolist() == [0, 1, 2, 3]
    assert without_alike(np.array([0, 2, 1, 3]), texts, 5 / 7)[1].documents == [2]


def test_what_is_dropped_is_written_with_ids_and_similarity(tmp_path: Path) -> None:
    _, dropped = without_alike(np.array([2, 0, 1]), ["same text", "other", "same text"], 0.5)
    write_dropped(tmp_path, dropped, ["first", "second", "third"])
    assert pq.read_table(tmp_path / "dropped.parquet").to_pylist() == [
        {"document": 0, "id": "first", "before": 2, "before_id": "third", "similarity": 1.0}
    ]
