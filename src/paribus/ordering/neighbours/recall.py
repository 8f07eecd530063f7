"""How many of the nearest documents a search found, measured on a sample against an exact search."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paribus.ordering.embed.artifact import Embeddings
from paribus.ordering.neighbours.blocks import Blocks
from paribus.ordering.neighbours.index import ExactShard, nearest_documents
from paribus.ordering.neighbours.lists import NeighbourLists
from paribus.ordering.neighbours.ranking import Ids, Neighbours

RECALLED = 20
"""Nearest documents that recall is a share of: as many as the orders make edges of."""
_ROUNDING = np.float32(1e-6)


@dataclass(frozen=True)
class RecallSample:
    """Documents evenly spread over the corpus and their exact neighbours so far."""

    documents: Ids
    blocks: Blocks

    @classmethod
    def spread(cls, documents: int, size: int, work: Path, count: int) -> "RecallSample":
        """`size` of so many documents, and room in `work` for `count` neighbours of each."""
        chosen = np.unique(np.linspace(0, documents - 1, min(size, documents)).astype(np.int64))
        directory = work / "sample"
        directory.mkdir(exist_ok=True)
        return cls(chosen, Blocks(directory, len(chosen), count))

    def compare(self, number: int, shard: ExactShard, rows: Ids, embeddings: Embeddings) -> None:
        """Search shard `number` exactly."""
        for block in range(self.blocks.count):
            if self.blocks.searched(block) <= number:
                documents = self.documents[slice(*self.blocks.bounds(block))]
                queries = embeddings.take(documents)
                self.blocks.add(block, number, nearest_documents(shard, rows, queries, documents, self.blocks.width))

    def recall(self, lists: NeighbourLists) -> float | None:
        """Share of the sample's nearest neighbours that are in `lists`; None without a sample."""
        if not len(self.documents):
            return None
        truth = [np.concatenate(part) for part in zip(*map(self.blocks.read, range(self.blocks.count)), strict=True)]
        found = (lists.ids[self.documents].astype(np.int64), lists.similarities[self.documents])
        return share_found((found[0][:, : self.blocks.width], found[1][:, : self.blocks.width]), (truth[0], truth[1]))


def share_found(found: Neighbours, truth: Neighbours) -> float:
    """Share of true neighbours in whose place one as near was found; 1 where there are none.

    Both are lists of one length; documents as near as the last true neighbour count, whichever of them were found.
    """
    real = truth[0] >= 0
    last = np.where(real, truth[1], np.inf).min(axis=1)
    hits = ((found[0] >= 0) & (found[1] >= last[:, None] - _ROUNDING)).sum(axis=1)
    wanted = real.sum(axis=1)
    return float(np.minimum(hits, wanted).sum() / wanted.sum()) if wanted.sum() else 1.0
