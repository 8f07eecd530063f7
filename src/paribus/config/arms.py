"""Arms: a tokenizer with what belongs to it, chosen by one word; `arm=bpe,unigram` is one factor with two values."""

from collections.abc import Sequence

ARM = "arm"
"""The group; a configuration has no field of that name, only what its files choose."""
CHOSEN = ("pretokenizer", "tokenizer", "encoder")
"""The groups that it chooses in."""
AS_ARMS = "one begins with '# @package _global_' and overrides tokenizer and encoder, as conf/arm/bpe.yaml does"
DOC = "A tokenizer with the encoder that belongs to it, by one word: -m arm=bpe,unigram is one factor with two values."


def with_chosen(factors: Sequence[str]) -> list[str]:
    """Factors, and the groups that arms stand for."""
    return [*factors, *(CHOSEN if ARM in factors else ())]
