"""The shingles of documents, runs of consecutive words, as hashes of 64 bits."""

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from paribus.corpus.words import word_classes
from paribus.native.loader import address, kernel

SIZE = 8
"""Words a shingle."""
Hashes = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.int64]


def shingle_hashes(documents: Sequence[Sequence[str]]) -> tuple[Hashes, Counts]:
    """Hashes of the shingles of each document, which has one text or several, and their numbers, (documents,).

    Document after document, repeated shingles repeated. A text of fewer words than a shingle has one, of them all; one
    without any word has one, of its characters.
    """
    texts = [text.lower().encode() for document in documents for text in document]
    data = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
    starts = np.array([0, *itertools.accumulate(map(len, texts))], np.int64)
    hashes, recent = np.empty(len(data) + len(texts), np.uint64), np.empty(SIZE, np.uint64)
    counts = np.empty(len(texts), np.int64)
    form = (len(texts), address(word_classes()), SIZE, address(recent))
    written = kernel("hash_shingles")(address(data), address(starts), *form, address(hashes), address(counts))
    if not documents:
        return hashes[:0], counts
    firsts = np.array([0, *itertools.accumulate(map(len, documents))][:-1], np.int64)
    return hashes[:written], np.add.reduceat(counts, firsts)
