"""The order that the released code of In-Context Pretraining makes (swj0419/in-context-pretraining, sort/sort.py).

Chains over directed neighbours: the first unseen neighbour of the list follows; where there is none, and where a chain
is full, the next chain begins at a random unseen document. Then chains that are not full are dissolved in the order
they were begun, each document going before its nearest neighbour in another chain as chains are by then. So a chain
that others have filled stays whole, and one that took documents before it is dissolved takes them along.

Where the released code fails or leaves its outcome to chance, this one is defined: its first chain has room for one
document more than the others, whose chain is unknown to the second step, and here it is like the others; Python's
`set.pop` chooses its random document, here the seed; a document without a neighbour in another chain stops it, and
here stays where it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from paribus.ordering.arrays import JUMPS, NeighbourLists, boundaries, permutation
from paribus.ordering.in_context import WholeLists, whole_lists

NOBODY = -1
GRAM = 3
DROPPED = "dropped.parquet"


@dataclass(frozen=True)
class Chained:
    """Documents chain by chain."""

    documents: npt.NDArray[np.int64]
    """(m,) document indices, each once."""
    chains: int
    """Chains that the walk made."""
    dissolved: int
    """Chains that were not full when their turn came."""
    moved: int
    """Documents that went to another chain; one that moves twice counts twice."""


def in_chains(
    lists: NeighbourLists,
    kept: npt.NDArray[np.bool_],
    neighbours: int,
    chain: int,
    *,
    seed: int,
    work: Path | None = None,
) -> Chained:
    """Chains of at most `chain` documents over the first `neighbours` kept neighbours, the short ones dissolved.

    `kept` is (n,) bool; `work` is a directory for the lists of kept documents, which are in memory without it.
    O(m neighbours) time.
    """
    table = _Table(whole_lists(lists.ids, lists.similarities, kept=kept, take=neighbours, work=work))
    random = permutation(table.count, JUMPS, seed)
    chains = _Chains(*_walk(table, chain, iter(random.data)))
    dissolved, moved = _dissolve_short(chains, table, chain)
    return Chained(np.flatnonzero(kept)[chains.documents()], len(chains.first), dissolved, moved)


class _Table:
    """Neighbours of each kept document, nearest first, numbered among kept documents.

    Indexing a memoryview gives Python numbers several times faster than indexing an array.
    """

    def __init__(self, near: WholeLists) -> None:
        present = near.ids >= 0
        self._flat = near.ids[present].data
        self._ends = boundaries(present.sum(axis=1)).data
        self.count = len(present)

    def __getitem__(self, document: int) -> "memoryview[int]":
        return self._flat[self._ends[document] : self._ends[document + 1]]


def _walk(table: _Table, chain: int, landings: Iterator[int]) -> tuple[npt.NDArray[np.int64], list[int]]:
    """Documents as they are met, and the positions at which chains begin.

    `landings` is a random permutation: the first unseen one is uniformly random among the unseen, because what is seen
    depends on nothing that follows it.
    """
    seen = bytearray(table.count)
    met, starts = np.empty(table.count, dtype=np.int64), list[int]()
    document = NOBODY
    for position in range(table.count):
        full = not starts or position - starts[-1] >= chain
        follower = NOBODY if full else next((near for near in table[document] if not seen[near]), NOBODY)
        if follower == NOBODY:
            follower = next(landing for landing in landings if not seen[landing])
            starts.append(position)
        document = follower
        seen[document] = 1
        met[position] = document
    return met, starts


class _Chains:
    """Doubly linked lists of documents, one per chain, so that a document is put before another in constant time."""

    def __init__(self, met: npt.NDArray[np.int64], starts: list[int]) -> None:
        bounds = [*starts, len(met)]
        self.sizes = np.diff(bounds).tolist()
        self.first = [NOBODY] * len(starts)
        self.after, self.before, self.chain = ([NOBODY] * len(met) for _ in range(3))
        for chain, (start, end) in enumerate(pairwise(bounds)):
            self.link(chain, met[start:end].tolist())

    def link(self, chain: int, members: list[int]) -> None:
        """Make `members`, in this order, the documents of `chain`."""
        self.sizes[chain] = len(members)
        self.first[chain] = members[0] if members else NOBODY
        for document, before, after in zip(members, [NOBODY, *members], [*members[1:], NOBODY], strict=False):
            self.before[document], self.after[document], self.chain[document] = before, after, chain

    def members(self, chain: int) -> list[int]:
        documents, document = list[int](), self.first[chain]
        while document != NOBODY:
            documents.append(document)
            document = self.after[document]
        return documents

    def put_before(self, document: int, follower: int) -> None:
        """Make `document` the one before `follower`, in its chain; the chain it leaves is linked anew afterwards."""
        before, chain = self.before[follower], self.chain[follower]
        if before == NOBODY:
            self.first[chain] = document
        else:
            self.after[before] = document
        self.before[document], self.after[document], self.before[follower] = before, follower, document
        self.chain[document] = chain
        self.sizes[chain] += 1

    def documents(self) -> list[int]:
        return [document for chain in range(len(self.first)) for document in self.members(chain)]


def _dissolve_short(chains: _Chains, table: _Table, full: int) -> tuple[int, int]:
    """Dissolve chains of fewer than `full` documents; returns the numbers of these and of documents that moved."""
    dissolved = moved = 0
    for chain in range(len(chains.first)):
        if chains.sizes[chain] >= full:
            continue
        members, staying = chains.members(chain), list[int]()
        for document in members:
            follower = next((near for near in table[document] if chains.chain[near] != chain), NOBODY)
            if follower == NOBODY:
                staying.append(document)
            else:
                chains.put_before(document, follower)
        chains.link(chain, staying)
        dissolved += 1
        moved += len(members) - len(staying)
    return dissolved, moved


# Drops a document that starts like the one before it, as the released code of In-Context Pretraining does on writing.
#
# Compared are the sets of character trigrams of both starts, by Jaccard similarity: |A and B| / |A or B|.
@dataclass(frozen=True)
class Dropped:
    """Documents left out, in the order in which they would have been read."""

    documents: list[int]
    before: list[int]
    """The document that is read instead: the last one before it that is not dropped."""
    similarities: list[float]


def without_alike(
    documents: npt.NDArray[np.int64], texts: list[str], jaccard: float
) -> tuple[npt.NDArray[np.int64], Dropped]:
    """The order `documents`, (m,), without those whose similarity with the one before, not dropped, is above `jaccard`.

    `texts` are by document index.
    """
    stays, dropped = np.ones(len(documents), dtype=bool), Dropped([], [], [])
    before, before_grams = -1, frozenset[str]()
    for position, document in enumerate(documents.tolist()):
        grams = trigrams(texts[document])
        shared = len(before_grams & grams)
        similarity = shared / (len(before_grams) + len(grams) - shared)
        if before >= 0 and similarity > jaccard:
            stays[position] = False
            dropped.documents.append(document)
            dropped.before.append(before)
            dropped.similarities.append(similarity)
        else:
            before, before_grams = document, grams
    return documents[stays], dropped


def trigrams(text: str) -> frozenset[str]:
    """Substrings of three characters; of a shorter text, the text itself."""
    return frozenset(text[start : start + GRAM] for start in range(max(1, len(text) - GRAM + 1)))


def write_dropped(directory: Path, dropped: Dropped, ids: list[str]) -> None:
    """Write `dropped.parquet`: document, id, before, before_id, similarity; one row per document left out."""
    columns = {
        "document": pa.array(dropped.documents, pa.int64()),
        "id": pa.array([ids[document] for document in dropped.documents], pa.string()),
        "before": pa.array(dropped.before, pa.int64()),
        "before_id": pa.array([ids[document] for document in dropped.before], pa.string()),
        "similarity": pa.array(dropped.similarities, pa.float64()),
    }
    pq.write_table(pa.table(columns), directory / DROPPED)
