"""Drops a document that starts like the one before it, as the released code of In-Context Pretraining does on writing.

Compared are the sets of character trigrams of both starts, by Jaccard similarity: |A and B| / |A or B|.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from paribus.corpus.artifact import CorpusArtifact

GRAM = 3
DROPPED = "dropped.parquet"


@dataclass(frozen=True)
class Starts:
    """Id and first characters of every document, in corpus order."""

    ids: list[str]
    texts: list[str]


@dataclass(frozen=True)
class Dropped:
    """Documents left out, in the order in which they would have been read."""

    documents: list[int]
    before: list[int]
    """The document that is read instead: the last one before it that is not dropped."""
    similarities: list[float]


def starts_of(corpus: CorpusArtifact, characters: int) -> Starts:
    """The first `characters` characters of every document of the training split."""
    starts = Starts([], [])
    for document in corpus.documents("train"):
        starts.ids.append(document.id)
        starts.texts.append(document.text[:characters])
    return starts


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
        similarity = _jaccard(before_grams, grams) if before >= 0 else 0.0
        if similarity > jaccard:
            stays[position] = False
            dropped.documents.append(document)
            dropped.before.append(before)
            dropped.similarities.append(similarity)
        else:
            before, before_grams = document, grams
    return documents[stays], dropped


def trigrams(text: str) -> frozenset[str]:
    """Substrings of three characters; a text that is shorter is its only one."""
    return frozenset(text[start : start + GRAM] for start in range(max(1, len(text) - GRAM + 1)))


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)


def write_dropped(directory: Path, dropped: Dropped, ids: list[str]) -> None:
    """Write `dropped.parquet`: document, id, before, before_id, similarity; a row a document left out."""
    columns = {
        "document": pa.array(dropped.documents, pa.int64()),
        "id": pa.array([ids[document] for document in dropped.documents], pa.string()),
        "before": pa.array(dropped.before, pa.int64()),
        "before_id": pa.array([ids[document] for document in dropped.before], pa.string()),
        "similarity": pa.array(dropped.similarities, pa.float64()),
    }
    pq.write_table(pa.table(columns), directory / DROPPED)
