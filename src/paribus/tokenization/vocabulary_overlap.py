"""What two vocabularies share, and how often that is used which only one of them has.

With BPE first and Scaffold-BPE of the same size second, what only the first has are the scaffold tokens, and what only
the second has replaced them (Scaffold-BPE, section 1 and Figure 5).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paribus.tokenization.tokenizer import Tokenizer
from paribus.tokenization.vocabulary import SPECIAL, UNKNOWN

Spelling = tuple[bytes, bool]


@dataclass(frozen=True)
class TokenGroup:
    """Some tokens of a vocabulary."""

    tokens: int
    share: float
    """Of the vocabulary's tokens."""
    mean_frequency: float
    """Occurrences a token in the texts that were counted; NaN for an empty group."""


@dataclass(frozen=True)
class VocabularyOverlap:
    """Two vocabularies as sets of spellings (bytes, and whether they continue a word); special tokens are out."""

    shared: int
    jaccard: float
    """Shared of all spellings that one of them has."""
    share_of_first: float
    share_of_second: float


def vocabulary_overlap(first: Tokenizer, second: Tokenizer) -> VocabularyOverlap:
    """How much the vocabularies in use, scaffolds out, have in common."""
    left, right = set(_spellings(first)), set(_spellings(second))
    shared = len(left & right)
    return VocabularyOverlap(
        shared=shared,
        jaccard=shared / max(len(left | right), 1),
        share_of_first=shared / max(len(left), 1),
        share_of_second=shared / max(len(right), 1),
    )


def overlap_shares(tokenizers: Sequence[Tokenizer]) -> tuple[list[int], list[list[float]]]:
    """Tokens in use of each vocabulary; and, of the tokens of vocabulary i, the share that j has too, at [i][j]."""
    spelled = [set(_spellings(tok)) for tok in tokenizers]
    shares = [[len(mine & theirs) / max(len(mine), 1) for theirs in spelled] for mine in spelled]
    return [len(mine) for mine in spelled], shares


def only_in(tok: Tokenizer, other: Tokenizer, counts: npt.NDArray[np.int64]) -> TokenGroup:
    """The tokens of `tok` that `other` lacks, with their `counts` (vocab_size,) in texts that `tok` encoded."""
    theirs = set(_spellings(other))
    mine = _spellings(tok)
    ids = [identity for spelling, identity in mine.items() if spelling not in theirs]
    return TokenGroup(
        tokens=len(ids),
        share=len(ids) / max(len(mine), 1),
        mean_frequency=float(counts[ids].mean()) if ids else float("nan"),
    )


def _spellings(tok: Tokenizer) -> dict[Spelling, int]:
    """Id of each spelling in use."""
    columns, ranks = tok.vocabulary.columns, tok.vocabulary.rank_of_id.tolist()
    return {
        (columns.spellings[rank], bool(columns.continuations[rank])): identity
        for identity, rank in enumerate(ranks)
        if columns.kinds[rank] not in (SPECIAL, UNKNOWN)
    }
