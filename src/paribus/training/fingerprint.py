"""What a checkpoint remembers of the data it was trained on, so that it is never continued on other data."""

import hashlib

import numpy as np
import numpy.typing as npt

from paribus.config.groups.packing import PackingConfig
from paribus.config.identity import identity
from paribus.ordering.packing.pack import DocumentOrder
from paribus.pipeline.context import JSON
from paribus.training.batches import CHUNK, Batches

SAMPLED_IDS = 2**20


def data_fingerprint(
    ids: npt.NDArray[np.integer],
    offsets: npt.NDArray[np.integer],
    order: DocumentOrder,
    batches: Batches,
    packing: PackingConfig,
) -> dict[str, JSON]:
    """Counts and digests of the encoded corpus, the order and what batches are cut with.

    Of the ids only the first and last 2**20 are hashed: the artefact's own digests cover the rest, and a corpus of
    100 billion tokens must not be read twice.
    """
    return {
        "tokens": len(ids),
        "documents": len(order.documents),
        "ids": _digest(ids[:SAMPLED_IDS], ids[-SAMPLED_IDS:]),
        "offsets": _digest(offsets),
        "order": _digest(order.documents),
        "groups": None if order.groups is None else _digest(order.groups),
        "packing": dict(identity(packing)),
        "context_length": batches.contexts.context_length,
        "global_batch": batches.global_batch,
        "seed": batches.seed,
    }


def contexts_digest(batches: Batches, steps: int) -> str:
    """SHA-256 of the context indices of the first `steps` steps, in order, as little-endian int64."""
    digest, contexts = hashlib.sha256(), steps * batches.global_batch
    for start in range(0, contexts, CHUNK):
        numbers = np.arange(start, min(start + CHUNK, contexts), dtype=np.int64)
        digest.update(batches.numbered(numbers).astype("<i8").tobytes())
    return digest.hexdigest()


def _digest(*arrays: npt.NDArray[np.integer]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).astype("<i8").tobytes())
    return digest.hexdigest()
