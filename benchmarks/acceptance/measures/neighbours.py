"""The nearest vectors of a shard on the device, beside those of every row compared in double precision."""

import time

import numpy as np
import torch

from acceptance.given import Answer, Given
from paribus.ordering.arrays import unit_rows
from paribus.ordering.nearest import rank_all
from paribus.ordering.nearest_gpu import DeviceShard

COUNT, COMPARED = 50, 48


def measure(given: Given) -> Answer:
    """Pairs of vectors that are compared in a second, blocks of documents a second, and what differs."""
    rows, dimensions, block = (3_000, 48, 256) if given.tiny else (1_000_000, 768, 2_048)
    random = np.random.default_rng(0)
    topics = random.standard_normal((rows // 100, dimensions), dtype=np.float32)
    base = topics[random.integers(0, len(topics), rows)] + random.standard_normal((rows, dimensions), dtype=np.float32)
    # Many copies of one document: more than there are candidates.
    base = unit_rows(base)
    base[10:400] = base[9]
    shard = DeviceShard(base, [given.torch_device])
    own = np.arange(block)
    ids, cosines = shard.nearest(base[:block], own, COUNT)
    answer, ordinary = Answer(), np.arange(rows - block, rows)
    rounds, began = 1 if given.tiny else 20, time.perf_counter()
    for _ in range(rounds):
        shard.nearest(base[-block:], ordinary, COUNT)
    seconds = (time.perf_counter() - began) / rounds
    answer.numbers |= {"pairs/s": block * rows / seconds, "blocks/s": 1 / seconds}
    if given.device == "cuda":
        answer.numbers["peak GB"] = torch.cuda.max_memory_allocated(given.torch_device) / 1e9
    some = np.r_[:COMPARED, block - COMPARED : block]
    expected = rank_all(base[some], base, own[some], COUNT)
    differs = int((ids[some] != expected[0]).sum() + (cosines[some] != expected[1]).sum())
    answer.numbers["entries that differ"] = differs
    answer.expect(differs == 0, f"{differs} entries of lists differ from those of the CPU")
    return answer
