"""The stages `embeddings`, `neighbours` and `order`: all tokenizer-free, so every tokenizer of a sweep shares them."""

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from paribus.config.groups.ordering import InContextOrdering, StandardOrdering, TfidfEmbedder
from paribus.corpus.artifact import CorpusArtifact
from paribus.errors import DataError
from paribus.ordering.duplicates import first_of_duplicates
from paribus.ordering.graph import build_graph
from paribus.ordering.in_context import nearest_kept, walk
from paribus.ordering.standard import shuffled
from paribus.pipeline.context import JSON, StageContext

DOCUMENTS_A_REPORT = 100


def build_embeddings(context: StageContext) -> dict[str, JSON]:
    """Write `embeddings.npy`, (n, d) float32, of the training split; say how many documents have no direction."""
    embedder = _in_context(context).embedder
    corpus = CorpusArtifact(context.inputs["corpus"])
    count = _document_count(corpus)
    texts = _reported(corpus.texts("train"), count, context)
    if isinstance(embedder, TfidfEmbedder):
        from paribus.ordering.embed.tfidf import embed_tfidf

        embeddings = embed_tfidf(texts, embedder)
    else:
        from paribus.ordering.embed.encoder import embed_resumably

        embeddings = np.concatenate(list(embed_resumably(texts, count, embedder, context.work)))
    np.save(context.output / "embeddings.npy", embeddings, allow_pickle=False)
    return {
        "documents": count,
        "dimensions": embeddings.shape[1],
        "zero_rows": int((~embeddings.any(axis=1)).sum()),
    }


def build_neighbours(context: StageContext) -> dict[str, JSON]:
    """Write `neighbours.npy`, (n, k) int64, and `similarities.npy`, (n, k) float32."""
    from paribus.ordering.neighbours import find_neighbours

    ordering = _in_context(context)
    embeddings = np.load(context.inputs["embeddings"] / "embeddings.npy", allow_pickle=False)
    neighbours, similarities = find_neighbours(
        embeddings,
        ordering.retrieved_neighbours,
        index=ordering.index,
        probes=ordering.probes,
        progress=lambda done: context.report.progress(
            done, len(embeddings), unit="documents", doing=f"neighbours ({ordering.index} index)"
        ),
    )
    np.save(context.output / "neighbours.npy", neighbours, allow_pickle=False)
    np.save(context.output / "similarities.npy", similarities, allow_pickle=False)
    nearest = similarities[neighbours[:, 0] >= 0, 0]
    return {
        "documents": len(neighbours),
        "without_neighbours": len(neighbours) - len(nearest),
        "mean_similarity_of_nearest": _mean(nearest),
    }


def build_order(context: StageContext) -> dict[str, JSON]:
    """Write `order.npy`: document indices in corpus order, int64, in the order in which they are read."""
    match context.config.ordering:
        case StandardOrdering():
            documents = _document_count(CorpusArtifact(context.inputs["corpus"]))
            order = shuffled(documents, seed=context.config.seed)
            statistics: dict[str, JSON] = {"documents": documents}
        case InContextOrdering() as ordering:
            order, statistics = _along_the_path(context, ordering)
    np.save(context.output / "order.npy", order, allow_pickle=False)
    return statistics | {"digest": order_digest(order)}


def order_digest(order: npt.NDArray[np.int64]) -> str:
    """SHA-256 of the document indices as little-endian int64."""
    return hashlib.sha256(order.astype("<i8").tobytes()).hexdigest()


def _along_the_path(
    context: StageContext, ordering: InContextOrdering
) -> tuple[npt.NDArray[np.int64], dict[str, JSON]]:
    neighbours = np.load(context.inputs["neighbours"] / "neighbours.npy", allow_pickle=False)
    similarities = np.load(context.inputs["neighbours"] / "similarities.npy", allow_pickle=False)
    report = context.report
    report.progress(0, 3, unit="steps", doing="removing near duplicates")
    kept = first_of_duplicates(neighbours, similarities, threshold=ordering.duplicate_threshold)
    report.progress(1, 3, unit="steps", doing="building the graph of neighbours")
    graph = build_graph(*nearest_kept(neighbours, similarities, kept, ordering.path_neighbours))
    report.progress(2, 3, unit="steps", doing="walking the graph")
    path = walk(graph, seed=context.config.seed)
    report.progress(3, 3, unit="steps", doing="walking the graph")
    statistics: dict[str, JSON] = {
        "documents": len(path.order),
        "duplicates_removed": int((~kept).sum()),
        "edges": len(graph.targets) // 2,
        # The path begins with a landing that is no jump from anywhere.
        "jumps": int(path.jumps[1:].sum()),
        "mean_similarity_of_adjacent": _mean(path.weights[1:]),
        "mean_similarity_along_edges": _mean(path.weights[~path.jumps]),
    }
    return np.flatnonzero(kept)[path.order], statistics


def _in_context(context: StageContext) -> InContextOrdering:
    ordering = context.config.ordering
    if not isinstance(ordering, InContextOrdering):
        raise TypeError(f"ordering={ordering.kind} has no embeddings or neighbours")
    return ordering


def _document_count(corpus: CorpusArtifact) -> int:
    count = corpus.count("train")
    if not count:
        raise DataError(
            "The training split has no documents to put in order: give more text, or lower `corpus.heldout`"
        )
    return count


def _reported(texts: Iterator[str], count: int, context: StageContext) -> Iterator[str]:
    for done, text in enumerate(texts):
        if done % DOCUMENTS_A_REPORT == 0:
            context.report.progress(done, count, unit="documents", doing="embedding documents")
        yield text
    context.report.progress(count, count, unit="documents", doing="embedding documents")


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean(dtype=np.float64)) if len(values) else 0.0
