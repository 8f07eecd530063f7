"""The stage `lexical_neighbours`: the documents nearest to each by BM25, for those without an encoder.

The index, and blocks of documents whose neighbours are found, stay in the stage's scratch directory until the stage is
done, so a killed stage goes on where it stood. Only the index and the scores of one block a worker are in memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from paribus.config.groups.ordering import LexicalOrdering
from paribus.corpus.artifact import CorpusArtifact
from paribus.errors import DataError
from paribus.ordering.lexical.bm25 import Index, save_bm25, weights
from paribus.ordering.lexical.terms import count_shard, together
from paribus.ordering.neighbours.lists import create_lists
from paribus.stage import JSON, StageContext
from paribus.store import files

SPARE = 30
"""Neighbours found beyond those the ordering wants, so that enough are left where near duplicates are removed."""
SCORES_A_BLOCK = 2**24
MOST_DOCUMENTS_A_BLOCK = 1024
MOST_DOCUMENTS = 1_000_000
"""Twice as many take four times as long: at 34 s for 14,796 on two cores (measured), a million take over 40 hours."""


@dataclass(frozen=True)
class LexicalSearch:
    """What finding the neighbours of a block of documents needs to know."""

    index: Path
    results: Path
    query_terms: int
    width: int


def build(context: StageContext) -> dict[str, JSON]:
    """Write lists of `ordering.neighbours` + 30 neighbours; say how many documents have none.

    DataError where the training split has no documents, none with a word, or more than can be compared.
    """
    ordering = context.config.ordering
    if not isinstance(ordering, LexicalOrdering):
        raise TypeError(f"ordering={ordering.kind} has no lexical neighbours")
    corpus = CorpusArtifact(context.inputs["corpus"])
    documents = corpus.count("train")
    _refuse_count(documents)
    index = _index(context, corpus, ordering)
    search = LexicalSearch(index, context.work, ordering.query_terms, min(ordering.neighbours + SPARE, documents - 1))
    ids, similarities = create_lists(context.output, documents, search.width)
    blocks = list(_blocks(documents))
    for (start, stop), result in zip(blocks, context.engine.map(partial(find, search), blocks), strict=True):
        with np.load(result, allow_pickle=False) as found:
            ids[start:stop], similarities[start:stop] = found["ids"], found["similarities"]
        context.report.progress(stop, documents, unit="documents", doing="finding lexical neighbours")
    return _summary(documents, ids, similarities)


def find(search: LexicalSearch, block: tuple[int, int]) -> Path:
    """File with the neighbours of documents `block[0]` to `block[1]`; one that is there already is taken as it is."""
    path = search.results / f"neighbours_{block[0]:012d}_{block[1]:012d}.npz"
    if not path.exists():
        index = Index.load(search.index)
        ids, similarities = index.neighbours(*block, query_terms=search.query_terms, count=search.width)
        with files.replacing(path) as aside, aside.open("wb") as file:
            np.savez(file, ids=ids, similarities=similarities)
    return path


def _refuse_count(documents: int) -> None:
    if not documents:
        raise DataError("The training split has no documents to compare: give more text, or lower `corpus.heldout`")
    if documents > MOST_DOCUMENTS:
        raise DataError(
            f"ordering=lexical compares every document with all others, and the training split has {documents:,}: "
            f"above {MOST_DOCUMENTS:,} that takes more than 40 hours on two cores (measured: 34 s for 14,796, and "
            "twice as many take four times as long); use ordering=in_context, whose neighbours come from an index, or "
            "lower corpus.limit"
        )


def _index(context: StageContext, corpus: CorpusArtifact, ordering: LexicalOrdering) -> Path:
    """Directory of the index, made if it is not there yet."""
    directory = context.work / "index"
    if directory.is_dir():
        return directory
    shards = corpus.shards("train")
    parts = []
    for done, part in enumerate(context.engine.map(count_shard, shards)):
        parts.append(part)
        context.report.progress(done + 1, len(shards), unit="shards", doing="counting terms")
    if not any(part.terms for part in parts):
        raise DataError(
            "No document of the training split has a word, so BM25 cannot tell documents apart; use ordering=standard"
        )
    weighted = weights(
        together(parts).counts,
        saturation=ordering.saturation,
        length_normalization=ordering.length_normalization,
    )
    with files.replacing(directory) as aside:
        aside.mkdir()
        save_bm25(aside, weighted)
    return directory


def _blocks(documents: int) -> Iterator[tuple[int, int]]:
    """Documents whose scores with all others fit into memory together; the same for any number of workers."""
    rows = max(1, min(MOST_DOCUMENTS_A_BLOCK, SCORES_A_BLOCK // documents))
    for start in range(0, documents, rows):
        yield start, min(start + rows, documents)


def _summary(documents: int, ids: np.ndarray, similarities: np.ndarray) -> dict[str, JSON]:
    nearest = similarities[ids[:, 0] >= 0, 0] if ids.shape[1] else similarities.reshape(-1)
    return {
        "documents": documents,
        "neighbours": int(ids.shape[1]),
        "without_neighbours": documents - len(nearest),
        "mean_similarity_of_nearest": float(nearest.mean(dtype=np.float64)) if len(nearest) else 0.0,
    }
