"""Near duplicates by MinHash: signatures a part of the corpus at a time, candidates by bands, pairs by agreement."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from paribus.config.groups.embedding import MinHashDuplicates
from paribus.ordering.arrays import FileRows, map_array
from paribus.ordering.duplicates.bands import Bands, buckets, linked
from paribus.ordering.duplicates.groups import group
from paribus.ordering.duplicates.pairs import Indices, Pairs, equal_pairs
from paribus.ordering.duplicates.signatures import keys_path
from paribus.ordering.parts import CorpusPart
from paribus.stage import Reporter

SIGNATURES_AT_ONCE = 65_536


def minhash_pairs(parts: Sequence[CorpusPart], config: MinHashDuplicates, report: Reporter) -> Pairs:
    """Pairs among the documents of signed parts whose estimated Jaccard similarity is `config.threshold` or more.

    As many as connect what is connected, not all. Documents of one signature are paired with the first of them, which
    alone is compared with others.
    """
    signatures = FileRows([part.target for part in parts], [part.rows for part in parts])
    pairs = equal_pairs(_keys(parts, slice(0, 2)))
    distinct = np.delete(np.arange(len(signatures)), pairs.second)
    count = Bands.of(config).count
    for band in range(count):
        report.progress(band, count, unit="bands", doing="comparing signatures")
        keys = _keys(parts, slice(2 + band, 3 + band))[distinct, 0]
        candidates = buckets(distinct, keys, group(len(signatures), pairs).first[distinct])
        pairs = Pairs.joined([pairs, *_confirmed(candidates, signatures, config.threshold)])
    report.progress(count, count, unit="bands", doing="comparing signatures")
    return pairs


def _keys(parts: Sequence[CorpusPart], rows: slice) -> npt.NDArray[np.uint64]:
    """Some keys of every document, (n, keys)."""
    return np.concatenate([map_array(keys_path(part.target))[rows].T for part in parts])


def _confirmed(candidates: Iterable[Indices], signatures: FileRows, threshold: float) -> Iterator[Pairs]:
    for batch in _batches(candidates):
        rows = signatures.take(np.concatenate(batch))
        splits = np.split(rows, np.cumsum([len(bucket) for bucket in batch])[:-1])
        found = (linked(bucket, part, threshold) for bucket, part in zip(batch, splits, strict=True))
        yield Pairs.joined(pairs for pairs in found if len(pairs.first))


def _batches(candidates: Iterable[Indices]) -> Iterator[list[Indices]]:
    """Buckets of some signatures together, so that their files are opened once."""
    batch, size = list[Indices](), 0
    for bucket in candidates:
        batch.append(bucket)
        size += len(bucket)
        if size >= SIGNATURES_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
