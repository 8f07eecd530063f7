"""What two vocabularies share, and how often that is used which only one of them has.

With BPE first and Scaffold-BPE of the same size second, what only the first has are the scaffold tokens, and what only
the second has replaced them (Scaffold-BPE, section 1 and Figure 5).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paribus.tokenization.tokenizer import Tokenizer
from paribus.tokenization.vocabulary.vocabulary import SPECIAL, UNKNOWN

Spellings = dict[tuple[bytes, bool], tuple[int, ...]]
"""Ids of a vocabulary's tokens in use by what they are spelled: their bytes, and whether they continue a word.

A vocabulary of characters spells ASCII twice: as characters, and as bytes for what it has no character for.
"""


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
    """Of its tokens."""
    share_of_second: float


def vocabulary_overlap(first: Tokenizer, second: Tokenizer) -> VocabularyOverlap:
    """How much the vocabularies in use, scaffolds out, have in common."""
    left, right = spellings(first), spellings(second)
    shared = len(left.keys() & right.keys())
    return VocabularyOverlap(
        shared=shared,
        jaccard=shared / max(len(left) + len(right) - shared, 1),
        share_of_first=_share(left, right),
        share_of_second=_share(right, left),
    )


def overlap_shares(spelled: Sequence[Spellings]) -> list[list[float]]:
    """Of the tokens of vocabulary i, the share that vocabulary j has too, at [i][j]."""
    return [[_share(mine, theirs) for theirs in spelled] for mine in spelled]


def tokens_of(spelled: Spellings) -> int:
    """How many tokens are spelled."""
    return _count(spelled.values())


def _share(mine: Spellings, theirs: Spellings) -> float:
    return _count(ids for spelling, ids in mine.items() if spelling in theirs) / max(tokens_of(mine), 1)


def _count(ids: Iterable[tuple[int, ...]]) -> int:
    return sum(map(len, ids))


def only_in(tok: Tokenizer, other: Tokenizer, counts: npt.NDArray[np.int64]) -> TokenGroup:
    """The tokens of `tok` that `other` lacks, with their `counts` (vocab_size,) in texts that `tok` encoded."""
    return spelled_only_in(spellings(tok), spellings(other), counts)


def spelled_only_in(mine: Spellings, theirs: Spellings, counts: npt.NDArray[np.int64]) -> TokenGroup:
    """The same of the spellings of two vocabularies, with the `counts` of the first."""
    ids = [identity for spelling, each in mine.items() if spelling not in theirs for identity in each]
    return TokenGroup(
        tokens=len(ids),
        share=len(ids) / max(tokens_of(mine), 1),
        mean_frequency=float(counts[ids].mean()) if ids else float("nan"),
    )


def spellings(tok: Tokenizer) -> Spellings:
    """Ids by spelling, in their order; special tokens and the unknown token are out."""
    columns, ranks = tok.vocabulary.columns, tok.vocabulary.rank_of_id.tolist()
    found: Spellings = {}
    for identity, rank in enumerate(ranks):
        if columns.kinds[rank] not in (SPECIAL, UNKNOWN):
            spelling = (columns.spellings[rank], bool(columns.continuations[rank]))
            found[spelling] = (*found.get(spelling, ()), identity)
    return found
