"""The path of In-Context Pretraining, Algorithm 1, and the released one, against slow and obvious readings of them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.errors import DataError
from paribus.ordering import traverse
from paribus.ordering.arrays import JUMPS, NeighbourLists, permutation, write_neighbours
from paribus.ordering.in_context import neighbour_graph, path_through, whole_lists
from paribus.ordering.in_context_released import Chained, in_chains, without_alike, write_dropped


def released_order(neighbours: Sequence[Sequence[int]], chain: int, random: Iterable[int]) -> list[int]:
    """Documents chain by chain, short chains dissolved.

    `neighbours` are the ones of each document that are looked at, the nearest first; `random` is a permutation of all
    documents whose first unseen one begins the next chain.
    """
    chains = walk(neighbours, chain, random)
    dissolve(chains, neighbours, chain)
    return [document for documents in chains.values() for document in documents]


def walk(neighbours: Sequence[Sequence[int]], chain: int, random: Iterable[int]) -> dict[int, list[int]]:
    """Documents of each chain by its number."""
    unseen, landings = set(range(len(neighbours))), iter(random)
    chains: dict[int, list[int]] = {}
    while unseen:
        last = chains[len(chains) - 1] if chains else []
        open_neighbours = [near for near in neighbours[last[-1]] if near in unseen] if 0 < len(last) < chain else []
        if open_neighbours:
            last.append(open_neighbours[0])
        else:
            last = chains[len(chains)] = [next(document for document in landings if document in unseen)]
        unseen.remove(last[-1])
    return chains


def dissolve(chains: dict[int, list[int]], neighbours: Sequence[Sequence[int]], chain: int) -> None:
    """Put each document of a chain that is not full before its nearest neighbour in another chain."""
    chain_of = {document: number for number, documents in chains.items() for document in documents}
    for number in list(chains):
        if len(chains[number]) >= chain:
            continue
        staying = []
        for document in chains[number]:
            elsewhere = [near for near in neighbours[document] if chain_of[near] != number]
            if elsewhere:
                target = chains[chain_of[elsewhere[0]]]
                target.insert(target.index(elsewhere[0]), document)
                chain_of[document] = chain_of[elsewhere[0]]
            else:
                staying.append(document)
        chains[number] = staying


Lists = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]


@st.composite
def lists_of_neighbours(draw: st.DrawFn) -> Lists:
    count, width = draw(st.integers(0, 12)), draw(st.integers(0, 4))
    ids = draw(st.lists(st.integers(-1, max(count - 1, -1)), min_size=count * width, max_size=count * width))
    weights = draw(st.lists(st.sampled_from([-0.5, 0.0, 0.25, 0.5, 1.0]), min_size=len(ids), max_size=len(ids)))
    return np.array(ids, dtype=np.int64).reshape(count, width), np.array(weights).reshape(count, width)


def edges_of(neighbours: npt.NDArray[np.int64], similarities: npt.NDArray[np.float64]) -> list[dict[int, float]]:
    edges: list[dict[int, float]] = [{} for _ in neighbours]
    for i, (row, weights) in enumerate(zip(neighbours.tolist(), similarities.tolist(), strict=True)):
        for j, weight in zip(row, weights, strict=True):
            if j >= 0 and j != i:
                edges[i][j] = edges[j][i] = max(weight, edges[i].get(j, weight))
    return edges


def assert_is_a_path(order: list[int], edges: list[dict[int, float]]) -> None:
    assert sorted(order) == list(range(len(edges)))
    unvisited = set(order)
    for before, document in zip([None, *order], order, strict=False):
        open_edges = {j: w for j, w in edges[before].items() if j in unvisited} if before is not None else {}
        if open_edges:
            assert document == min(open_edges, key=lambda j: (-open_edges[j], j))
        else:
            assert len(edges[document]) == min(len(edges[j]) for j in unvisited)
        unvisited.remove(document)


@given(lists_of_neighbours(), st.integers(0, 2**63))
def test_every_step_goes_to_the_heaviest_unvisited_neighbour_or_jumps_to_minimum_degree(
    lists: Lists, seed: int
) -> None:
    assert_is_a_path(traverse(*lists, seed=seed).tolist(), edges_of(*lists))


@given(lists_of_neighbours())
def test_degrees_count_distinct_neighbours_of_both_directions(lists: Lists) -> None:
    graph = neighbour_graph(whole_lists(lists[0], lists[1].astype(np.float32)))
    assert graph.degrees().tolist() == [len(neighbours) for neighbours in edges_of(*lists)]


@given(lists_of_neighbours(), st.data(), st.integers(1, 5))
def test_the_path_through_kept_documents_takes_the_first_kept_neighbours(
    tmp_path_factory: pytest.TempPathFactory, lists: Lists, data: st.DataObject, take: int
) -> None:
    ids, weights = lists
    if not ids.size:
        return
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=len(ids), max_size=len(ids))), dtype=bool)
    directory = tmp_path_factory.mktemp("lists")
    write_neighbours(directory, ids, weights)
    path = path_through(NeighbourLists(directory), kept, take, seed=1, work=directory)
    number = {document: place for place, document in enumerate(np.flatnonzero(kept).tolist())}
    first = [
        [(number[j], w) for j, w in zip(ids[i].tolist(), weights[i], strict=True) if j != i and j in number][:take]
        for i in number
    ]
    edges: list[dict[int, float]] = [{} for _ in number]
    for a, nearest in enumerate(first):
        for b, weight in nearest:
            edges[a][b] = edges[b][a] = max(weight, edges[a].get(b, weight))
    assert_is_a_path([number[document] for document in path.order.tolist()], edges)
    assert path.edges == sum(map(len, edges)) // 2


def test_jumps_choose_uniformly_among_documents_of_minimum_degree() -> None:
    # Three pairs, and a hub with two leaves: the first document is one of eight of degree one.
    neighbours = [[1, -1], [-1, -1], [3, -1], [-1, -1], [5, -1], [-1, -1], [7, 8], [-1, -1], [-1, -1]]
    similarities = np.full((9, 2), 0.5)
    landings = np.zeros((2, 9), dtype=int)
    for seed in range(4000):
        order = traverse(neighbours, similarities, seed=seed)
        landings[0, order[0]] += 1
        if order[0] in (0, 1):
            landings[1, order[2]] += 1
    assert landings[0, 6] == 0
    assert np.all(np.abs(np.delete(landings[0], 6) - 500) < 5 * np.sqrt(500))
    second = landings[1, [2, 3, 4, 5, 7, 8]]
    assert second.sum() == landings[1].sum()
    assert np.all(np.abs(second - second.mean()) < 5 * np.sqrt(second.mean()))


def test_double_precision_decides_between_weights_that_are_equal_in_single_precision() -> None:
    generator = np.random.default_rng(3)
    neighbours = generator.integers(-1, 400, (400, 6))
    similarities = 0.5 + generator.random((400, 6)) * 1e-9
    assert len(np.unique(similarities.astype(np.float32))) == 1
    for weights in (similarities, similarities * 1e300):
        assert_is_a_path(traverse(neighbours, weights, seed=3).tolist(), edges_of(neighbours, weights))


def test_many_documents_in_any_width_keep_the_rules() -> None:
    for count, width in [(1, 1), (2, 1), (5000, 1), (20_000, 7)]:
        generator = np.random.default_rng(count)
        neighbours = (np.arange(count)[:, None] + generator.integers(0, 40, (count, width))) % count
        neighbours[generator.random((count, width)) < 0.1] = -1
        similarities = generator.integers(0, 20, (count, width)).astype(np.float32)
        assert_is_a_path(traverse(neighbours, similarities, seed=2).tolist(), edges_of(neighbours, similarities))


def test_malformed_lists_are_refused() -> None:
    cases: list[tuple[Any, Any, str]] = [
        ([[1], [0]], [[0.5, 0.5], [0.5, 0.5]], "must both be"),
        ([[2], [0]], [[0.5], [0.5]], "document 2, but only 2 rows"),
        ([[1], [0]], [[np.nan], [0.5]], "finite"),
        ([[1.5], [0.0]], [[0.5], [0.5]], "integers"),
    ]
    for neighbours, similarities, message in cases:
        with pytest.raises(ValueError, match=message):
            traverse(neighbours, similarities)


IDS = np.array([[1, 2], [2, 0], [0, 1]], dtype=np.int32)


def test_damaged_lists_are_refused_by_name(tmp_path: Path) -> None:
    for file in ("neighbours.npy", "similarities.npy"):
        write_neighbours(tmp_path, IDS, np.ones((3, 2), dtype=np.float32))
        assert NeighbourLists(tmp_path).count == 3
        content = (tmp_path / file).read_bytes()
        for size in (0, 90, len(content) - 1):
            (tmp_path / file).write_bytes(content[:size])
            with pytest.raises(DataError, match=rf"{file}: no readable array"):
                NeighbourLists(tmp_path)


def test_whole_lists_leave_no_files_behind(tmp_path: Path) -> None:
    kept = np.array([True, False, True])
    lists = whole_lists(IDS, np.ones((3, 2), dtype=np.float32), kept=kept, take=1, work=tmp_path)
    assert lists.ids.tolist() == [[1], [0]]
    assert not list(tmp_path.iterdir())


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
    tmp_path: Path, rows: list[list[int]], chain: int, seed: int
) -> None:
    documents = chained(tmp_path, rows, chain, seed=seed).documents.tolist()
    assert documents == released_order(rows, chain, permutation(len(rows), JUMPS, seed).tolist())
    assert sorted(documents) == list(range(len(rows)))


def test_removed_documents_are_left_out_of_chains_and_lists(tmp_path: Path) -> None:
    generator = np.random.default_rng(8)
    rows = ((np.arange(300)[:, None] + generator.integers(1, 20, (300, 6))) % 300).tolist()
    kept = generator.random(300) < 0.7
    documents = np.flatnonzero(kept)
    number = {document: place for place, document in enumerate(documents.tolist())}
    among_kept = [[number[near] for near in rows[document] if kept[near]] for document in documents]
    expected = released_order(among_kept, 5, permutation(len(documents), JUMPS, 1).tolist())
    assert chained(tmp_path, rows, 5, kept, seed=1).documents.tolist() == documents[expected].tolist()


def test_a_short_chain_goes_before_its_nearest_neighbours_in_another(tmp_path: Path) -> None:
    # 0, 1, 2 follow each other; 3 looks at 1, and nobody looks at 3.
    seed = next(seed for seed in range(100) if permutation(4, JUMPS, seed)[0] == 0)
    path = chained(tmp_path, [[1], [2], [0], [1, 2]], 3, seed=seed)
    assert path.documents.tolist() == [0, 3, 1, 2]
    assert (path.chains, path.dissolved, path.moved) == (2, 1, 1)


def test_a_document_that_starts_like_the_last_kept_one_is_dropped_and_recorded(tmp_path: Path) -> None:
    texts = ["abcdefgh", "abcdefgX", "abcdefgh", "something else"]
    # 0 and 1 share 5 of 7 trigrams, 0 and 2 all.
    order, dropped = without_alike(np.array([0, 1, 2, 3]), texts, 0.7)
    assert order.tolist() == [0, 3]
    assert (dropped.documents, dropped.before) == ([1, 2], [0, 0])
    assert dropped.similarities == pytest.approx([5 / 7, 1.0])
    assert without_alike(np.array([0, 1, 2, 3]), texts, 5 / 7)[0].tolist() == [0, 1, 2, 3]
    write_dropped(tmp_path, without_alike(np.array([0, 2, 1, 3]), texts, 5 / 7)[1], ["a", "b", "c", "d"])
    assert pq.read_table(tmp_path / "dropped.parquet").to_pylist() == [
        {"document": 2, "id": "c", "before": 0, "before_id": "a", "similarity": 1.0}
    ]
