"""The search of one shard for the neighbours of one block of documents, which any thread of any process can do."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paribus.ordering.neighbours.blocks import Blocks
from paribus.ordering.neighbours.index import Shard, let_faiss_use_one_thread, nearest_documents
from paribus.ordering.neighbours.ranking import Ids, Vectors
from paribus.ordering.neighbours.rule import SearchPlan
from paribus.ordering.neighbours.source import ShardSource


class BlockSearch:
    """Searches shard number `number` by `plan` (None: all of it is compared) and merges what it finds into `blocks`.

    Several threads may call it at once. A process that it is sent to opens the shard for itself, as that is too large
    to be sent, out of `source` and the index in file `trained`.
    """

    def __init__(
        self, source: ShardSource, blocks: Blocks, number: int, plan: SearchPlan | None, trained: Path
    ) -> None:
        self.source, self.blocks, self.number, self.plan, self.trained = source, blocks, number, plan, trained
        self._shard: Shard | None = None
        self._rows: Ids = np.zeros(0, dtype=np.int64)

    def open(self, base: Vectors, rows: Ids, devices: Sequence[Any] = ()) -> None:
        """Make the shard of the vectors `base` of the documents `rows`, on `devices` if there are any."""
        inverted = self.plan is not None and self.plan.index != "flat"
        probes = self.plan.probes if self.plan else 0
        self._shard = self.source.index(base, self.trained if inverted else None, probes, devices)
        self._rows = rows

    def __call__(self, block: int) -> None:
        """Search for one block."""
        if self._shard is None:
            raise RuntimeError("a shard was searched before it was opened")
        let_faiss_use_one_thread()
        first, last = self.blocks.bounds(block)
        queries, documents = self.source.embeddings.rows(first, last), np.arange(first, last)
        found = nearest_documents(self._shard, self._rows, queries, documents, self.blocks.width)
        self.blocks.add(block, self.number, found)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_shard": None, "_rows": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        let_faiss_use_one_thread()
        self.open(*self.source.load())
