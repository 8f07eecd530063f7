"""The stage `lexical_neighbours`: the documents nearest to each by BM25, for those without an encoder.

The index and the neighbours of finished blocks of documents stay in the stage's scratch directory until the stage is
done, so a killed stage resumes where it stopped. Only the index and the scores of one block per worker are in memory.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from paribus.config.groups.ordering import LexicalOrdering
from paribus.corpus.artifact import CorpusArtifact, read_texts
from paribus.errors import DataError
from paribus.ordering.arrays import TERM, boundaries, create_lists, mean_of
from paribus.stage import JSON, StageContext
from paribus.store import files

SPARE = 30
"""Neighbours beyond those of the ordering, so that enough remain where near duplicates are removed."""
SCORES_A_BLOCK = 2**24
MOST_DOCUMENTS_A_BLOCK = 1024
MOST_DOCUMENTS = 1_000_000
"""Twice as many take four times as long: at 34 s for 14,796 on two cores (measured), a million take over 40 hours."""
PARTS = ("data", "indices", "indptr")
BY_DOCUMENT, BY_TERM = "documents", "terms"
Row = tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]


def build(context: StageContext) -> dict[str, JSON]:
    """Write lists of `ordering.neighbours` + 30 neighbours; return how many documents have none, and other counts.

    DataError where the training split has no documents, none with a word, or more than can be compared.
    """
    ordering = context.config.ordering
    if not isinstance(ordering, LexicalOrdering):
        raise TypeError(f"ordering={ordering.kind} has no lexical neighbours")
    corpus = CorpusArtifact(context.inputs["corpus"])
    documents = corpus.count("train")
    if not documents:
        raise DataError("The training split has no documents to compare: give more text, or lower `corpus.heldout`")
    if documents > MOST_DOCUMENTS:
        raise DataError(
            f"ordering=lexical compares every document with all others, and the training split has {documents:,}: "
            f"above {MOST_DOCUMENTS:,} that takes more than 40 hours on two cores (measured: 34 s for 14,796, and "
            "twice as many take four times as long); use ordering=in_context, whose neighbours come from an index, or "
            "lower corpus.limit"
        )
    index, width = _index(context, corpus, ordering), min(ordering.neighbours + SPARE, documents - 1)
    search = partial(find, index, context.work, ordering.query_terms, width)
    ids, similarities = create_lists(context.output, documents, width)
    # So many that their scores with all others fit into memory together; the same for any number of workers.
    rows = max(1, min(MOST_DOCUMENTS_A_BLOCK, SCORES_A_BLOCK // documents))
    blocks = [(start, min(start + rows, documents)) for start in range(0, documents, rows)]
    for (start, stop), result in zip(blocks, context.engine.map(search, blocks), strict=True):
        with np.load(result, allow_pickle=False) as lists:
            ids[start:stop], similarities[start:stop] = lists["ids"], lists["similarities"]
        context.listener.progress(stop, documents, unit="documents", doing="finding lexical neighbours")
    nearest = similarities[ids[:, 0] >= 0, 0] if width else similarities.reshape(-1)
    return {
        "documents": documents,
        "neighbours": width,
        "without_neighbours": documents - len(nearest),
        "mean_similarity_of_nearest": mean_of(nearest),
    }


def find(index: Path, results: Path, query_terms: int, width: int, block: tuple[int, int]) -> Path:
    """File with the neighbours of documents `block[0]` to `block[1]`, written unless it exists."""
    path = results / f"neighbours_{block[0]:012d}_{block[1]:012d}.npz"
    if not path.exists():
        ids, similarities = Index.load(index).neighbours(*block, query_terms=query_terms, count=width)
        with files.replacing(path) as aside, aside.open("wb") as file:
            np.savez(file, ids=ids, similarities=similarities)
    return path


def _index(context: StageContext, corpus: CorpusArtifact, ordering: LexicalOrdering) -> Path:
    directory = context.work / "index"
    if directory.is_dir():
        return directory
    shards = corpus.shards("train")
    parts = []
    for done, part in enumerate(context.engine.map(count_shard, shards)):
        parts.append(part)
        context.listener.progress(done + 1, len(shards), unit="shards", doing="counting terms")
    if not any(part.terms for part in parts):
        raise DataError(
            "No document of the training split has a word, so BM25 cannot tell documents apart; use ordering=standard"
        )
    form = {"saturation": ordering.saturation, "length_normalization": ordering.length_normalization}
    index = Index.of(weights(together(parts).counts, **form))
    with files.replacing(directory) as aside:
        aside.mkdir()
        for name, matrix in ((BY_DOCUMENT, index.by_document), (BY_TERM, index.by_term)):
            for array_name in PARTS:
                np.save(aside / f"{name}_{array_name}.npy", getattr(matrix, array_name), allow_pickle=False)
        np.save(aside / "shape.npy", np.array(index.by_document.shape), allow_pickle=False)
    return directory


# BM25 (Robertson and Zaragoza, 2009, equation 3.15) between the documents of one corpus.
#
# w(t, d) = ln(1 + (n - df + 0.5) / (df + 0.5)) * tf (k1 + 1) / (tf + k1 (1 - b + b length / mean length))
#
# The logarithm of one plus the odds, as in Lucene, keeps the weight of terms that most documents have above zero. A
# length counts the terms that at least two documents have.
#
# The query of a document is the terms that weigh most in it, each once: score(i, j) is the sum of w(t, j) over the
# query of i. The similarity of i to j is score(i, j) / score(i, i), at most 1.
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
            nearest, similarity = _nearest(*_row(scores, row), document, count)
            ids[row, : len(nearest)], similarities[row, : len(nearest)] = nearest, similarity
        return ids, similarities

    def _queries(self, start: int, stop: int, query_terms: int) -> csr_array:
        """(documents, terms), 1 for each of the `query_terms` weightiest terms of a document, of equal ones the first.

        Document `start` is row 0.
        """
        chosen = [_heaviest(*_row(self.by_document, document), query_terms)[0] for document in range(start, stop)]
        ends = boundaries([len(terms) for terms in chosen])
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
    itself = ids == document
    if not itself.any() or not count:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
    return _heaviest(ids[~itself], np.minimum(score[~itself] / score[itself], np.float32(1)), count)


# Each shard of the corpus is counted alone, in any process; shards are joined with their terms in the order of code
# points, so the counts depend on neither the shards nor the processes.
@dataclass(frozen=True)
class TermCounts:
    """Documents by terms."""

    terms: list[str]
    """Terms in the order of their code points."""
    counts: csr_array
    """(documents, terms) int32."""


def count_shard(shard: Path) -> TermCounts:
    return count_texts(read_texts(shard))


def count_texts(texts: Iterable[str]) -> TermCounts:
    """Terms of some documents, in lower case."""
    find = re.compile(TERM).findall
    numbers: dict[str, int] = {}
    columns, values, bounds = array("i"), array("i"), [0]
    for text in texts:
        counted = Counter(find(text.lower()))
        columns.extend(numbers.setdefault(term, len(numbers)) for term in counted)
        values.extend(counted.values())
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
    """Counts of all shards, documents in order, for terms that at least two documents have.

    A term of a single document leads to no other.
    """
    shards = list(parts)
    terms = sorted(set().union(*(shard.terms for shard in shards)))
    column = {term: number for number, term in enumerate(terms)}
    counts = vstack([_renumbered(shard, column) for shard in shards], format="csr")
    shared = np.bincount(counts.indices, minlength=len(terms)) > 1
    columns: npt.NDArray[np.int64] = np.flatnonzero(shared)
    return TermCounts([terms[number] for number in columns], csr_array(counts[:, columns]))


def _renumbered(shard: TermCounts, column: dict[str, int]) -> csr_array:
    number = np.array([column[term] for term in shard.terms], dtype=shard.counts.indices.dtype)
    parts = (shard.counts.data, number[shard.counts.indices], shard.counts.indptr)
    return csr_array(parts, shape=(shard.counts.shape[0], len(column)))
