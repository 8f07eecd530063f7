"""The path of In-Context Pretraining, Algorithm 1, against a slow and obvious reading of it."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.ordering import traverse
from paribus.ordering.arrays import NeighbourLists, write_neighbours
from paribus.ordering.in_context import neighbour_graph, path_through, whole_lists

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
def test_the_degrees_are_the_distinct_neighbours_of_both_directions(lists: Lists) -> None:
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
    edges: list[dict[int, float]] = [{} for _ in number]
    for i, a in number.items():
        valid = [(j, w) for j, w in zip(ids[i], weights[i], strict=True) if j != i and j in number]
        for j, weight in valid[:take]:
            b = number[int(j)]
            edges[a][b] = edges[b][a] = max(weight, edges[a].get(b, weight))
    assert_is_a_path([number[document] for document in path.order.tolist()], edges)
    assert path.edges == sum(map(len, edges)) // 2


def test_a_larger_graph_with_ties_keeps_the_rules() -> None:
    generator = np.random.default_rng(5)
    neighbours = generator.integers(-1, 700, (700, 8))
    similarities = generator.integers(0, 20, (700, 8)) / 20
    assert_is_a_path(traverse(neighbours, similarities, seed=3).tolist(), edges_of(neighbours, similarities))


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


def test_double_precision_decides_between_many_equal_weights_in_single_precision() -> None:
    generator = np.random.default_rng(3)
    neighbours = generator.integers(-1, 400, (400, 6))
    similarities = 0.5 + generator.random((400, 6)) * 1e-9
    assert len(np.unique(similarities.astype(np.float32))) == 1
    assert_is_a_path(traverse(neighbours, similarities, seed=3).tolist(), edges_of(neighbours, similarities))
    assert_is_a_path(traverse(neighbours, similarities * 1e300).tolist(), edges_of(neighbours, similarities * 1e300))


@pytest.mark.parametrize(("count", "width"), [(1, 1), (2, 1), (5000, 1), (9001, 3), (20_000, 7)])
def test_many_documents_in_any_width_keep_the_rules(count: int, width: int) -> None:
    generator = np.random.default_rng(count)
    neighbours = (np.arange(count)[:, None] + generator.integers(0, 40, (count, width))) % count
    neighbours[generator.random((count, width)) < 0.1] = -1
    similarities = generator.random((count, width)).astype(np.float32)
    assert_is_a_path(traverse(neighbours, similarities, seed=2).tolist(), edges_of(neighbours, similarities))


@pytest.mark.parametrize(
    ("neighbours", "similarities", "message"),
    [
        ([[1], [0]], [[0.5, 0.5], [0.5, 0.5]], "must both be"),
        ([[2], [0]], [[0.5], [0.5]], "document 2, but only 2 rows"),
        ([[1], [0]], [[np.nan], [0.5]], "finite"),
        ([[1.5], [0.0]], [[0.5], [0.5]], "integers"),
    ],
)
def test_malformed_lists_are_refused(neighbours: object, similarities: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        traverse(neighbours, similarities)  # type: ignore[arg-type]
