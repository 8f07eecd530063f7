"""The stage `order`: in which order the documents of the training split are read. Tokenizer-free, so every tokenizer
of a sweep shares it.

Orderings of more than a few lines have files of their own (`in_context`, `in_context_released`, `clusters`).
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
from paribus.native.registry import TRAVERSAL
from paribus.ordering.arrays import NEIGHBOURS, SHUFFLE, NeighbourLists, boundaries, mean_of, open_array, permutation
from paribus.ordering.embeddings import Embeddings
from paribus.ordering.in_context import path_through, whole_lists
from paribus.ordering.in_context_released import Chained, in_chains, without_alike, write_dropped
from paribus.stage import JSON, StageContext, StageListener, compile_kernels

DocumentMask = npt.NDArray[np.bool_]
DOCUMENTS, GROUPS, SUMMARY = "order.npy", "groups.npy", "order.json"
COUNTS = ("documents", "kept", "entries", "repeats")
HASHED_ENTRIES = 2**20
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Ordered:
    """Result of an ordering of the kept documents."""

    documents: npt.NDArray[np.int64]
    """(m,) document indices in the order they are read."""
    groups: npt.NDArray[np.int64] | None = None
    """(g + 1,) positions at which groups begin, where documents repeat."""
    statistics: dict[str, JSON] = field(default_factory=dict)


class _Inputs:
    """The artefacts that an order is made of, each checked against the corpus, whose training split is not empty."""

    def __init__(self, paths: Mapping[str, Path], listener: StageListener) -> None:
        self._paths, self._listener = paths, listener
        self.corpus = CorpusArtifact(paths["corpus"])
        self.documents = self.corpus.count("train")
        if not self.documents:
            raise DataError(
                "The training split has no documents to put in order: give more text, or lower `corpus.heldout`"
            )

    def kept(self) -> DocumentMask:
        """(n,) bool, True for documents that stay: all where nothing removes duplicates."""
        if "duplicates" not in self._paths:
            return np.ones(self.documents, dtype=bool)
        from paribus.ordering.duplicates import Duplicates

        kept = np.asarray(Duplicates(self._paths["duplicates"]).kept)
        self._check_count("duplicates", len(kept))
        return kept

    def embeddings(self) -> Embeddings:
        """The vectors of all documents."""
        embeddings = Embeddings(self._paths["embeddings"])
        self._check_count("embeddings", len(embeddings))
        return embeddings

    def lists(self, stage: str) -> NeighbourLists:
        """The lists of a stage; compiles the kernels that read them."""
        compile_kernels(TRAVERSAL, self._listener)
        lists = NeighbourLists(self._paths[stage])
        self._check_count(stage, lists.count)
        highest = int(lists.ids.max(initial=-1))
        if highest >= self.documents:
            raise DataError(f"{lists.path / NEIGHBOURS}: has document {highest}, but there are only {self.documents}")
        return lists

    def _check_count(self, stage: str, count: int) -> None:
        if count != self.documents:
            raise DataError(
                f"{self._paths[stage]}: has {count} documents, but the training split of {self._paths['corpus']} has "
                f"{self.documents}; both must be of one corpus"
            )


def build(context: StageContext) -> dict[str, JSON]:
    """Write the order and return its statistics.

    DataError for a training split without documents, or for inputs of another corpus.
    """
    inputs, kind = _Inputs(context.inputs, context.listener), context.config.ordering.kind
    kept = inputs.kept()
    context.listener.progress(0, 1, unit="orders", doing=f"putting documents in order ({kind})")
    ordered = _ordered(context, inputs, kept)
    context.listener.progress(1, 1, unit="orders", doing=f"putting documents in order ({kind})")
    # An ordering may leave out documents too; with groups it repeats some, but leaves none out.
    distinct = int(kept.sum()) if ordered.groups is not None else len(ordered.documents)
    removed = len(kept) - distinct
    summary = write_order(context.output, ordered.documents, groups=ordered.groups, kept=distinct, removed=removed)
    counts: dict[str, JSON] = {"documents": distinct, "removed": removed, "entries": len(ordered.documents)}
    return counts | ordered.statistics | {"digest": summary["digest"]}


def _ordered(context: StageContext, inputs: _Inputs, kept: DocumentMask) -> Ordered:  # noqa: PLR0911 (one a kind)
    seed, work = context.config.seed_of("order"), context.work
    match context.config.ordering:
        case StandardOrdering():
            return Ordered(np.flatnonzero(kept)[permutation(int(kept.sum()), SHUFFLE, seed)])
        case SequentialOrdering():
            return Ordered(np.flatnonzero(kept))
        case NearestOrdering() as ordering:
            return _with_neighbours(inputs.lists("neighbours"), ordering, kept, seed, work)
        case ClusterOrdering() as ordering:
            return _by_cluster(inputs.embeddings(), ordering, kept, seed, context.engine)
        case InContextOrdering() as ordering:
            return _along_the_path(inputs.lists("neighbours"), ordering, kept, seed, work)
        case LexicalOrdering() as ordering:
            return _along_the_path(inputs.lists("lexical_neighbours"), ordering, kept, seed, work)
        case InContextReleasedOrdering() as ordering:
            chained = in_chains(
                inputs.lists("neighbours"), kept, ordering.neighbours, ordering.chain, seed=seed, work=work
            )
            return _without_alike(chained, ordering, inputs.corpus, context.output)


def _with_neighbours(
    lists: NeighbourLists, ordering: NearestOrdering, kept: DocumentMask, seed: int, work: Path
) -> Ordered:
    """The kNN baseline of In-Context Pretraining (arXiv 2310.10638, section 3.1): each document and its neighbours.

    Every kept document heads one group: itself, then its nearest kept neighbours. Groups follow each other in the
    seeded shuffle of `standard`, so the two differ in nothing but the neighbours. Documents repeat.
    """
    near = whole_lists(lists.ids, lists.similarities, kept=kept, take=ordering.neighbours, work=work)
    documents = np.flatnonzero(kept)
    shuffle = permutation(len(documents), SHUFFLE, seed)
    rows = np.column_stack([np.arange(len(documents), dtype=np.int32), near.ids])[shuffle]
    present = rows >= 0
    groups = boundaries(present.sum(axis=1))
    statistics: dict[str, JSON] = {
        "groups": len(groups) - 1,
        "without_neighbours": int((np.diff(groups) == 1).sum()),
        "mean_similarity_of_neighbours": mean_of(near.weights[near.ids >= 0]),
    }
    return Ordered(documents[rows[present]], groups, statistics)


def _by_cluster(
    embeddings: Embeddings, ordering: ClusterOrdering, kept: DocumentMask, seed: int, engine: Engine
) -> Ordered:
    from paribus.ordering.clusters import by_cluster

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
    lists: NeighbourLists, ordering: InContextOrdering | LexicalOrdering, kept: DocumentMask, seed: int, work: Path
) -> Ordered:
    path = path_through(lists, kept, ordering.neighbours, seed=seed, work=work)
    statistics: dict[str, JSON] = {
        "edges": path.edges,
        # The first document of the path is landed on, but not from another.
        "jumps": int(path.jumps[1:].sum()),
        "path_weight": float(path.weights.sum(dtype=np.float64)),
        "mean_similarity_of_adjacent": mean_of(path.weights[1:]),
        "mean_similarity_along_edges": mean_of(path.weights[~path.jumps]),
    }
    return Ordered(path.order, statistics=statistics)


def _without_alike(
    chained: Chained, ordering: InContextReleasedOrdering, corpus: CorpusArtifact, output: Path
) -> Ordered:
    """The released code's order; `dropped.parquet` says which documents start like the one before them."""
    ids, starts = [], []
    for document in corpus.documents("train"):
        ids.append(document.id)
        starts.append(document.text[: ordering.compared_characters])
    documents, dropped = without_alike(chained.documents, starts, ordering.jaccard)
    write_dropped(output, dropped, ids)
    statistics: dict[str, JSON] = {
        "chains": chained.chains,
        "dissolved": chained.dissolved,
        "moved": chained.moved,
        "dropped": len(dropped.documents),
    }
    return Ordered(documents, statistics=statistics)


