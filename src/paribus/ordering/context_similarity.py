"""How alike the documents are that an order puts beside each other, against documents drawn at random.

Cosines are those of the embeddings; documents without a direction are left out. Contexts, pairs and random documents
are samples of fixed size, so that a large corpus costs no more than a small one.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paribus.ordering.embed.artifact import Embeddings
from paribus.ordering.packing.contexts import Contexts
from paribus.ordering.readahead import Integers
from paribus.ordering.seeding import SAMPLES, seed_sequence
from paribus.ordering.traversal.traversal import Traversal

CONTEXTS_SAMPLED = 2_000
PAIRS_SAMPLED = 50_000
DOCUMENTS_A_CONTEXT = 32
"""Documents of one context that are compared; the first ones."""
STRETCHES = 25

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ContextSimilarity:
    """Mean cosines, and what they are means of. NaN where there is nothing to compare."""

    inside: Values
    """(c,) of the documents of each sampled context that holds several, pair by pair."""
    shuffled: Values
    """The same of contexts of the same documents in a random order: what `inside` is where an order does nothing."""
    following: Values
    """(c,) of documents of a context with those of the one trained on after it."""
    random: Values
    """(c,) of documents of a context with those of one drawn at random."""
    adjacent: Values
    """(p,) of documents that follow each other in the order, evenly spread over it."""

    def along(self) -> list[float]:
        """Mean of `adjacent` over each twenty-fifth of the order."""
        return [mean(part) for part in np.array_split(self.adjacent, min(STRETCHES, max(1, len(self.adjacent))))]


def mean(values: Values) -> float:
    """The mean of those that are numbers; NaN without any."""
    real = values[np.isfinite(values)]
    return float(real.mean()) if len(real) else float("nan")


def context_similarity(
    contexts: Contexts, shuffled: Contexts, embeddings: Embeddings, traversal: Traversal, *, seed: int
) -> ContextSimilarity:
    """Similarities of the first epoch of `contexts`, trained on in the sequence of `traversal`; `seed` draws samples.

    `shuffled` are contexts of the same documents in a random order. Documents of two contexts are no measure for two of
    one: those that fill a context alone count there and not here, and one holds many short ones, which may be alike.
    """
    generator = np.random.Generator(np.random.PCG64(seed_sequence(SAMPLES, seed)))
    order = contexts.documents.order
    places = _spread(contexts.count, CONTEXTS_SAMPLED)
    first, after, drawn = (
        [_documents(contexts, context) for context in traversal.at(chosen, 0).tolist()]
        for chosen in (places, (places + 1) % contexts.count, generator.integers(0, contexts.count, len(places)))
    )
    mixed = [_documents(shuffled, context) for context in _spread(shuffled.count, CONTEXTS_SAMPLED).tolist()]
    vectors = _Vectors(embeddings, [*first, *after, *drawn, *mixed])
    pairs = _spread(len(order) - 1, PAIRS_SAMPLED)
    return ContextSimilarity(
        inside=np.array([vectors.within(part) for part in first]),
        shuffled=np.array([vectors.within(part) for part in mixed]),
        following=np.array([vectors.between(a, b) for a, b in zip(first, after, strict=True)]),
        random=np.array([vectors.between(a, b) for a, b in zip(first, drawn, strict=True)]),
        adjacent=_cosines(embeddings, order[pairs], order[pairs + 1]),
    )


def _spread(count: int, most: int) -> Integers:
    taken = min(count, most)
    return np.arange(taken, dtype=np.int64) * count // max(1, taken)


def _documents(contexts: Contexts, context: int) -> Integers:
    """Distinct documents of a context, in its sequence."""
    listed = [document for document, _ in contexts.documents_of(context)]
    return np.array(list(dict.fromkeys(listed))[:DOCUMENTS_A_CONTEXT], dtype=np.int64)


class _Vectors:
    """The vectors of the documents that are compared, each read once."""

    def __init__(self, embeddings: Embeddings, parts: list[Integers]) -> None:
        self._documents = np.unique(np.concatenate(parts))
        self._vectors = embeddings.take(self._documents).astype(np.float64)

    def _of(self, documents: Integers) -> Values:
        vectors: Values = self._vectors[np.searchsorted(self._documents, documents)]
        return vectors[vectors.any(axis=1)]

    def within(self, documents: Integers) -> float:
        """Mean cosine of all pairs; NaN with fewer than two documents."""
        vectors = self._of(documents)
        count = len(vectors)
        if count < 2:
            return float("nan")
        total = vectors.sum(axis=0)
        return float((total @ total - count) / (count * (count - 1)))

    def between(self, first: Integers, second: Integers) -> float:
        """Mean cosine of a document of one with another document of the other; NaN where there is no such pair."""
        one, other = self._of(first), self._of(second)
        same = len(self._of(np.intersect1d(first, second)))
        pairs = len(one) * len(other) - same
        return float((one.sum(axis=0) @ other.sum(axis=0) - same) / pairs) if pairs else float("nan")


def _cosines(embeddings: Embeddings, first: Integers, second: Integers) -> Values:
    """Cosine of each pair; NaN where one has no direction."""
    one, other = (embeddings.take(documents).astype(np.float64) for documents in (first, second))
    real = one.any(axis=1) & other.any(axis=1)
    return np.where(real, np.einsum("nd,nd->n", one, other), np.nan)
