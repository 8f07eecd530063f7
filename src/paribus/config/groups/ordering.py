"""Group `ordering`: in which order documents are read."""

from typing import Literal

from paribus.config.declare import group, identity
from paribus.config.groups.types import Positive, PositiveFloat, UpToOne


@group
class StandardOrdering:
    """Seeded shuffle of documents."""

    kind: Literal["standard"] = identity("standard", doc="Seeded shuffle (the usual baseline).")


@group
class SequentialOrdering:
    """The order of the corpus."""

    kind: Literal["sequential"] = identity("sequential", doc="As the corpus lies.")


@group
class NearestOrdering:
    """Each document followed by its nearest neighbours (the kNN baseline of In-Context Pretraining)."""

    kind: Literal["nn"] = identity("nn", doc="A document and its neighbours begin a context; documents repeat.")
    neighbours: Positive = identity(20, doc="Neighbours that follow a document.")


@group
class ClusterOrdering:
    """k-means on the embeddings, documents drawn cluster by cluster (Abbas et al., arXiv 2303.09540)."""

    kind: Literal["cluster"] = identity("cluster", doc="Documents of a cluster stand together, in random order.")
    clusters: Positive | None = identity(
        None, doc="Number of clusters; null takes the square root of the documents, at most 11,000 (the paper's)."
    )
    iterations: Positive = identity(20, doc="Rounds of k-means.")
    fit_documents: Positive = identity(
        1_000_000, doc="Documents, evenly spread over the corpus, that centroids are learned from."
    )


@group
class InContextOrdering:
    """In-Context Pretraining (arXiv 2310.10638): a path through the graph of nearest neighbours."""

    kind: Literal["in_context"] = identity("in_context", doc="Related documents share a context.")
    neighbours: Positive = identity(20, doc="Neighbours that make edges of the graph.")


@group
class InContextReleasedOrdering:
    """What the released code of In-Context Pretraining does, where it differs from the paper's Algorithm 1."""

    kind: Literal["in_context_released"] = identity("in_context_released", doc="Chains over directed neighbours.")
    neighbours: Positive = identity(9, doc="Neighbours of the list that are looked at, the nearest first.")
    chain: Positive = identity(21, doc="Documents after which a chain ends; shorter chains are dissolved.")
    jaccard: UpToOne = identity(
        0.85, doc="Similarity of character trigrams above which a document like the one before it is dropped."
    )
    compared_characters: Positive = identity(100, doc="Characters of both documents that are compared.")


@group
class LexicalOrdering:
    """The path of `in_context` over BM25 neighbours, for those without an encoder."""

    kind: Literal["lexical"] = identity("lexical", doc="Related by the words they share.")
    neighbours: Positive = identity(20, doc="Neighbours that make edges of the graph.")
    query_terms: Positive = identity(64, doc="Terms of a document, the weightiest, that are searched for.")
    saturation: PositiveFloat = identity(1.5, doc="k1 of BM25.")
    length_normalization: UpToOne = identity(0.75, doc="b of BM25.")


OrderingConfig = (
    StandardOrdering
    | SequentialOrdering
    | NearestOrdering
    | ClusterOrdering
    | InContextOrdering
    | InContextReleasedOrdering
    | LexicalOrdering
)
