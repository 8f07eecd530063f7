"""Encoders: how the units of a pre-token become tokens. One file an algorithm."""

from typing import Literal, Protocol

from paribus.tokenization.demolition import Demolish, child_sequences
from paribus.tokenization.encoders.longest_first import LongestFirstEncoder
from paribus.tokenization.encoders.merge_rank import MergeRankEncoder
from paribus.tokenization.vocabulary import Vocabulary

EncoderName = Literal["merge_rank", "longest_first"]
Candidates = Literal["normal", "expanded"]


class Encoder(Protocol):
    """Encodes one pre-token."""

    def encode(self, units: str) -> list[int]:
        """Dense ids of a string of units."""


def build_encoder(name: EncoderName, vocabulary: Vocabulary, candidates: Candidates, demolish: Demolish) -> Encoder:
    """The encoder of that name for a vocabulary."""
    children = child_sequences(vocabulary, demolish)
    if name == "merge_rank":
        return MergeRankEncoder(vocabulary, children)
    return LongestFirstEncoder(vocabulary, children, expanded=candidates == "expanded")