# `order.npy` holds document indices in the order in which they are read, `groups.npy`, where there is one, the
# positions at which a document followed by its neighbours begins, and `order.json` what both must agree with. Every
# kept document is in the order once; only an order with groups may repeat documents.
def write_order(
    directory: Path, documents: Indices, *, groups: Indices | None = None, kept: int, removed: int
) -> dict[str, Any]:
    """Write an order into `directory` and return the contents of `order.json`.

    `documents` is (m,) int64, document indices in the order they are read; `groups` is (g + 1,) int64, positions in
    `documents` at which a group begins, from 0 to m. The order has `kept` documents of the corpus and lacks `removed`.
    """
    np.save(directory / DOCUMENTS, documents.astype(np.int64, copy=False), allow_pickle=False)
    if groups is not None:
        np.save(directory / GROUPS, groups.astype(np.int64, copy=False), allow_pickle=False)
    counts = (kept + removed, kept, len(documents), len(documents) - kept)
    summary = dict(zip(COUNTS, counts, strict=True)) | {"digest": order_digest(documents)}
    (directory / SUMMARY).write_text(json.dumps(summary, indent=1), encoding="utf-8")
    return summary


def order_digest(documents: Indices) -> str:
    """SHA-256 of document indices as little-endian int64."""
    digest = hashlib.sha256()
    for start in range(0, len(documents), HASHED_ENTRIES):
        digest.update(documents[start : start + HASHED_ENTRIES].astype("<i8").tobytes())
    return digest.hexdigest()


