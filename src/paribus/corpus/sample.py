"""Which training documents a corpus keeps: a share of them, or as many as a budget reads."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from paribus.corpus.reading import Read

_BUCKET_BITS = 20


@dataclass(frozen=True)
class Sample:
    """Keeps the texts whose hash of 64 bits is below `below`, so that a smaller sample is part of a larger one."""

    below: int
    seed: int = 0
    """Of the hash."""

    def keeps(self, text: bytes) -> bool:
        """Whether a text (UTF-8) is kept; independent of the split it is drawn into."""
        return _hash(text, self.seed) < self.below


def of_share(share: float, seed: int = 0) -> Sample:
    """The sample of about this share of all texts."""
    return Sample(round(share * 2**64), seed)


def of_size(size: int, documents: Iterable[Read], seed: int = 0) -> Sample:
    """The least sample whose text has at least `size` bytes, that of all documents where these have fewer.

    Of pairs the targets count, as in a budget. Documents are told apart by the first 20 bits of their hashes, so that
    8 MiB of memory do for any number: of many millions a few more are kept than would do.
    """
    sizes = np.zeros(2**_BUCKET_BITS, np.int64)
    for document in documents:
        counted = document.text if document.target is None else document.target
        sizes[_hash(document.text, seed) >> (64 - _BUCKET_BITS)] += len(counted)
    buckets = int(np.searchsorted(np.cumsum(sizes), size)) + 1
    return Sample(buckets << (64 - _BUCKET_BITS), seed)


def _hash(text: bytes, seed: int) -> int:
    salt = seed.to_bytes(hashlib.blake2b.SALT_SIZE, "little")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8, person=b"sample", salt=salt).digest(), "big")
