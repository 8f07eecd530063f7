"""A search for neighbours that is stopped, damaged, or run twice at once ends with the lists of one left alone."""

import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.config.groups.ordering import NeighboursConfig
from paribus.engine.local import LocalEngine
from paribus.errors import DataError
from paribus.ordering import neighbours
from paribus.ordering.embeddings import Embeddings
from paribus.ordering.nearest import InvertedShard
from paribus.ordering.neighbours import Blocks, NeighbourSearch
from support.neighbours import Found, clustered, search
from support.orders import write_embeddings

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


def lists(blocks: Blocks) -> Found:
    parts = list(zip(*map(blocks.read, range(blocks.count)), strict=True))
    return np.concatenate(parts[0]), np.concatenate(parts[1])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Found:
    return search(tmp_path_factory.mktemp("undisturbed"), VECTORS, **SETTINGS)[2]


def assert_same(blocks: Blocks, expected: Found) -> None:
    ids, cosines = lists(blocks)
    assert np.array_equal(ids, expected[0]) and np.array_equal(cosines, expected[1])
    assert all(len(set(row)) == len(row) for row in ids.tolist())


def test_an_interrupted_search_goes_on_where_it_was(tmp_path: Path, undisturbed: Found) -> None:
    again, begun = stopped(tmp_path, 7), list[float]()
    told = NeighbourSearch(
        again.embeddings, again.config, again.engine, again.work, lambda done, *_: begun.append(done)
    )
    _, blocks, _ = told.run()
    searched = [done for done in begun if done > 0]
    assert searched[0] == 8 and len(searched) == 3 * blocks.count - 7
    assert_same(blocks, undisturbed)


def test_shards_that_are_searched_are_not_indexed_again(
    tmp_path: Path, undisturbed: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    again, indexed = stopped(tmp_path, 12), list[int]()
    build = InvertedShard.__init__

    def counted(self: InvertedShard, base: np.ndarray, *arguments: object, **named: object) -> None:
        indexed.append(len(base))
        build(self, base, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(InvertedShard, "__init__", counted)
    _, blocks, _ = again.run()
    assert indexed == [1000]
    assert_same(blocks, undisturbed)


@pytest.mark.parametrize("left", [0, 5, 2000])
def test_a_block_that_a_power_cut_left_short_is_searched_again(tmp_path: Path, undisturbed: Found, left: int) -> None:
    again = stopped(tmp_path, 7)
    (block,) = again.work.glob("block_000002048_*.npz")
    block.write_bytes(block.read_bytes()[:left])
    assert_same(again.run()[1], undisturbed)


def test_damaged_neighbours_are_named(tmp_path: Path) -> None:
    again = stopped(tmp_path, 7)
    (block,) = again.work.glob("block_000002048_*.npz")
    content = bytearray(block.read_bytes())
    content[3000] ^= 1
    block.write_bytes(content)
    with pytest.raises(DataError, match=r"block_000002048_\d+\.npz: no readable neighbours .* remove it"):
        again.run()


@pytest.mark.parametrize("at", ["searched", "merge"])
def test_a_block_that_another_process_completes_meanwhile_keeps_its_lists(
    tmp_path: Path, undisturbed: Found, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """At either place the other one is ahead by two shards when this one goes on."""
    again = stopped(tmp_path, 7)
    ahead = NeighbourSearch(again.embeddings, again.config, again.engine, again.work, again.progress)
    place, original = (Blocks, Blocks.searched) if at == "searched" else (neighbours, neighbours.merge)

    def overtaken(*arguments: Any) -> Any:
        setattr(place, at, original)
        before = original(*arguments)
        ahead.run()
        return before

    some_lists = np.full((2048, 5), 4000), np.ones((2048, 5), dtype=np.float32)
    with monkeypatch.context() as patch:
        patch.setattr(place, at, overtaken)
        Blocks(again.work, len(VECTORS), 5).add(3, 1, some_lists)
    assert_same(Blocks(again.work, len(VECTORS), 5), undisturbed)


def run_in(embeddings: Path, work: Path) -> None:
    NeighbourSearch(Embeddings(embeddings), NeighboursConfig(**SETTINGS), LocalEngine(1), work, lambda *_: None).run()  # type: ignore[arg-type]


def test_two_processes_in_one_directory_do_each_other_no_harm(tmp_path: Path, undisturbed: Found) -> None:
    again = prepared(tmp_path)
    started = multiprocessing.get_context("spawn")
    both = [started.Process(target=run_in, args=(tmp_path / "embeddings", again.work)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(120)
    assert [process.exitcode for process in both] == [0, 0]
    assert_same(Blocks(again.work, len(VECTORS), 5), undisturbed)
