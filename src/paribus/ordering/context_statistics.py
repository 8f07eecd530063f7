"""The stage `context_statistics`: what an ordering and a packing do, as numbers and curves.

No run needs it; `paribus orders` asks for it. It leaves `statistics.json`.
"""

import math
from typing import Any

import numpy as np

from paribus.config.groups.packing import PairPacking
from paribus.errors import ConfigurationError
from paribus.ordering.context_similarity import ContextSimilarity, context_similarity, mean
from paribus.ordering.contexts.opening import open_contexts
from paribus.ordering.embed.artifact import Embeddings
from paribus.ordering.orders.artifact import Order
from paribus.ordering.packing.pack import GivenOrder, pack
from paribus.ordering.packing.statistics import packing_statistics
from paribus.ordering.seeding import MIXED, permutation
from paribus.ordering.traversal.traversal import straddling
from paribus.stage import JSON, StageContext
from paribus.store import files

STATISTICS = "statistics.json"
PLACES = 1_000
BINS = np.linspace(-1, 1, 101)


def build(context: StageContext) -> dict[str, JSON]:
    """Write the statistics of one epoch of contexts and return the single numbers among them."""
    report = context.report
    if isinstance(context.config.packing, PairPacking):
        raise ConfigurationError("packing.kind: there are no statistics of pair, only of contexts of documents")
    opened, measured = open_contexts(context.config, context.inputs)
    corpus, order, contexts, packing = opened.corpus, opened.order, opened.contexts, opened.config.packing
    embeddings = Embeddings(context.inputs["embeddings"])
    report.progress(0, 2, unit="parts", doing="counting what contexts hold")
    packed = packing_statistics(contexts)
    report.progress(1, 2, unit="parts", doing="comparing what contexts hold")
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
        **_means(similar),
    }
    curves = {
        "contexts_of_documents": list(packed.contexts_of_documents),
        "similarity_inside": _histogram(similar.inside),
        "similarity_shuffled": _histogram(similar.shuffled),
        "similarity_along": [_number(value) for value in similar.along()],
        "positions": _positions(order),
    }
    files.write_json(context.output / STATISTICS, {"numbers": numbers, "curves": curves})
    return numbers


def _means(similar: ContextSimilarity) -> dict[str, JSON]:
    return {
        "similarity_inside": _number(mean(similar.inside)),
        "similarity_shuffled": _number(mean(similar.shuffled)),
        "similarity_random": _number(mean(similar.random)),
        "similarity_following": _number(mean(similar.following)),
        "similarity_adjacent": _number(mean(similar.adjacent)),
    }


def _positions(order: Order) -> list[float]:
    """Where in the corpus, from 0 to 1, the documents at places evenly spread over the order lie."""
    places = np.arange(min(PLACES, len(order)), dtype=np.int64) * len(order) // min(PLACES, len(order))
    found: list[float] = (order.documents[places] / order.corpus_documents).round(6).tolist()
    return found


def _number(value: float) -> float | None:
    """What JSON can hold: None for no number."""
    return value if math.isfinite(value) else None


def _histogram(values: Any) -> list[int]:
    """Values in each fiftieth of [-1, 1]."""
    counts: list[int] = np.histogram(np.clip(values[np.isfinite(values)], -1, 1), BINS)[0].tolist()
    return counts
