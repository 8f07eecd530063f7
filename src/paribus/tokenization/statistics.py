"""Intrinsic statistics of a tokenizer on texts (Scaffold-BPE, equations 7 and 8)."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paribus.tokenization.tokenizer import Tokenizer

_BUCKET = 3


@dataclass(frozen=True)
class CorpusStatistics:
    """Numbers of a tokenizer on a set of texts; special tokens are out."""

    texts: int
    tokens: int
    bytes: int
    """UTF-8 bytes of the texts."""
    bytes_per_token: float
    entropy: float
    """H = -sum p log2 p over the tokens' relative frequencies, in bits (equation 7)."""
    redundancy: float
    """1 - H / log2 |V| (equation 8)."""
    token_lengths: dict[str, int]
    """Tokens in the encoded texts by length in characters, in the papers' buckets: `1-3`, `4-6`, ..."""
    used_tokens: int
    """Distinct tokens that occur."""


def corpus_statistics(tok: Tokenizer, texts: Iterable[str]) -> CorpusStatistics:
    """Encode `texts` and count. A token that is a part of a character has length 1."""
    counts = np.zeros(tok.vocab_size, dtype=np.int64)
    number = size = 0
    for text in texts:
        number += 1
        size += len(text.encode("utf-8"))
        counts += np.bincount(tok.encode(text), minlength=tok.vocab_size)
    tokens = int(counts.sum())
    entropy = _entropy(counts)
    return CorpusStatistics(
        texts=number,
        tokens=tokens,
        bytes=size,
        bytes_per_token=size / tokens if tokens else 0.0,
        entropy=entropy,
        redundancy=1 - entropy / float(np.log2(tok.vocab_size)),
        token_lengths=_histogram(tok, counts),
        used_tokens=int(np.count_nonzero(counts)),
    )


def _entropy(counts: npt.NDArray[np.int64]) -> float:
    present = counts[counts > 0]
    if not len(present):
        return 0.0
    shares = present / present.sum()
    return max(0.0, float(-(shares * np.log2(shares)).sum()))


def _histogram(tok: Tokenizer, counts: npt.NDArray[np.int64]) -> dict[str, int]:
    buckets: dict[int, int] = {}
    for entry, count in zip(tok.vocabulary.by_id, counts.tolist(), strict=True):
        if count and entry.kind not in ("special", "unknown"):
            bucket = (len(entry.bytes.decode("utf-8", errors="replace")) - 1) // _BUCKET
            buckets[bucket] = buckets.get(bucket, 0) + count
    last = max(buckets, default=-1)
    return {f"{n * _BUCKET + 1}-{(n + 1) * _BUCKET}": buckets.get(n, 0) for n in range(last + 1)}
