"""How often which term occurs in which document.

A shard of the corpus is counted alone, in any process; shards are put together with their terms in one order, by code
point, so the counts depend on neither the shards nor the processes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack
from sklearn.feature_extraction.text import CountVectorizer

from paribus.corpus.artifact import read_texts
from paribus.ordering.embed.tfidf import TERM


@dataclass(frozen=True)
class TermCounts:
    """Documents by terms."""

    terms: list[str]
    """In the order of their code points."""
    counts: csr_array
    """(documents, terms) int32."""


def count_shard(shard: Path) -> TermCounts:
    """Terms of the documents of one shard."""
    return count_texts(list(read_texts(shard)))


def count_texts(texts: Sequence[str]) -> TermCounts:
    """Terms of some documents."""
    counter = CountVectorizer(token_pattern=TERM, dtype=np.int32)
    counts = _fitted(counter, texts)
    terms = sorted(getattr(counter, "vocabulary_", {}))
    return TermCounts(terms, counts)


def _fitted(counter: CountVectorizer, texts: Sequence[str]) -> csr_array:
    """Counts; without columns where no text has a term, which scikit-learn refuses."""
    analyze = counter.build_analyzer()
    if not any(analyze(text) for text in texts):
        return csr_array((len(texts), 0), dtype=np.int32)
    return csr_array(counter.fit_transform(texts))


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
