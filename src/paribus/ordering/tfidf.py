"""TF-IDF with truncated SVD: needs no weights and no GPU.

Latent semantic analysis (Deerwester et al., 1990) with randomized SVD (Halko, Martinsson and Tropp, 2011). Terms, their
weights and the directions are learned from a sample of documents; every document is then projected by itself.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from paribus.config.groups.ordering import TfidfEmbedder
from paribus.errors import DataError
from paribus.ordering.arrays import TERM, unit_rows
from paribus.stage import JSON
from paribus.store import files

SVD_SEED = 0
POWER_ITERATIONS = 5
RELATIVE_ZERO = 1e-9
TERMS, ARRAYS = "terms.json", "arrays.npz"


@dataclass(frozen=True)
class TfidfSvd:
    """Fitted terms, weights and directions."""

    config: TfidfEmbedder
    terms: list[str]
    idf: npt.NDArray[np.float64]
    """(terms,) smoothed inverse document frequency."""
    directions: npt.NDArray[np.float64]
    """(rank, terms) right singular vectors."""
    documents: int
    """Number of documents it was fitted on."""
    threads: int = 0

    @classmethod
    def fit(cls, texts: Iterable[str], config: TfidfEmbedder) -> Self:
        """Learn from documents; DataError if none has a word.

        Fewer documents or terms than dimensions give fewer directions.
        """
        counts, terms = _count(texts, config)
        documents, in_documents = counts.shape[0], np.bincount(counts.indices, minlength=len(terms))
        idf = np.log((1 + documents) / (1 + in_documents)) + 1
        return cls(config, terms, idf, _directions(_weighted(counts, idf), config.dimensions), documents)

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Unit vectors of documents, (n, config.dimensions) float32.

        A document without a known term, or without any part along the directions, has a row of zeros; columns beyond
        the number of directions are zeros.
        """
        counter = CountVectorizer(token_pattern=TERM, vocabulary=self.terms)
        counts = counter.transform(text[: self.config.max_characters] for text in texts)
        reduced = np.zeros((len(texts), self.config.dimensions))
        # One thread: with more, the last bits would depend on their number.
        with threadpool_limits(1):
            reduced[:, : len(self.directions)] = _weighted(counts, self.idf) @ self.directions.T
        # Rounding errors of a document without any part along the directions must not be scaled to a unit vector.
        reduced[np.linalg.norm(reduced, axis=1) < RELATIVE_ZERO] = 0
        return unit_rows(reduced)

    def facts(self) -> dict[str, JSON]:
        """Kind and sizes of the fit."""
        return {
            "kind": "tfidf_svd",
            "fit_documents": self.documents,
            "terms": len(self.terms),
            "directions": len(self.directions),
        }

    def save(self, directory: Path) -> None:
        """Write the fitted arrays; `directory` appears in one step."""
        with files.replacing(directory) as aside:
            aside.mkdir(parents=True)
            (aside / TERMS).write_text(json.dumps({"documents": self.documents, "terms": self.terms}), "utf-8")
            np.savez(aside / ARRAYS, idf=self.idf, directions=self.directions)

    @classmethod
    def load(cls, directory: Path, config: TfidfEmbedder) -> Self:
        content = json.loads((directory / TERMS).read_text("utf-8"))
        with np.load(directory / ARRAYS, allow_pickle=False) as arrays:
            return cls(config, content["terms"], arrays["idf"], arrays["directions"], content["documents"])


def _count(texts: Iterable[str], config: TfidfEmbedder) -> tuple[Any, list[str]]:
    """Counts of the terms in the most documents, of equal ones the alphabetically first, and the terms."""
    counter = CountVectorizer(token_pattern=TERM)
    try:
        counts = counter.fit_transform(text[: config.max_characters] for text in texts)
    except ValueError as error:
        if "empty vocabulary" not in str(error):
            raise
        raise DataError(
            "No document that TF-IDF is fitted on has a word, so it cannot tell documents apart (`embedder`, "
            f"`embedder.fit_documents` = {config.fit_documents}). Choose embedder=transformers, or an ordering without "
            "embeddings such as ordering=standard"
        ) from error
    in_documents = np.bincount(counts.indices, minlength=counts.shape[1])
    columns = np.sort(np.argsort(-in_documents, kind="stable")[: config.max_features])
    return counts[:, columns], counter.get_feature_names_out()[columns].tolist()


def _weighted(counts: Any, idf: npt.NDArray[np.float64]) -> Any:
    """Rows of (1 + log count) idf, of unit length."""
    weighted = counts.astype(np.float64)
    weighted.data = (1 + np.log(weighted.data)) * idf[weighted.indices]
    return normalize(weighted, copy=False)


def _directions(weighted: Any, dimensions: int) -> npt.NDArray[np.float64]:
    with threadpool_limits(1):
        _, _, directions = randomized_svd(
            weighted,
            min(dimensions, *weighted.shape),
            n_iter=POWER_ITERATIONS,
            power_iteration_normalizer="QR",
            random_state=SVD_SEED,
        )
    return np.asarray(directions)
