"""BM25 (Robertson and Zaragoza, 2009, equation 3.15) between the documents of one corpus.

w(t, d) = ln(1 + (n - df + 0.5) / (df + 0.5)) * tf (k1 + 1) / (tf + k1 (1 - b + b length / mean length))

The logarithm of one plus the odds, Lucene's, keeps terms that most documents have from counting against one. A length
is the number of terms that two documents have at least.

A document asks for the terms that weigh most in itself, each once: score(i, j) is the sum of w(t, j) over these. The
similarity of i to j is score(i, j) / score(i, i), at most 1: the part of what i asks for that j has.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

PARTS = ("data", "indices", "indptr")
BY_DOCUMENT, BY_TERM = "documents", "terms"

Row = tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]


def weights(counts: csr_array, *, saturation: float, length_normalization: float) -> csr_array:
    """BM25 weights of (documents, terms) `counts`, float32 of the same form."""
    documents, terms = counts.shape
    lengths = np.asarray(counts.sum(axis=1, dtype=np.float64)).reshape(-1)
    frequency = np.bincount(counts.indices, minlength=terms)
    rarity = np.log1p((documents - frequency + 0.5) / (frequency + 0.5))
    # Without any shared term there are no lengths, and nothing to weigh.
    relative = lengths / (lengths.mean() or 1.0)
    penalty = saturation * (1 - length_normalization + length_normalization * relative)
    owner = np.repeat(np.arange(documents), np.diff(counts.indptr))
    saturated = counts.data * (saturation + 1) / (counts.data + penalty[owner])
    values = (rarity[counts.indices] * saturated).astype(np.float32)
    return csr_array((values, counts.indices, counts.indptr), shape=counts.shape)


def save_bm25(directory: Path, weighted: csr_array) -> None:
    """Write BM25 weights, (documents, terms), by document and by term."""
    for name, matrix in ((BY_DOCUMENT, weighted), (BY_TERM, csr_array(weighted.T.tocsr()))):
        for part in PARTS:
            np.save(directory / f"{name}_{part}.npy", getattr(matrix, part), allow_pickle=False)
    np.save(directory / "shape.npy", np.array(weighted.shape), allow_pickle=False)


@dataclass(frozen=True)
class Index:
    """BM25 weights of a corpus, memory-mapped."""

    by_document: csr_array
    """(documents, terms) float32."""
    by_term: csr_array
    """(terms, documents) float32."""

    @classmethod
    def of(cls, weighted: csr_array) -> "Index":
        """The index of BM25 weights, (documents, terms), in memory."""
        return cls(weighted, csr_array(weighted.T.tocsr()))

    @classmethod
    def load(cls, directory: Path) -> "Index":
        """The index that `save_index` wrote."""
        documents, terms = np.load(directory / "shape.npy", allow_pickle=False).tolist()
        return cls(_load(directory, BY_DOCUMENT, (documents, terms)), _load(directory, BY_TERM, (terms, documents)))

    def neighbours(
        self, start: int, stop: int, *, query_terms: int, count: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """The `count` documents most similar to each of the documents `start` to `stop`, and their similarities.

        Both are (stop - start, count), of equal ones the smaller id first, -1 and 0 where fewer documents share a
        term with the query.
        """
        ids = np.full((stop - start, count), -1, dtype=np.int64)
        similarities = np.zeros((stop - start, count), dtype=np.float32)
        scores = csr_array(self._queries(start, stop, query_terms) @ self.by_term)
        for row, document in enumerate(range(start, stop)):
            found, similarity = _nearest(*_row(scores, row), document, count)
            ids[row, : len(found)], similarities[row, : len(found)] = found, similarity
        return ids, similarities

    def _queries(self, start: int, stop: int, query_terms: int) -> csr_array:
        """(documents, terms), 1 for each of the `query_terms` weightiest terms of a document, of equal ones the first.

        Document `start` is row 0.
        """
        chosen = [_heaviest(*_row(self.by_document, document), query_terms)[0] for document in range(start, stop)]
        ends = np.concatenate([[0], np.cumsum([len(terms) for terms in chosen], dtype=np.int64)])
        terms = np.concatenate([*chosen, np.zeros(0, dtype=np.int64)])
        ones = np.ones(len(terms), dtype=np.float32)
        return csr_array((ones, terms, ends), shape=(stop - start, self.by_document.shape[1]))


def _load(directory: Path, name: str, shape: tuple[int, int]) -> csr_array:
    parts = [np.load(directory / f"{name}_{part}.npy", mmap_mode="r", allow_pickle=False) for part in PARTS]
    return csr_array(tuple(parts), shape=shape, copy=False)


def _row(matrix: csr_array, row: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    part = slice(int(matrix.indptr[row]), int(matrix.indptr[row + 1]))
    return matrix.indices[part], matrix.data[part]


def _heaviest(ids: npt.NDArray[Any], weight: npt.NDArray[Any], count: int) -> Row:
    """The `count` ids of largest weight, of equal ones the smaller, in this order, and their weights."""
    if len(ids) > count:
        enough = weight >= np.partition(weight, len(ids) - count)[len(ids) - count]
        ids, weight = ids[enough], weight[enough]
    order = np.lexsort((ids, -weight))[:count]
    return ids[order].astype(np.int64), weight[order]


def _nearest(ids: npt.NDArray[Any], score: npt.NDArray[Any], document: int, count: int) -> Row:
    """Neighbours of `document` among those it shares a term with, and their similarities."""
    own = ids == document
    if not own.any() or not count:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
    return _heaviest(ids[~own], np.minimum(score[~own] / score[own], np.float32(1)), count)
