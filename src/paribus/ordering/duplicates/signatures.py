"""MinHash signatures (Broder, 1997) by datasketch, and the keys by which equal parts of them are found.

Hashes have 64 bits: with 32, two short documents of a large corpus would have one signature by chance.
"""

import hashlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
from datasketch import MinHash

from paribus.config.groups.embedding import MinHashDuplicates
from paribus.corpus.overlap import words
from paribus.ordering.arrays import save_array
from paribus.ordering.duplicates.bands import Bands
from paribus.ordering.duplicates.exact import digests
from paribus.ordering.parts import CorpusPart

SEED = 1
"""Of the hash functions; another seed is another estimate."""


def sign(texts: list[str], config: MinHashDuplicates) -> npt.NDArray[np.uint64]:
    """Signatures of documents, (n, permutations)."""

    sets = (sorted(shingles(text, config.shingle)) for text in texts)
    found = MinHash.generator(sets, num_perm=config.permutations, seed=SEED, scheme="affine64", hashfunc=_hash)
    return np.array([sketch.hashvalues for sketch in found], dtype=np.uint64).reshape(len(texts), config.permutations)


def sign_part(config: MinHashDuplicates, part: CorpusPart) -> CorpusPart:
    """Write the signatures of a part, and their keys beside them, unless that is done."""
    if not part.target.exists():
        signatures = sign(part.texts(), config)
        save_array(keys_path(part.target), _keys(signatures, Bands.of(config)))
        save_array(part.target, signatures)
    return part


def keys_path(target: Path) -> Path:
    """The file of the keys of the signatures in file `target`: (2 + bands, n), the first two of the whole signature."""
    return target.with_suffix(".keys.npy")


def _keys(signatures: npt.NDArray[np.uint64], bands: Bands) -> npt.NDArray[np.uint64]:
    whole = digests(row.tobytes() for row in signatures)
    pieces = [digests(row.tobytes() for row in signatures[:, band])[:, :1] for band in bands.slices]
    return np.ascontiguousarray(np.hstack([whole, *pieces]).T)


def _hash(shingle: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(shingle, digest_size=8).digest(), "little")


NO_WORD = "\0"
"""Begins the one shingle of a text without a word; no word holds it."""


def shingles(text: str, size: int) -> set[bytes]:
    """The sets of `size` consecutive words, each as UTF-8 with spaces between.

    A text of fewer words is one shingle of them all, one without any word a shingle of the whole text.
    """
    found = words(text)
    if not found:
        return {(NO_WORD + text).encode()}
    return {" ".join(found[start : start + size]).encode() for start in range(max(1, len(found) - size + 1))}
