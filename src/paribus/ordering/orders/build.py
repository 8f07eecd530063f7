"""The stage `order`: in which order the documents of the training split are read. Tokenizer-free, so every tokenizer
of a sweep shares it.

What depends on the ordering alone is in `orders/`; here are its inputs, checked against each other, and its record.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

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
from paribus.engine import Engine
from paribus.errors import DataError
from paribus.native.loader import compile_kernels
from paribus.native.registry import TRAVERSAL
from paribus.ordering.embed.artifact import Embeddings
from paribus.ordering.neighbours.lists import NEIGHBOURS, NeighbourLists
from paribus.ordering.orders.alike_starts import starts_of, without_alike, write_dropped
from paribus.ordering.orders.artifact import write_order
from paribus.ordering.orders.in_context import path_through
from paribus.ordering.orders.in_context_released import Chained, in_chains
from paribus.ordering.orders.nearest import with_neighbours
from paribus.ordering.orders.standard import as_in_corpus, shuffled
from paribus.stage import JSON, Reporter, StageContext

Kept = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Ordered:
    """What an ordering makes of the kept documents."""

    documents: npt.NDArray[np.int64]
    """(m,) document indices in the order they are read."""
    groups: npt.NDArray[np.int64] | None = None
    """(g + 1,) positions at which groups begin, where documents repeat."""
    statistics: dict[str, JSON] = field(default_factory=dict)


class _Inputs:
    """The artefacts that an order is made of, each checked against the corpus, whose training split has documents."""

    def __init__(self, paths: Mapping[str, Path], report: Reporter) -> None:
        self._paths, self._report = paths, report
        self.corpus = CorpusArtifact(paths["corpus"])
        self.documents = self.corpus.count("train")
        if not self.documents:
            raise DataError(
                "The training split has no documents to put in order: give more text, or lower `corpus.heldout`"
            )

    def kept(self) -> Kept:
        """Which documents stay, (n,) bool: all where nothing removes duplicates."""
        if "duplicates" not in self._paths:
            return np.ones(self.documents, dtype=bool)
        from paribus.ordering.duplicates.removed import Duplicates

        kept = np.asarray(Duplicates(self._paths["duplicates"]).kept)
        self._check_count("duplicates", len(kept))
        return kept

    def embeddings(self) -> Embeddings:
        """The vectors of all documents."""
        embeddings = Embeddings(self._paths["embeddings"])
        self._check_count("embeddings", len(embeddings))
        return embeddings

    def lists(self, stage: str) -> NeighbourLists:
        """The lists of a stage; whatever reads them runs compiled kernels."""
        compile_kernels(TRAVERSAL, self._report)
        lists = NeighbourLists(self._paths[stage])
        self._check_count(stage, lists.count)
        highest = int(lists.ids.max(initial=-1))
        if highest >= self.documents:
            raise DataError(f"{lists.path / NEIGHBOURS}: has document {highest}, but there are only {self.documents}")
        return lists

    def _check_count(self, stage: str, found: int) -> None:
        if found != self.documents:
            raise DataError(
                f"{self._paths[stage]}: has {found} documents, but the training split of {self._paths['corpus']} has "
                f"{self.documents}; both must be of one corpus"
            )


def build(context: StageContext) -> dict[str, JSON]:
    """Write the order (see `paribus.ordering.orders.artifact`) and say how it came about.

    DataError for a training split without documents, or for inputs that are about another corpus.
    """
    inputs, kind = _Inputs(context.inputs, context.report), context.config.ordering.kind
    kept = inputs.kept()
    context.report.progress(0, 1, unit="orders", doing=f"putting documents in order ({kind})")
    ordered = _ordered(context, inputs, kept)
    context.report.progress(1, 1, unit="orders", doing=f"putting documents in order ({kind})")
    stay = int(kept.sum()) if ordered.groups is not None else len(ordered.documents)
    removed = len(kept) - stay
    summary = write_order(context.output, ordered.documents, groups=ordered.groups, kept=stay, removed=removed)
    counts: dict[str, JSON] = {"documents": stay, "removed": removed, "entries": len(ordered.documents)}
    return counts | ordered.statistics | {"digest": summary["digest"]}


def _ordered(context: StageContext, inputs: _Inputs, kept: Kept) -> Ordered:
    seed, work = context.config.seed_of("order"), context.work
    match context.config.ordering:
        case StandardOrdering():
            ordered = Ordered(shuffled(kept, seed=seed))
        case SequentialOrdering():
            ordered = Ordered(as_in_corpus(kept))
        case NearestOrdering() as ordering:
            ordered = _with_neighbours(inputs.lists("neighbours"), ordering, kept, seed, work)
        case ClusterOrdering() as ordering:
            ordered = _by_cluster(inputs.embeddings(), ordering, kept, seed, context.engine)
        case InContextOrdering() as ordering:
            ordered = _along_the_path(inputs.lists("neighbours"), ordering, kept, seed, work)
        case LexicalOrdering() as ordering:
            ordered = _along_the_path(inputs.lists("lexical_neighbours"), ordering, kept, seed, work)
        case InContextReleasedOrdering() as ordering:
            chained = in_chains(
                inputs.lists("neighbours"), kept, ordering.neighbours, ordering.chain, seed=seed, work=work
            )
            ordered = _without_alike(chained, ordering, inputs.corpus, context.output)
    return ordered


def _with_neighbours(lists: NeighbourLists, ordering: NearestOrdering, kept: Kept, seed: int, work: Path) -> Ordered:
    groups = with_neighbours(lists, kept, ordering.neighbours, seed=seed, work=work)
    statistics: dict[str, JSON] = {
        "groups": len(groups.starts) - 1,
        "without_neighbours": int((np.diff(groups.starts) == 1).sum()),
        "mean_similarity_of_neighbours": groups.mean_similarity,
    }
    return Ordered(groups.documents, groups.starts, statistics)


def _by_cluster(embeddings: Embeddings, ordering: ClusterOrdering, kept: Kept, seed: int, engine: Engine) -> Ordered:
    from paribus.ordering.orders.cluster import by_cluster

    clustered = by_cluster(embeddings, kept, ordering, seed=seed, engine=engine)
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
    lists: NeighbourLists, ordering: InContextOrdering | LexicalOrdering, kept: Kept, seed: int, work: Path
) -> Ordered:
    path = path_through(lists, kept, ordering.neighbours, seed=seed, work=work)
    statistics: dict[str, JSON] = {
        "edges": path.edges,
        # The path begins with a landing that is no jump from anywhere.
        "jumps": int(path.jumps[1:].sum()),
        "path_weight": float(path.weights.sum(dtype=np.float64)),
        "mean_similarity_of_adjacent": _mean(path.weights[1:]),
        "mean_similarity_along_edges": _mean(path.weights[~path.jumps]),
    }
    return Ordered(path.order, statistics=statistics)


def _without_alike(
    chained: Chained, ordering: InContextReleasedOrdering, corpus: CorpusArtifact, output: Path
) -> Ordered:
    """The released code's order; `dropped.parquet` says which documents start like the one before them."""
    starts = starts_of(corpus, ordering.compared_characters)
    documents, dropped = without_alike(chained.documents, starts.texts, ordering.jaccard)
    write_dropped(output, dropped, starts.ids)
    statistics: dict[str, JSON] = {
        "chains": chained.chains,
        "dissolved": chained.dissolved,
        "moved": chained.moved,
        "dropped": len(dropped.documents),
    }
    return Ordered(documents, statistics=statistics)


def _mean(values: npt.NDArray[np.floating]) -> float:
    return float(values.mean(dtype=np.float64)) if len(values) else 0.0
