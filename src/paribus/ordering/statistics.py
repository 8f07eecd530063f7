"""The stage `context_statistics`: what an ordering and a packing do, as numbers and curves.

No run needs it; `paribus orders` asks for it. It leaves `statistics.json`.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paribus.config.groups.ordering import PairPacking
from paribus.errors import ConfigurationError
from paribus.ordering.arrays import MIXED, SAMPLES, permutation, seed_sequence, spread
from paribus.ordering.contexts import GivenOrder, open_contexts, pack
from paribus.ordering.embeddings import Embeddings
from paribus.ordering.packing import CONTEXTS_AT_ONCE, Contexts, Integers
from paribus.ordering.shuffle import ContextShuffle, straddling
from paribus.stage import JSON, StageContext
from paribus.store import files

STATISTICS = "statistics.json"
PLACES = 1_000
BINS = np.linspace(-1, 1, 101)
Values = npt.NDArray[np.float64]
CONTEXTS_SAMPLED = 2_000
PAIRS_SAMPLED = 50_000
DOCUMENTS_A_CONTEXT = 32
"""Documents of one context that are compared, at most; the first ones."""
STRETCHES = 25


def build(context: StageContext) -> dict[str, JSON]:
    """Write the statistics of one epoch of contexts and return the single numbers among them."""
    listener = context.listener
    if isinstance(context.config.packing, PairPacking):
        raise ConfigurationError("packing.kind: there are no statistics of pair, only of contexts of documents")
    opened, measured = open_contexts(context.config, context.inputs)
    corpus, order, contexts, packing = opened.corpus, opened.order, opened.contexts, opened.config.packing
    embeddings = Embeddings(context.inputs["embeddings"])
    listener.progress(0, 2, unit="parts", doing="counting what contexts hold")
    packed = packing_statistics(contexts)
    listener.progress(1, 2, unit="parts", doing="comparing what contexts hold")
    seed = context.config.seed_of("contexts")
    mixed = GivenOrder(order.documents[permutation(len(order), MIXED, seed)], order.groups)
    shuffled = pack(packing, corpus.ids, corpus.offsets, mixed, contexts.documents.eos_id, contexts.context_length)
    traversal = opened.traversal(measured)
    similar = context_similarity(contexts, shuffled, embeddings, traversal, seed=seed)
    numbers: dict[str, JSON] = {
        "documents": order.kept,
        "removed": order.corpus_documents - order.kept,
        "entries": len(order),
        "contexts": packed.contexts,
        "target_tokens": packed.target_tokens,
        "documents_per_context": packed.documents_per_context,
        "cut_share": packed.cut_share,
        "padding": packed.padding,
        "left_out_tokens": packed.left_out_tokens,
        "straddling": straddling(traversal, measured),
        "similarity_inside": _finite_or_none(mean(similar.inside)),
        "similarity_shuffled": _finite_or_none(mean(similar.shuffled)),
        "similarity_random": _finite_or_none(mean(similar.random)),
        "similarity_following": _finite_or_none(mean(similar.following)),
        "similarity_adjacent": _finite_or_none(mean(similar.adjacent)),
    }
    curves = {
        "contexts_of_documents": list(packed.contexts_of_documents),
        "similarity_inside": _histogram(similar.inside),
        "similarity_shuffled": _histogram(similar.shuffled),
        "similarity_along": [_finite_or_none(value) for value in similar.along()],
        # Where in the corpus, from 0 to 1, the documents at places evenly spread over the order lie.
        "positions": (order.documents[spread(len(order), PLACES)] / order.corpus_documents).round(6).tolist(),
    }
    files.write_json(context.output / STATISTICS, {"numbers": numbers, "curves": curves})
    return numbers


# Cosines are those of the embeddings; documents without a direction are left out. Contexts, pairs and random documents
# are samples of fixed size, so that a large corpus costs no more than a small one.
@dataclass(frozen=True)
class ContextSimilarity:
    """Mean cosines of sampled contexts and pairs. NaN where there is nothing to compare."""

    inside: Values
    """(c,) of the documents of each sampled context that holds several, pair by pair."""
    shuffled: Values
    """`inside` for the same documents in a random order: the baseline of an order without effect."""
    following: Values
    """(c,) of documents of a context with those of the one trained on after it."""
    random: Values
    """(c,) of documents of a context with those of one drawn at random."""
    adjacent: Values
    """(p,) of documents that follow each other in the order, evenly spread over it."""

    def along(self) -> list[float]:
        """Mean of `adjacent` over each twenty-fifth of the order."""
        return [mean(part) for part in np.array_split(self.adjacent, min(STRETCHES, max(1, len(self.adjacent))))]


def _finite_or_none(value: float) -> float | None:
    """The value, or None where it is not finite, as JSON has no such numbers."""
    return value if math.isfinite(value) else None


def _histogram(values: Any) -> list[int]:
    """Values in each fiftieth of [-1, 1]."""
    counts: list[int] = np.histogram(np.clip(values[np.isfinite(values)], -1, 1), BINS)[0].tolist()
    return counts


def mean(values: Values) -> float:
    """Mean of the finite values; NaN without any."""
    real = values[np.isfinite(values)]
    return float(real.mean()) if len(real) else float("nan")


def context_similarity(
    contexts: Contexts, shuffled: Contexts, embeddings: Embeddings, traversal: ContextShuffle, *, seed: int
) -> ContextSimilarity:
    """Similarities of the first epoch of `contexts`, trained on in the sequence of `traversal`; `seed` draws samples.

    `shuffled` are contexts of the same documents in a random order. Documents of two contexts are no baseline for those
    of one: a document that fills a context alone counts there and not here, and a context of many short ones may hold
    similar ones.
    """
    generator = np.random.Generator(np.random.PCG64(seed_sequence(SAMPLES, seed)))
    order = contexts.documents.order
    places = spread(contexts.count, CONTEXTS_SAMPLED)
    first, after, drawn = (
        [_documents(contexts, context) for context in traversal.at(chosen, 0).tolist()]
        for chosen in (places, (places + 1) % contexts.count, generator.integers(0, contexts.count, len(places)))
    )
    mixed = [_documents(shuffled, context) for context in spread(shuffled.count, CONTEXTS_SAMPLED).tolist()]
    vectors = _Vectors(embeddings, [*first, *after, *drawn, *mixed])
    pairs = spread(len(order) - 1, PAIRS_SAMPLED)
    return ContextSimilarity(
        inside=np.array([vectors.within(part) for part in first]),
        shuffled=np.array([vectors.within(part) for part in mixed]),
        following=np.array([vectors.between(a, b) for a, b in zip(first, after, strict=True)]),
        random=np.array([vectors.between(a, b) for a, b in zip(first, drawn, strict=True)]),
        adjacent=_cosines(embeddings, order[pairs], order[pairs + 1]),
    )


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
        """Mean cosine of a `first` document with another `second` one; NaN where there is no such pair."""
        left, right = self._of(first), self._of(second)
        same = len(self._of(np.intersect1d(first, second)))
        pairs = len(left) * len(right) - same
        return float((left.sum(axis=0) @ right.sum(axis=0) - same) / pairs) if pairs else float("nan")


def _cosines(embeddings: Embeddings, first: Integers, second: Integers) -> Values:
    """Cosine of each pair; NaN where one has no direction."""
    left, right = (embeddings.take(documents).astype(np.float64) for documents in (first, second))
    real = left.any(axis=1) & right.any(axis=1)
    return np.where(real, np.einsum("nd,nd->n", left, right), np.nan)


@dataclass(frozen=True)
class PackingStatistics:
    """One epoch of the contexts of a packing.

    A context holds its inputs and its last target. A document that the order names several times counts each time.
    """

    contexts: int
    context_length: int
    target_tokens: int
    """Predicted tokens."""
    padding: float
    """Share of the contexts' positions that predict nothing: padding, and the end of a document before a piece that
    begins within another."""
    documents_per_context: float
    """Mean number of documents of a context."""
    contexts_of_documents: tuple[int, ...]
    """Contexts that hold 0, 1, 2, ... documents."""
    documents: int
    """Documents of which a context holds a token."""
    cut_documents: int
    """Documents of which no context holds every token, the end-of-document token included."""
    left_out_tokens: int
    """Tokens of the order, end-of-document tokens included, that no context holds."""

    @property
    def cut_share(self) -> float:
        """Share of documents that are cut."""
        return self.cut_documents / self.documents


def packing_statistics(contexts: Contexts) -> PackingStatistics:
    """Statistics of all contexts; no token is read, and memory is O(documents)."""
    count, length = contexts.count, contexts.context_length
    held, uncut = np.zeros((2, len(contexts.documents)), dtype=bool)
    by_documents, targets = np.zeros(length + 2, dtype=np.int64), 0
    for start in range(0, count, CONTEXTS_AT_ONCE):
        pieces = contexts.pieces(np.arange(start, min(start + CONTEXTS_AT_ONCE, count)))
        held[pieces.positions] = True
        uncut[pieces.positions[pieces.lengths == contexts.documents.lengths_at(pieces.positions)]] = True
        by_documents += np.bincount(np.diff(pieces.bounds), minlength=len(by_documents))
        targets += int(pieces.targets.sum())
    return PackingStatistics(
        contexts=count,
        context_length=length,
        target_tokens=targets,
        padding=1 - targets / (count * length),
        documents_per_context=float(by_documents @ np.arange(len(by_documents))) / count,
        contexts_of_documents=tuple(np.trim_zeros(by_documents, "b").tolist()),
        documents=int(held.sum()),
        cut_documents=int((held & ~uncut).sum()),
        left_out_tokens=contexts.left_out_tokens,
    )
