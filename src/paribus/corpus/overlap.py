"""The overlap of held-out documents with others: the largest share of their 8-grams that one other document has.

An 8-gram is a run of eight consecutive words in lower case, or of characters in scripts that are written without spaces
(`words`). The share is of the distinct ones of the held-out document, however often the other has them. A document of
fewer words counts as one run of them all, which only a document of the same few words has. Of pairs, both sides count.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from paribus.corpus.artifact import CorpusArtifact, Document, read_columns
from paribus.corpus.shingle_hashes import Counts, Hashes, shingle_hashes
from paribus.corpus.shingle_table import Integers, SharedShingles, ShingleTable
from paribus.engine import Engine, Item, Result
from paribus.stage import JSON, Reporter

BATCH_BYTES = 2**22
LEVELS = (80, 50, 20)
"""Percents above which held-out documents are counted."""


@dataclass(frozen=True)
class Overlaps:
    """Held-out documents by their distinct texts, and how much of each other documents have."""

    texts: npt.NDArray[np.int64]
    """(documents,) number of each document's text among the n distinct ones."""
    table: ShingleTable
    hashes: Hashes
    counts: Counts
    """(n,) of the hashes of the distinct texts, from which the table is made."""
    most: Integers
    """(n,) largest number of distinct shingles that one training document shares with each text."""

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """(documents,) overlap of each document."""
        shares: npt.NDArray[np.float64] = (self.most / self.table.sizes)[self.texts]
        return shares

    def components(self, threshold: float) -> npt.NDArray[np.int64]:
        """(documents,) number of the component of near copies of each: one has more than that share of the other."""
        least = _least(self.table.sizes, threshold)
        parents = SharedShingles(self.table).components(self.hashes, self.counts, least)
        return parents[self.texts].astype(np.int64)


def measure(corpus: CorpusArtifact, work: Path, engine: Engine, report: Reporter) -> Overlaps:
    """Compare the held-out split with the training split of a corpus; workers read a table that lies in `work`."""
    texts, hashes, counts = _heldout(corpus)
    table, directory = ShingleTable.of(hashes, counts), work / "shingles"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    table.save(directory)
    most, shards = np.zeros(len(counts), np.int32), corpus.shards("train")
    for done, found in enumerate(over_shards(engine, partial(most_shared, directory), shards), 1):
        most = np.maximum(most, found)
        report.progress(done, len(shards), unit="shards", doing="comparing held-out with training text")
    shutil.rmtree(directory)
    return Overlaps(texts, table, hashes, counts, most)


def over_shards(engine: Engine, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Map over shards, of one shard here: to start workers would take longer."""
    return engine.map(function, items) if len(items) > 1 else map(function, items)


def raised(overlaps: Overlaps, documents: Iterable[Document]) -> npt.NDArray[np.float64]:
    """(documents,) overlaps with the training documents and these others."""
    shared = SharedShingles(overlaps.table)
    for batch in _batches(document.texts for document in documents):
        shared.add(batch)
    shares: npt.NDArray[np.float64] = (np.maximum(overlaps.most, shared.most) / overlaps.table.sizes)[overlaps.texts]
    return shares


def summary(shares: npt.NDArray[np.float64]) -> dict[str, JSON]:
    """What a record says of the overlaps of documents: their number and mean, and how many are above some shares."""
    above: dict[str, JSON] = {f"above_{level}": int((shares > level / 100).sum()) for level in LEVELS}
    return {"documents": len(shares), **above, "mean": float(shares.mean())}


def most_shared(table: Path, shard: Path) -> Integers:
    """For each text of a saved table, the most of its shingles that one document of a shard has; for workers."""
    shared = SharedShingles(ShingleTable.load(table))
    for batch in _batches(read_columns(shard, ("text", "target"))):
        shared.add(batch)
    return shared.most


def _heldout(corpus: CorpusArtifact) -> tuple[npt.NDArray[np.int64], Hashes, Counts]:
    """Number of each held-out document's text, and the hashes of the distinct texts."""
    numbers: dict[tuple[str, ...], int] = {}
    texts = np.array([numbers.setdefault(found.texts, len(numbers)) for found in corpus.documents("heldout")], np.int64)
    parts = [shingle_hashes(batch) for batch in _batches(numbers)]
    return texts, np.concatenate([hashes for hashes, _ in parts]), np.concatenate([counts for _, counts in parts])


def _least(sizes: npt.NDArray[np.int64], threshold: float) -> Integers:
    """Smallest number of shingles whose share of `sizes` is above the threshold."""
    least = np.floor(threshold * sizes).astype(np.int64)
    least += least / sizes <= threshold
    least -= (least - 1) / sizes > threshold
    found: Integers = least.astype(np.int32)
    return found


def _batches(documents: Iterable[tuple[str, ...]]) -> Iterator[list[tuple[str, ...]]]:
    """Documents together until they have some megabytes."""
    batch, size = list[tuple[str, ...]](), 0
    for texts in documents:
        batch.append(texts)
        size += sum(map(len, texts))
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
