"""Tokens inside longer tokens: how much of a token's text is its own (Scaffold-BPE, Figure 1).

A token that is mostly met inside longer ones, as `zona` in `Arizona`, is what Scaffold-BPE means by a scaffold token.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paribus.tokenization.tokenizer import Tokenizer
from paribus.tokenization.vocabulary.overlap import spellings
from paribus.tokenization.vocabulary.vocabulary import FALLBACK


@dataclass(frozen=True)
class Containing:
    """A token that contains another, or is it."""

    token: bytes
    occurrences: int
    share: float
    """Of the occurrences of all tokens that contain it."""


def own_shares(tok: Tokenizer, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """By id, shape (vocab_size,): occurrences of a token over those of all tokens that contain it, itself included.

    `counts` are occurrences by id, shape (vocab_size,). NaN where none of them occurs, and for special tokens. A token
    counts once for each of its parts, however often it has that part. In a vocabulary of characters, a byte of what is
    no character there is part of no other token.
    """
    fallback = tok.vocabulary.columns.kinds[tok.vocabulary.rank_of_id] == FALLBACK
    spelled: dict[bytes, list[int]] = {}
    for (spelling, _), alike in spellings(tok).items():
        if ids := [identity for identity in alike if not fallback[identity]]:
            spelled.setdefault(spelling, []).extend(ids)
    shares = np.where(fallback & (counts > 0), 1.0, np.nan)
    totals = dict.fromkeys(spelled, 0)
    for spelling, ids in spelled.items():
        occurrences = int(counts[ids].sum())
        for part in _parts(spelling) if occurrences else ():
            if part in totals:
                totals[part] += occurrences
    for spelling, ids in spelled.items():
        if totals[spelling]:
            shares[ids] = int(counts[ids].sum()) / totals[spelling]
    return shares


def containing(tok: Tokenizer, counts: npt.NDArray[np.int64], part: bytes) -> list[Containing]:
    """The tokens in use that contain `part`, the most frequent first; `counts` as in `own_shares`."""
    found: dict[bytes, int] = {}
    for (spelling, _), ids in spellings(tok).items():
        if part in spelling:
            found[spelling] = found.get(spelling, 0) + int(counts[list(ids)].sum())
    total = max(sum(found.values()), 1)
    ordered: Sequence[tuple[bytes, int]] = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return [Containing(spelling, count, count / total) for spelling, count in ordered]


def _parts(spelling: bytes) -> Iterator[bytes]:
    """Every distinct run of bytes of a token."""
    yield from {spelling[start:end] for start in range(len(spelling)) for end in range(start + 1, len(spelling) + 1)}
