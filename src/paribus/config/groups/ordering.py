"""Group `ordering`: in which order documents are read, and what stands beside what in a context."""

from typing import Literal

from paribus.config.declare import execution, group, identity
from paribus.config.groups.types import Cosine, Positive


@group
class TfidfEmbedder:
    """TF-IDF with truncated SVD: no weights, the default on a CPU."""

    kind: Literal["tfidf_svd"] = identity("tfidf_svd", doc="TF-IDF, then truncated SVD (scikit-learn).")
    dimensions: Positive = identity(128, doc="Length of a document's vector.")
    max_features: Positive = identity(50_000, doc="Terms kept, by document frequency.")
    max_characters: Positive = identity(20_000, doc="Characters of a document that are embedded, from its start.")


@group
class TransformersEmbedder:
    """Mean pooling of the last hidden states of a local `transformers` encoder (the paper: Contriever)."""

    kind: Literal["transformers"] = identity("transformers", doc="A local encoder, mean pooling over tokens.")
    path: str = execution(doc="Directory of the encoder (config, weights, tokenizer); its files are the identity.")
    max_tokens: Positive = identity(510, doc="Tokens of a chunk.")
    max_chunks: Positive = identity(10, doc="Chunks of a document that are averaged (released configuration: 10).")
    batch_size: Positive = execution(32, doc="Chunks a forward pass.")
    device: str = execution("auto", doc="auto, cpu, cuda or cuda:N.")


EmbedderConfig = TfidfEmbedder | TransformersEmbedder


@group
class StandardOrdering:
    """Seeded shuffle of documents."""

    kind: Literal["standard"] = identity("standard", doc="Seeded shuffle (the usual baseline).")


@group
class InContextOrdering:
    """In-Context Pretraining (arXiv 2310.10638): a path through the graph of nearest neighbours."""

    kind: Literal["in_context"] = identity("in_context", doc="Related documents share a context.")
    embedder: EmbedderConfig = identity(doc="How a document becomes a vector.")
    retrieved_neighbours: Positive = identity(50, doc="Neighbours retrieved a document (released configuration: 50).")
    path_neighbours: Positive = identity(20, doc="Neighbours that make edges of the graph.")
    duplicate_threshold: Cosine = identity(0.95, doc="Cosine above which two documents are near duplicates (A.1).")
    index: Literal["flat", "ivf"] = identity("flat", doc="Exact search, or faiss IVF lists for large corpora.")
    probes: Positive = identity(64, doc="Lists searched with index=ivf (the paper: 64).")


OrderingConfig = StandardOrdering | InContextOrdering
