"""How often which term occurs in which document.

A shard of the corpus is counted alone, in any process; shards are put together with their terms in one order, by code
point, so the counts depend on neither the shards nor the processes.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from paribus.corpus.artifact import read_texts
from paribus.ordering.term import TERM


@dataclass(frozen=True)
class TermCounts:
    """Documents by terms."""

    terms: list[str]
    """In the order of their code points."""
    counts: csr_array
    """(documents, terms) int32."""


def count_shard(shard: Path) -> TermCounts:
    """Terms of the documents of one shard."""
    return count_texts(read_texts(shard))


def count_texts(texts: Iterable[str]) -> TermCounts:
    """Terms of some documents, in lower case."""
    find = re.compile(TERM).findall
    numbers: dict[str, int] = {}
    columns, values, bounds = array("i"), array("i"), [0]
    for text in texts:
        found = Counter(find(text.lower()))
        columns.extend(numbers.setdefault(term, len(numbers)) for term in found)
        values.extend(found.values())
        bounds.append(len(columns))
    shape, kind = (len(bounds) - 1, len(numbers)), np.int32 if len(columns) < 2**31 else np.int64
    parts = (np.array(values, np.int32), np.array(columns, kind), np.array(bounds, kind))
    counts = csr_array(parts, shape=shape)
    # In a row terms stand as they occurred first: sums that are rounded keep their sequence.
    counts.sort_indices()
    terms = sorted(numbers)
    place = np.empty(len(terms), counts.indices.dtype)
    place[[numbers[term] for term in terms]] = np.arange(len(terms))
    parts = (counts.data, place[counts.indices], counts.indptr)
    return TermCounts(terms, csr_array(parts, shape=shape))


def together(parts: Iterable[TermCounts]) -> TermCounts:
    """Counts of all shards, documents in their order; only terms that two documents have at least.

    A term of a single document leads to no other.
    """
    shards = list(parts)
    terms = sorted(set().union(*(shard.terms for shard in shards)))
    column = {term: number for number, term in enumerate(terms)}
    counts = vstack([_renumbered(shard, column) for shard in shards], format="csr")
    shared = np.bincount(counts.indices, minlength=len(terms)) > 1
    kept: npt.NDArray[np.int64] = np.flatnonzero(shared)
    return TermCounts([terms[number] for number in kept], csr_array(counts[:, kept]))


def _renumbered(shard: TermCounts, column: dict[str, int]) -> csr_array:
    number = np.array([column[term] for term in shard.terms], dtype=shard.counts.indices.dtype)
    parts = (shard.counts.data, number[shard.counts.indices], shard.counts.indptr)
    return csr_array(parts, shape=(shard.counts.shape[0], len(column)))
