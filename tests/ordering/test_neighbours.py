"""Nearest neighbours against all pairs in double precision."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.config.groups.ordering import NeighboursConfig
from paribus.engine.local import LocalEngine
from paribus.errors import ConfigurationError, DataError
from paribus.ordering import neighbours
from paribus.ordering.embeddings import Embeddings
from paribus.ordering.nearest import InvertedShard
from paribus.ordering.neighbours import Blocks, NeighbourSearch, recall_of
from paribus.ordering.search_plan import SearchPlan, plan_search
from support.neighbours import Found, Vectors, clustered, search
from support.orders import write_embeddings


def all_pairs(vectors: Vectors, count: int) -> Found:
    ids = np.full((len(vectors), count), -1)
    cosines = np.zeros((len(vectors), count), dtype=np.float32)
    exact, directed = vectors.astype(np.float64), vectors.any(axis=1).tolist()
    for i, vector in enumerate(exact):
        similar = np.clip((exact * vector).sum(axis=1), -1, 1).astype(np.float32)
        others = [j for j in range(len(vectors)) if j != i and directed[i] and directed[j]]
        order = (-similar).tolist()
        nearest = sorted(others, key=lambda j: (order[j], j))[:count]
        ids[i, : len(nearest)], cosines[i, : len(nearest)] = nearest, similar[nearest]
    return ids, cosines


def assert_exact(root: Path, vectors: Vectors, count: int, **settings: object) -> None:
    embeddings, _, (ids, cosines), share = search(root, vectors, retrieved=count, **settings)
    expected_ids, expected_cosines = all_pairs(embeddings.rows(0, len(embeddings)), count)
    assert np.allclose(cosines, expected_cosines, atol=1e-7)
    # Where two cosines differ by rounding alone, either may stand first.
    differing = ids != expected_ids
    assert np.allclose(cosines[differing], expected_cosines[differing], atol=1e-7)
    assert differing.mean() < 0.001
    assert share in (None, 1.0)


@pytest.mark.parametrize("shard", [10_000, 600, 250, 70])
def test_flat_search_finds_the_nearest_of_all_pairs_in_shards_of_any_size(tmp_path: Path, shard: int) -> None:
    assert_exact(tmp_path, clustered(600), 10, index="flat", shard_documents=shard)


@pytest.mark.parametrize("shard", [1000, 50])
def test_equal_documents_are_listed_by_id_even_when_there_are_more_than_neighbours(tmp_path: Path, shard: int) -> None:
    vectors = clustered(120)
    vectors[10:90] = vectors[10]
    embeddings, _, (ids, cosines), _ = search(tmp_path, vectors, retrieved=5, shard_documents=shard)
    assert ids[50].tolist() == [10, 11, 12, 13, 14]
    assert ids[10].tolist() == [11, 12, 13, 14, 15]
    assert (cosines[10:90] > 0.999999).all()
    assert np.array_equal(ids, all_pairs(embeddings.rows(0, 120), 5)[0])


def test_a_small_corpus_is_padded_and_a_zero_row_has_no_neighbours(tmp_path: Path) -> None:
    vectors = clustered(6)
    vectors[2] = 0
    assert_exact(tmp_path, vectors, 9)
    _, _, (ids, _), _ = search(tmp_path / "again", vectors, retrieved=9)
    assert (ids[2] == -1).all() and 2 not in ids


def test_quantized_vectors_find_most_neighbours_and_shards_of_them_the_same(tmp_path: Path) -> None:
    vectors = clustered(10_000, 24)
    settings = {"index": "ivf_pq", "lists": 64, "retrieved": 10, "recall_sample": 400}
    _, plan, lists, share = search(tmp_path / "one", vectors, **settings)
    assert plan.code_size == 8 and share is not None and share > 0.85
    _, _, sharded, _ = search(tmp_path / "three", vectors, shard_documents=4000, probes=plan.probes, **settings)
    # Each shard brings candidates of its own, so that more shards find as many neighbours or more.
    assert recall_of(sharded, lists) > 0.999


@pytest.mark.parametrize(
    ("count", "settings"),
    [
        (3000, {"index": "flat"}),
        (3000, {"index": "ivf", "lists": 60}),
        (11_000, {"index": "ivf_pq", "lists": 48, "code_size": 8}),
    ],
)
def test_the_result_does_not_depend_on_the_number_of_workers(
    tmp_path: Path, count: int, settings: dict[str, Any]
) -> None:
    vectors = np.concatenate([clustered(count, 64), clustered(100, 64)])
    of_one, of_three = (
        search(tmp_path / str(workers), vectors, workers=workers, retrieved=10, **settings)[2] for workers in (1, 3)
    )
    assert all(map(np.array_equal, of_one, of_three))


def test_the_index_follows_the_number_of_documents_and_refuses_what_cannot_be_quantized() -> None:
    for documents, expected in [
        (20_000, SearchPlan("flat")),
        (100_000, SearchPlan("ivf", 512)),
        (2_000_001, SearchPlan("ivf_pq", 2048, code_size=256)),
        (235_266_464, SearchPlan("ivf_pq", 32768, code_size=256)),  # those of the paper
    ]:
        plan = plan_search(documents, 768, NeighboursConfig())
        assert plan == expected
        assert plan.training_vectors == 48 * plan.lists
    with pytest.raises(ConfigurationError, match=r"neighbours.index: ivf_pq learns its codes from 10,000 documents"):
        plan_search(9000, 768, NeighboursConfig(index="ivf_pq"))
    with pytest.raises(ConfigurationError, match=r"neighbours.code_size: 100 does not divide the 768 dimensions"):
        plan_search(90_000, 768, NeighboursConfig(index="ivf_pq", code_size=100))


VECTORS = clustered(9000, 16)
SETTINGS = {"index": "ivf", "retrieved": 5, "shard_documents": 4000, "recall_sample": 100}


def prepared(root: Path) -> NeighbourSearch:
    """A search of three shards and five blocks that is still to be run."""
    work = root / "work"
    work.mkdir()
    embeddings = Embeddings(write_embeddings(root / "embeddings", VECTORS))
    return NeighbourSearch(embeddings, NeighboursConfig(**SETTINGS), LocalEngine(1), work, lambda *_: None)  # type: ignore[arg-type]


def stopped(root: Path, at: int) -> NeighbourSearch:
    """One that was interrupted when it had done so many blocks, to be run again."""
    again = prepared(root)

    def stop(done: float, total: float, doing: str) -> None:
        if done == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        NeighbourSearch(again.embeddings, again.config, again.engine, again.work, stop).run()
    return again


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Found:
    return search(tmp_path_factory.mktemp("undisturbed"), VECTORS, **SETTINGS)[2]


def assert_same(blocks: Blocks, expected: Found) -> None:
    ids, cosines = map(np.concatenate, zip(*map(blocks.read, range(blocks.count)), strict=True))
    assert np.array_equal(ids, expected[0]) and np.array_equal(cosines, expected[1])
    assert all(len(set(row)) == len(row) for row in ids.tolist())


def test_an_interrupted_search_goes_on_where_it_was(
    tmp_path: Path, undisturbed: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    again, progress, indexed, index = stopped(tmp_path, 12), list[float](), list[int](), InvertedShard.__init__

    def counted(self: InvertedShard, base: np.ndarray, *arguments: object, **named: object) -> None:
        indexed.append(len(base))
        index(self, base, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(InvertedShard, "__init__", counted)
    resumed = NeighbourSearch(
        again.embeddings, again.config, again.engine, again.work, lambda done, *_: progress.append(done)
    )
    _, blocks, _ = resumed.run()
    searched = [done for done in progress if done > 0]
    assert searched[0] == 13 and len(searched) == 3 * blocks.count - 12
    assert indexed == [1000], "shards that were searched are not indexed again"
    assert_same(blocks, undisturbed)


def test_a_block_cut_short_is_searched_again_and_a_damaged_one_refused(tmp_path: Path, undisturbed: Found) -> None:
    for size in (0, 5, 2000):
        (tmp_path / str(size)).mkdir()
        again = stopped(tmp_path / str(size), 7)
        (block,) = again.work.glob("block_000002048_*.npz")
        content = bytearray(block.read_bytes())
        block.write_bytes(content[:size])
        assert_same(again.run()[1], undisturbed)
    (tmp_path / "damaged").mkdir()
    again = stopped(tmp_path / "damaged", 7)
    content[3000] ^= 1
    next(again.work.glob("block_000002048_*.npz")).write_bytes(content)
    with pytest.raises(DataError, match=r"block_000002048_\d+\.npz: no readable neighbours .* remove it"):
        again.run()


@pytest.mark.parametrize("name", ["searched", "merge"])
def test_a_block_that_another_process_completes_meanwhile_keeps_its_lists(
    tmp_path: Path, undisturbed: Found, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """At either place the other one is ahead by two shards when this one goes on."""
    ahead = stopped(tmp_path, 7)
    place, original = (Blocks, Blocks.searched) if name == "searched" else (neighbours, neighbours.merge)

    def overtaken(*arguments: Any) -> Any:
        setattr(place, name, original)
        before = original(*arguments)
        ahead.run()
        return before

    some_lists = np.full((2048, 5), 4000), np.ones((2048, 5), dtype=np.float32)
    with monkeypatch.context() as patch:
        patch.setattr(place, name, overtaken)
        Blocks(ahead.work, len(VECTORS), 5).add(3, 1, some_lists)
    assert_same(Blocks(ahead.work, len(VECTORS), 5), undisturbed)
