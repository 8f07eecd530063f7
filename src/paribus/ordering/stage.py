"""The stages between the text of a corpus and the contexts of an order."""

from collections.abc import Mapping
from typing import Any

from paribus.config.groups.ordering import (
    BestFitPacking,
    ClusterOrdering,
    EmbeddingDuplicates,
    InContextOrdering,
    InContextReleasedOrdering,
    LexicalOrdering,
    NearestOrdering,
    NoDuplicates,
    OneDocumentPacking,
    SequentialOrdering,
    StandardOrdering,
    TransformersEmbedder,
)
from paribus.config.schema import RunConfig
from paribus.config.units import format_number
from paribus.ordering.embedding_files import fingerprint
from paribus.stage import (
    Device,
    ExternalFiles,
    Stage,
    all_except,
    always,
    fields,
    late,
    seed_of,
    together,
)

_BM25 = ("query_terms", "saturation", "length_normalization")


def _duplicates_inputs(config: RunConfig) -> tuple[str, ...]:
    return ("corpus", "neighbours") if isinstance(config.duplicates, EmbeddingDuplicates) else ("corpus",)


def _order_inputs(config: RunConfig) -> tuple[str, ...]:
    removal = () if isinstance(config.duplicates, NoDuplicates) else ("duplicates",)
    match config.ordering:
        case InContextOrdering() | InContextReleasedOrdering() | NearestOrdering():
            return ("corpus", *removal, "neighbours")
        case LexicalOrdering():
            return ("corpus", *removal, "lexical_neighbours")
        case ClusterOrdering():
            return ("corpus", *removal, "embeddings")
        case StandardOrdering() | SequentialOrdering():
            return ("corpus", *removal)


def _order_identity(config: RunConfig) -> dict[str, Any]:
    ordering = all_except("ordering", *_BM25)
    drawn = not isinstance(config.ordering, SequentialOrdering)
    return together(ordering, seed_of("order"))(config) if drawn else ordering(config)


def _begin_of_contexts(config: RunConfig) -> dict[str, Any]:
    """The token that contexts begin with, where they do: no field of the configuration has it."""
    begins = isinstance(config.packing, BestFitPacking | OneDocumentPacking)
    return {"begin": "end_of_document"} if begins else {}


def _device_of_embedder(config: RunConfig) -> Device | None:
    """Device of an encoder; no other embedder has one."""
    value = getattr(config.embedder, "device", None)
    return None if value is None else Device("embedder.device", value, 0)


def _device_of_neighbours(config: RunConfig) -> Device:
    neighbours = config.neighbours
    # An index that is not exact is searched on CPUs and should not wait for a GPU.
    return Device("neighbours.device", neighbours.device, 0 if neighbours.index == "flat" else None)


def _facts_of_order(result: Mapping[str, Any]) -> list[str]:
    removed = result["removed"]
    documents = f"{format_number(result['documents'])} documents"
    return [documents, *([f"{format_number(removed)} removed"] if removed else [])]


EMBEDDINGS = Stage(
    "embeddings",
    code_version=2,
    inputs=always("corpus"),
    identity=fields("embedder"),
    build=late("paribus.ordering.embeddings:build"),
    imports=("paribus.ordering.embeddings",),
    online=lambda config: isinstance(config.embedder, TransformersEmbedder),
    outside=ExternalFiles(lambda config: config.embedder, fingerprint),
    device=_device_of_embedder,
)
NEIGHBOURS = Stage(
    "neighbours",
    code_version=2,
    inputs=always("embeddings"),
    identity=fields("neighbours"),
    build=late("paribus.ordering.neighbours:build"),
    # Without `nearest`: faiss may look for devices when it is imported.
    imports=("paribus.ordering.embeddings", "paribus.ordering.arrays"),
    device=_device_of_neighbours,
)
LEXICAL_NEIGHBOURS = Stage(
    "lexical_neighbours",
    code_version=1,
    inputs=always("corpus"),
    identity=fields("ordering", "neighbours", *_BM25),
    build=late("paribus.ordering.bm25:build"),
    imports=("paribus.ordering.bm25",),
)
DUPLICATES = Stage(
    "duplicates",
    code_version=1,
    inputs=_duplicates_inputs,
    identity=fields("duplicates"),
    build=late("paribus.ordering.duplicates:build"),
    imports=("paribus.ordering.duplicates",),
)
ORDER = Stage(
    "order",
    code_version=2,
    inputs=_order_inputs,
    identity=_order_identity,
    build=late("paribus.ordering.orders:build"),
    imports=("paribus.ordering.orders",),
    facts=_facts_of_order,
)
CONTEXTS = Stage(
    "contexts",
    code_version=2,
    inputs=always("tokens", "order"),
    identity=together(
        # Attention and shuffle do not change what a context holds.
        all_except("packing", "attention", "shuffle", "stretch_bytes"),
        fields("model", "context_length", "context_bytes"),
        _begin_of_contexts,
    ),
    build=late("paribus.ordering.contexts:build"),
    imports=("paribus.ordering.contexts",),
)
CONTEXT_STATISTICS = Stage(
    "context_statistics",
    code_version=3,
    inputs=always("tokens", "order", "contexts", "embeddings"),
    identity=together(
        all_except("packing", "attention"), fields("model", "context_length", "context_bytes"), seed_of("contexts")
    ),
    build=late("paribus.ordering.statistics:build"),
    imports=("paribus.ordering.statistics",),
)
