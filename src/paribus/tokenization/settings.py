"""What a tokenizer is besides its vocabulary; closed names, checked."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from paribus.errors import ConfigurationError
from paribus.tokenization.learn.bpe import Stopped
from paribus.tokenization.learn.demolition import Demolish
from paribus.tokenization.pretokenize.cutter import PRETOKENIZERS
from paribus.tokenization.vocabulary.units import UnitKind, Unknown

Algorithm = Literal["bpe", "scaffold_bpe", "wordpiece", "unigram", "words", "bytes"]
EncoderName = Literal["merge_rank", "longest_first", "left_to_right", "viterbi", "fewest", "dropout", "whole"]
Candidates = Literal["normal", "expanded"]

_LOSSES = {
    "stripped": "pretokenizer=stripped loses whitespace; `whitespace` keeps it with the next word",
    "sentencepiece": "a SentencePiece model normalizes text, and at least ▁ (U+2581) is lost, which becomes a space; "
    "tokenizer.lossless=false says that this is wanted",
    "bert": "BERT's words lose whitespace, control characters and perhaps case and accents; "
    "tokenizer.lossless=false says that this is wanted",
}
"""What pre-tokenizers lose."""

_CHOICES: dict[str, tuple[str, ...]] = {
    "algorithm": get_args(Algorithm),
    "unit": get_args(UnitKind),
    "unknown": get_args(Unknown),
    "pretokenizer": PRETOKENIZERS,
    "encoder": get_args(EncoderName),
    "candidates": get_args(Candidates),
    "demolish": get_args(Demolish),
    "stopped": get_args(Stopped),
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a tokenizer was trained and how it encodes. Raises ConfigurationError for an unknown name."""

    algorithm: Algorithm
    unit: UnitKind
    unknown: Unknown
    """What a character outside a character alphabet becomes; without effect on byte units."""
    pretokenizer: str
    encoder: EncoderName
    candidates: Candidates
    demolish: Demolish
    special_tokens: tuple[str, ...]
    stopped: Stopped
    """Why training ended: the vocabulary was full, or no pair was left."""
    string_equal_pairs: int
    dropout: float = 0.0
    """Probability that BPE-dropout skips a merge."""
    seed: int = 0
    """Of BPE-dropout's random numbers."""
    whole_pretokens: bool = False
    """Whether merge-rank encoding takes a pre-token that is a token whole, reachable by merges or not (tiktoken)."""

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            check_choice(name, getattr(self, name), known)
        self._check_kinds()
        if len(set(self.special_tokens)) < len(self.special_tokens) or "" in self.special_tokens:
            raise ConfigurationError(
                f"tokenizer.special_tokens: {list(self.special_tokens)} must be distinct and not empty"
            )
        if not 0 <= self.dropout < 1:
            raise ConfigurationError(f"encoder.probability: {self.dropout} is no probability in [0, 1)")

    def _check_kinds(self) -> None:
        """Settings are read from files that anyone may have changed."""
        if type(self.dropout) not in (int, float):
            raise ConfigurationError(f"encoder.probability: {self.dropout!r} is no number")
        for name, number in (("seed", self.seed), ("string_equal_pairs", self.string_equal_pairs)):
            if type(number) is not int or not 0 <= number < 1 << 63:
                raise ConfigurationError(f"{name}: {number!r} is no whole number from 0 to 2^63 - 1")
        if type(self.whole_pretokens) is not bool:
            raise ConfigurationError(f"whole_pretokens: {self.whole_pretokens!r} is neither true nor false")
        if not all(isinstance(token, str) for token in self.special_tokens):
            raise ConfigurationError(f"tokenizer.special_tokens: {list(self.special_tokens)} must be strings")

    @property
    def spaced(self) -> bool:
        """Whether whitespace is lost and tokens that begin a word stand for a space and their text."""
        return self.pretokenizer in ("stripped", "bert")

    @property
    def lossy(self) -> bool:
        """Whether text is lost: whitespace, by normalization, or characters by an unknown token."""
        return self.pretokenizer in _LOSSES or (self.unit == "character" and self.unknown == "token")


def check_lossless(settings: Settings) -> None:
    """Raise ConfigurationError where text is lost."""
    if settings.pretokenizer in _LOSSES:
        raise ConfigurationError(_LOSSES[settings.pretokenizer])
    if settings.lossy:
        raise ConfigurationError("unknown=token loses characters outside the alphabet; `byte_fallback` keeps them")


def check_choice(name: str, value: Any, known: tuple[str, ...]) -> None:
    """Raise ConfigurationError unless `value` is one of `known`."""
    if value not in known:
        raise ConfigurationError(f"{name}: {value!r} is unknown; one of {', '.join(known)}")
