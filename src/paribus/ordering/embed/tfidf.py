"""TF-IDF with truncated SVD: needs no weights and no GPU.

Latent semantic analysis (Deerwester et al., 1990) with randomized SVD (Halko, Martinsson and Tropp, 2011).
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from paribus.config.groups.ordering import TfidfEmbedder
from paribus.ordering.embed.unit import unit_rows

IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff"
TERM = rf"[{IDEOGRAPHS}]|[^\W{IDEOGRAPHS}]{{2,}}"
"""A word of two characters or more, or one character of a script that is written without spaces."""
SVD_SEED = 0
POWER_ITERATIONS = 5
RELATIVE_ZERO = 1e-9


def embed_tfidf(texts: Iterable[str], config: TfidfEmbedder) -> npt.NDArray[np.float32]:
    """Unit vectors of documents, (n, config.dimensions) float32; a document without a known term has a row of zeros.

    A corpus with fewer documents or terms than dimensions fills the last columns with zeros.
    """
    counter = CountVectorizer(token_pattern=TERM)
    try:
        counts = counter.fit_transform(text[: config.max_characters] for text in texts)
    except ValueError as error:
        if "empty vocabulary" not in str(error):
            raise
        raise _no_terms() from error
    weighted = TfidfTransformer(sublinear_tf=True).fit_transform(_most_common(counts, config.max_features))
    return unit_rows(_reduce(weighted, config.dimensions))


def _no_terms() -> Exception:
    from paribus.errors import DataError

    return DataError(
        "No document of the training split has a word, so TF-IDF cannot tell documents apart (`ordering.embedder`). "
        "Choose ordering=standard or ordering.embedder=transformers"
    )


def _most_common(counts: Any, max_features: int) -> Any:
    """Columns of the terms in the most documents, of equal ones the alphabetically first; columns keep their order."""
    documents = np.bincount(counts.indices, minlength=counts.shape[1])
    return counts[:, np.sort(np.argsort(-documents, kind="stable")[:max_features])]


def _reduce(weighted: Any, dimensions: int) -> npt.NDArray[np.float64]:
    """Truncated SVD, (n, dimensions). One thread: with more, the last bits would depend on their number."""
    reduced = np.zeros((weighted.shape[0], dimensions))
    rank = min(dimensions, *weighted.shape)
    with threadpool_limits(1):
        _, _, directions = randomized_svd(
            weighted, rank, n_iter=POWER_ITERATIONS, power_iteration_normalizer="QR", random_state=SVD_SEED
        )
        reduced[:, :rank] = weighted @ directions.T
    # What rounding leaves of a document without any direction of its own must not be scaled up to a unit vector.
    reduced[np.linalg.norm(reduced, axis=1) < RELATIVE_ZERO] = 0
    return reduced
