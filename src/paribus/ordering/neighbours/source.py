"""Where the vectors and the index of one shard come from, so that any process can open it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paribus.ordering.embed.artifact import Embeddings
from paribus.ordering.neighbours.index import ExactShard, InvertedShard, Shard, load_index
from paribus.ordering.neighbours.ranking import Ids, Vectors


@dataclass(frozen=True)
class ShardSource:
    """The documents `start` to `stop` of `embeddings`."""

    embeddings: Embeddings
    start: int
    stop: int
    candidates: int
    """How many candidates a neighbour are ranked."""

    def load(self) -> tuple[Vectors, Ids]:
        """The vectors that have a direction, and which documents they are of."""
        vectors = self.embeddings.rows(self.start, self.stop)
        real = np.flatnonzero(vectors.any(axis=1))
        return vectors if len(real) == len(vectors) else vectors[real], real + self.start

    def index(self, base: Vectors, trained: Path | None, probes: int, devices: Sequence[Any] = ()) -> Shard:
        """The vectors `base` in a copy of the index in file `trained`, of which so many lists are searched.

        Without such a file all of them are compared, on `devices` of PyTorch if there are any.
        """
        if trained is not None:
            return InvertedShard(base, load_index(trained), probes, self.candidates)
        if not devices:
            return ExactShard(base)
        from paribus.ordering.neighbours.device_shard import DeviceShard

        return DeviceShard(base, devices)
