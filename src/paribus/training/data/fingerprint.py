"""What a checkpoint remembers of data and recipe, so that it is never continued on other data or by another recipe."""

import hashlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from paribus.config.identity import identity
from paribus.config.schema import RunConfig
from paribus.ordering.contexts import DocumentOrder
from paribus.ordering.packing import CONTEXTS_AT_ONCE, Contexts
from paribus.stage import JSON
from paribus.tokenization.encoded_corpus import EncodedCorpus
from paribus.training.data.batches import Batches
from paribus.training.seeds import training_seeds

SAMPLED_IDS = 2**20
RECIPE = ("packing", "model", "start", "budget", "training")


def data_fingerprint(corpus: EncodedCorpus, order: DocumentOrder, contexts: Contexts) -> dict[str, JSON]:
    """Counts and digests of the encoded corpus, the order and the contexts.

    Of the ids only the first and last 2**20 are hashed: the artefact's own digests cover the rest, and a corpus of
    100 billion tokens must not be read twice.
    """
    ids, sources = corpus.ids, corpus.source_lengths
    pairs: dict[str, JSON] = {} if sources is None else {"source_lengths": _digest(sources)}
    return pairs | {
        "tokens": len(ids),
        "documents": len(order.documents),
        "ids": _digest(ids[:SAMPLED_IDS], ids[-SAMPLED_IDS:]),
        "offsets": _digest(corpus.offsets),
        "order": _digest(order.documents),
        "groups": None if order.groups is None else _digest(order.groups),
        "contexts": contexts.count,
    }


def recipe_fingerprint(config: RunConfig, tokenizer: Path) -> dict[str, JSON]:
    """The fields that decide how a model is trained, by their path, and the digest of the files of its tokenizer."""
    fields: dict[str, JSON] = {f"seeds.{part}": seed for part, seed in training_seeds(config).items()}
    for group in RECIPE:
        fields |= {f"{group}.{name}": value for name, value in identity(getattr(config, group)).items()}
    return fields | {"tokenizer": _files_digest(tokenizer)}


def contexts_digest(batches: Batches, steps: int) -> str:
    """SHA-256 of the context indices of the first `steps` steps, in order, as little-endian int64."""
    digest, contexts = hashlib.sha256(), steps * batches.global_batch
    for start in range(0, contexts, CONTEXTS_AT_ONCE):
        numbers = np.arange(start, min(start + CONTEXTS_AT_ONCE, contexts), dtype=np.int64)
        digest.update(batches.numbered(numbers).astype("<i8").tobytes())
    return digest.hexdigest()


def _digest(*arrays: npt.NDArray[np.integer]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        for start in range(0, len(array), SAMPLED_IDS):
            digest.update(array[start : start + SAMPLED_IDS].astype("<i8").tobytes())
    return digest.hexdigest()


def _files_digest(directory: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(directory.iterdir()):
        digest.update(f"{path.name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
