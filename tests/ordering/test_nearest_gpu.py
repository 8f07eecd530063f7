"""Exact search by PyTorch: the lists of a CPU to the last bit, and which devices it takes."""

from pathlib import Path

import numpy as np
import pytest
import torch

from paribus.config.groups.ordering import NeighboursConfig
from paribus.engine.gpus import Gpu
from paribus.errors import ConfigurationError
from paribus.ordering import nearest_gpu, neighbours
from paribus.ordering.arrays import unit_rows
from paribus.ordering.nearest import ExactShard, Vectors
from paribus.ordering.nearest_gpu import DeviceShard, _Copy, _largest
from paribus.ordering.neighbours import search_devices
from support.neighbours import clustered, search

CPU = torch.device("cpu")


class Halved(_Copy):
    """Computes on a CPU what a GPU does: products of half-precision vectors."""

    def _rough(self, vectors: torch.Tensor) -> torch.Tensor:
        return vectors.half()


def in_half(queries: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    return queries.float() @ base.float().T


@pytest.fixture(params=["single", "half"])
def precision(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "half":
        monkeypatch.setattr(nearest_gpu, "_Copy", Halved)
        monkeypatch.setattr(nearest_gpu, "_products", in_half)
    return str(request.param)


def drawn(number: int, dimensions: int = 37, seed: int = 0) -> Vectors:
    return unit_rows(np.random.default_rng(seed).standard_normal((number, dimensions)).astype(np.float32))


def with_copies(copies: int) -> Vectors:
    vectors = drawn(400).copy()
    vectors[3 : 3 + copies] = vectors[2]
    return vectors


CASES = {
    "drawn": drawn(900),
    "few": drawn(5),
    "one": drawn(1),
    "clustered": unit_rows(clustered(700, 48)),
    "copies": with_copies(20),
    "more copies than candidates": with_copies(200),
    "all the same": np.repeat(drawn(1), 300, axis=0),
}


@pytest.mark.parametrize("columns", [2**17, 64, 50])
@pytest.mark.usefixtures("precision")
def test_lists_are_those_of_a_cpu_to_the_last_bit(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_gpu, "COLUMNS", columns)
    for name, base in CASES.items():
        queries = np.concatenate([base[::3], drawn(20, base.shape[1], seed=1)])
        own = np.concatenate([np.arange(len(base))[::3], np.full(20, -1)])
        for count in (1, 7, 50):
            lists, expected = (
                shard.nearest(queries, own, count) for shard in (DeviceShard(base, [CPU]), ExactShard(base))
            )
            assert np.array_equal(lists[0], expected[0]), name
            assert np.array_equal(lists[1].view(np.int32), expected[1].view(np.int32)), name


def test_the_largest_are_found_by_maxima_of_groups() -> None:
    for columns, count in [(6400, 10), (6400, 99), (6400, 100), (6401, 10), (63, 5), (64, 64)]:
        products = torch.from_numpy(np.random.default_rng(4).standard_normal((3, columns)).astype(np.float32))
        values, places = _largest(products, count)
        assert torch.equal(values.sort(dim=1).values, products.topk(count, dim=1).values.flip(1))
        assert torch.equal(products.gather(1, places), values)
        assert all(len(set(row)) == count for row in places.tolist())


def test_a_part_for_which_memory_is_short_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    base, own, sizes = drawn(3000), np.arange(30), list[int]()
    monkeypatch.setattr(nearest_gpu, "COLUMNS", 2048)
    monkeypatch.setattr(nearest_gpu, "_FEWEST_COLUMNS", 256)

    def short_of_memory(queries: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
        sizes.append(len(part))
        if len(part) > limit:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return queries @ part.T

    limit = 512
    monkeypatch.setattr(nearest_gpu, "_products", short_of_memory)
    shard = DeviceShard(base, [CPU])
    assert all(map(np.array_equal, shard.nearest(base[:30], own, 9), ExactShard(base).nearest(base[:30], own, 9)))
    assert sizes[:3] == [2048, 1024, 512]
    limit = 100
    with pytest.raises(torch.OutOfMemoryError):
        shard.nearest(base[:30], own, 9)


def test_several_devices_share_the_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = clustered(5000, 32)
    vectors[100] = 0
    settings = {"index": "flat", "retrieved": 6, "shard_documents": 1800}
    _, _, expected, _ = search(tmp_path / "cpu", vectors, **settings)
    copies, nearest = list[int](), _Copy.nearest
    monkeypatch.setattr(_Copy, "nearest", lambda self, *given: copies.append(id(self)) or nearest(self, *given))
    monkeypatch.setattr("paribus.ordering.neighbours.search_devices", lambda config, base: [CPU, CPU])
    _, _, lists, share = search(tmp_path / "gpus", vectors, **settings)
    assert all(map(np.array_equal, lists, expected))
    assert share == 1.0
    assert len(copies) == 3 * 3, "three blocks in each of three shards"


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "visible_gpus", lambda: [Gpu("0", "a"), Gpu("1", "b")])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (70 * 2**30, 80 * 2**30))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 0)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 0)


@pytest.mark.usefixtures("two_gpus")
def test_all_visible_gpus_are_taken_where_the_index_is_exact() -> None:
    for config, number in [
        (NeighboursConfig(device="gpu", index="flat"), 2),
        (NeighboursConfig(device="auto", index="flat"), 2),
        (NeighboursConfig(device="auto"), 0),
        (NeighboursConfig(device="cpu", index="flat"), 0),
    ]:
        assert [str(device) for device in search_devices(config, drawn(9))] == [f"cuda:{n}" for n in range(number)]
        assert search_devices(config, drawn(9)[:0]) == []


def test_without_a_gpu_device_gpu_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigurationError, match=r"^neighbours\.device is gpu, and PyTorch sees none here"):
        search(tmp_path, clustered(40), index="flat", retrieved=4, device="gpu")
    assert not list((tmp_path / "work").glob("block_*"))


@pytest.mark.usefixtures("two_gpus")
def test_a_shard_that_has_no_room_is_refused_or_searched_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2**20, 2**30))
    message = r"^neighbours\.shard_documents: 9 vectors take .* MiB are free; lower"
    with pytest.raises(ConfigurationError, match=message):
        search_devices(NeighboursConfig(device="gpu", index="flat"), drawn(9))
    assert search_devices(NeighboursConfig(device="auto", index="flat"), drawn(9)) == []
