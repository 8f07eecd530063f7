"""The stage `order`: in which order the documents of the training split are read. Tokenizer-free, so every tokenizer
of a sweep shares it.

What depends on the ordering alone is in `orders/`; here are its inputs, checked against each other, and its record.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from paribus.config.groups.ordering import (
    ClusterOrdering,
    InContextOrdering,
    InContextReleasedOrdering,
    LexicalOrdering,
    NearestOrdering,
    SequentialOrdering,
    StandardOrdering,
)
from paribus.corpus.artifact import CorpusArtifact
from paribus.errors import DataError
from paribus.native.announce import compile_kernels
from paribus.ordering.neighbours.lists import NEIGHBOURS, NeighbourLists
from paribus.ordering.orders.alike_starts import starts_of, without_alike, write_dropped
from paribus.ordering.orders.artifact import write_order
from paribus.ordering.orders.in_context import path_through
from paribus.ordering.orders.in_context_released import in_chains
from paribus.ordering.orders.nearest import with_neighbours
from paribus.ordering.orders.standard import as_in_corpus, shuffled
from paribus.stage.context import JSON, StageContext

Kept = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Ordered:
    """What an ordering makes of the kept documents."""

    documents: npt.NDArray[np.int64]
    """(m,) document indices in the order they are read."""
    groups: npt.NDArray[np.int64] | None = None
    """(g + 1,) positions at which groups begin, where documents repeat."""
    statistics: dict[str, JSON] = field(default_factory=dict)


def build(context: StageContext) -> dict[str, JSON]:
    """Write the order (see `paribus.ordering.orders.artifact`) and say how it came about.

    DataError for a training split without documents, or for inputs that are about another corpus.
    """
    documents = _document_count(context)
    kept = _kept(context, documents)
    context.report.progress(0, 1, unit="orders", doing=f"putting documents in order ({context.config.ordering.kind})")
    ordered = _ordered(context, kept)
    context.report.progress(1, 1, unit="orders", doing=f"putting documents in order ({context.config.ordering.kind})")
    stay = int(kept.sum()) if ordered.groups is not None else len(ordered.documents)
    removed = documents - stay
    summary = write_order(context.output, ordered.documents, groups=ordered.groups, kept=stay, removed=removed)
    counts: dict[str, JSON] = {"documents": stay, "removed": removed, "entries": len(ordered.documents)}
    return counts | ordered.statistics | {"digest": summary["digest"]}


def _document_count(context: StageContext) -> int:
    count = CorpusArtifact(context.inputs["corpus"]).count("train")
    if not count:
        raise DataError(
            "The training split has no documents to put in order: give more text, or lower `corpus.heldout`"
        )
    return count


def _kept(context: StageContext, documents: int) -> Kept:
    """Which documents stay, (n,) bool: all where nothing removes duplicates."""
    if "duplicates" not in context.inputs:
        return np.ones(documents, dtype=bool)
    from paribus.ordering.duplicates.removed import Duplicates

    kept = np.asarray(Duplicates(context.inputs["duplicates"]).kept)
    _check_count(context, "duplicates", len(kept), documents)
    return kept


def _ordered(context: StageContext, kept: Kept) -> Ordered:
    match context.config.ordering:
        case StandardOrdering():
            ordered = Ordered(shuffled(kept, seed=context.config.seed_of("order")))
        case SequentialOrdering():
            ordered = Ordered(as_in_corpus(kept))
        case NearestOrdering() as ordering:
            ordered = _with_neighbours(context, ordering, kept)
        case ClusterOrdering() as ordering:
            ordered = _by_cluster(context, ordering, kept)
        case InContextOrdering() as ordering:
            ordered = _along_the_path(context, "neighbours", ordering, kept)
        case LexicalOrdering() as ordering:
            ordered = _along_the_path(context, "lexical_neighbours", ordering, kept)
        case InContextReleasedOrdering() as ordering:
            ordered = _in_chains(context, ordering, kept)
    return ordered


def _with_neighbours(context: StageContext, ordering: NearestOrdering, kept: Kept) -> Ordered:
    lists = _lists(context, "neighbours", kept)
    groups = with_neighbours(lists, kept, ordering.neighbours, seed=context.config.seed_of("order"), work=context.work)
    statistics: dict[str, JSON] = {
        "groups": len(groups.starts) - 1,
        "without_neighbours": int((np.diff(groups.starts) == 1).sum()),
        "mean_similarity_of_neighbours": groups.mean_similarity,
    }
    return Ordered(groups.documents, groups.starts, statistics)


def _by_cluster(context: StageContext, ordering: ClusterOrdering, kept: Kept) -> Ordered:
    from paribus.ordering.embed.artifact import Embeddings
    from paribus.ordering.orders.cluster import by_cluster

    embeddings = Embeddings(context.inputs["embeddings"])
    _check_count(context, "embeddings", len(embeddings), len(kept))
    clustered = by_cluster(embeddings, kept, ordering, seed=context.config.seed_of("order"), engine=context.engine)
    sizes = clustered.sizes
    statistics: dict[str, JSON] = {
        "clusters": len(sizes),
        "smallest_cluster": int(sizes.min(initial=len(kept))) if len(sizes) else 0,
        "median_cluster": float(np.median(sizes)) if len(sizes) else 0.0,
        "largest_cluster": int(sizes.max(initial=0)),
        "without_direction": clustered.without_direction,
        "mean_similarity_to_centroid": clustered.mean_similarity,
    }
    return Ordered(clustered.documents, statistics=statistics)


def _along_the_path(
    context: StageContext, stage: str, ordering: InContextOrdering | LexicalOrdering, kept: Kept
) -> Ordered:
    lists = _lists(context, stage, kept)
    path = path_through(lists, kept, ordering.neighbours, seed=context.config.seed_of("order"), work=context.work)
    statistics: dict[str, JSON] = {
        "edges": path.edges,
        # The path begins with a landing that is no jump from anywhere.
        "jumps": int(path.jumps[1:].sum()),
        "path_weight": float(path.weights.sum(dtype=np.float64)),
        "mean_similarity_of_adjacent": _mean(path.weights[1:]),
        "mean_similarity_along_edges": _mean(path.weights[~path.jumps]),
    }
    return Ordered(path.order, statistics=statistics)


def _in_chains(context: StageContext, ordering: InContextReleasedOrdering, kept: Kept) -> Ordered:
    """The released code's order; `dropped.parquet` says which documents start like the one before them."""
    lists = _lists(context, "neighbours", kept)
    chained = in_chains(
        lists, kept, ordering.neighbours, ordering.chain, seed=context.config.seed_of("order"), work=context.work
    )
    starts = starts_of(CorpusArtifact(context.inputs["corpus"]), ordering.compared_characters)
    documents, dropped = without_alike(chained.documents, starts.texts, ordering.jaccard)
    write_dropped(context.output, dropped, starts.ids)
    statistics: dict[str, JSON] = {
        "chains": chained.chains,
        "dissolved": chained.dissolved,
        "moved": chained.moved,
        "dropped": len(dropped.documents),
    }
    return Ordered(documents, statistics=statistics)


def _lists(context: StageContext, stage: str, kept: Kept) -> NeighbourLists:
    """The lists of a stage, checked; whatever reads them runs compiled kernels."""
    compile_kernels("ordering", context.report)
    lists = NeighbourLists(context.inputs[stage])
    _check_count(context, stage, lists.count, len(kept))
    highest = int(lists.ids.max(initial=-1))
    if highest >= len(kept):
        raise DataError(f"{lists.path / NEIGHBOURS}: has document {highest}, but there are only {len(kept)}")
    return lists


def _check_count(context: StageContext, stage: str, found: int, documents: int) -> None:
    if found != documents:
        raise DataError(
            f"{context.inputs[stage]}: has {found} documents, but the training split of {context.inputs['corpus']} has "
            f"{documents}; both must be of one corpus"
        )


def _mean(values: npt.NDArray[np.floating]) -> float:
    return float(values.mean(dtype=np.float64)) if len(values) else 0.0