class Order:
    """The order in directory `path`, checked against itself in O(m); DataError names the file that is wrong."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        summary = self._summary()
        self.digest: str = summary["digest"]
        self.corpus_documents: int = summary["documents"]
        """Documents of the corpus, whether or not they are in the order."""
        self.kept: int = summary["kept"]
        """Distinct documents in the order."""
        self.documents: Indices = self._map(DOCUMENTS)
        """(m,) int64 document indices in the order they are read, memory-mapped."""
        self.groups: Indices | None = self._map(GROUPS) if (self.path / GROUPS).exists() else None
        """None, or (g + 1,) int64 positions in `documents` at which a group begins, ending with m."""
        self._check_documents(summary)
        ends = (0, len(self))
        if (groups := self.groups) is not None:
            wrong = not len(groups) or (int(groups[0]), int(groups[-1])) != ends
            if wrong or (np.diff(groups) <= 0).any():
                raise DataError(f"{self.path / GROUPS}: must ascend from 0 to the {ends[1]} entries of {DOCUMENTS}")

    def __len__(self) -> int:
        return len(self.documents)

    def _summary(self) -> dict[str, Any]:
        file = self.path / SUMMARY
        try:
            summary = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"{file}: no readable description of an order ({error})") from error
        if not isinstance(summary, dict) or not isinstance(summary.get("digest"), str):
            raise DataError(f"{file}: has no digest of the order")
        missing = [name for name in COUNTS if not isinstance(summary.get(name), int)]
        if missing:
            raise DataError(f"{file}: has no whole number for {', '.join(missing)}")
        return summary

    def _map(self, name: str) -> Indices:
        array: Indices = open_array(self.path / name, "positions")
        if array.ndim != 1 or array.dtype != np.int64:
            raise DataError(f"{self.path / name}: is {array.dtype} {array.shape}, not one row of int64")
        return array

    def _check_documents(self, summary: dict[str, Any]) -> None:
        file, entries = self.path / DOCUMENTS, len(self.documents)
        if entries != summary["entries"]:
            raise DataError(f"{file}: has {entries} entries, but {SUMMARY} says {summary['entries']}")
        if entries and (self.documents.min() < 0 or self.documents.max() >= self.corpus_documents):
            low, high = int(self.documents.min()), int(self.documents.max())
            raise DataError(f"{file}: has documents {low} to {high}, but the corpus has {self.corpus_documents}")
        if order_digest(self.documents) != self.digest:
            raise DataError(f"{file}: its digest is not the {self.digest[:16]}… that {SUMMARY} says")
        seen = np.zeros(self.corpus_documents, dtype=bool)
        seen[self.documents] = True
        distinct = int(np.count_nonzero(seen))
        if distinct != self.kept:
            raise DataError(f"{file}: has {distinct} distinct documents, but {SUMMARY} says that {self.kept} are kept")
        if self.groups is None and len(self.documents) != distinct:
            raise DataError(f"{file}: {len(self.documents) - distinct} entries repeat a document, without {GROUPS}")
