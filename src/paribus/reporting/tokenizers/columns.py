"""The columns of the table of tokenizers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from paribus.reporting.tokenizers.row import Number

ABSENT = "–"


@dataclass(frozen=True)
class TokenColumn:
    """A number of each row."""

    heading: str
    name: str
    show: Callable[[float], str]
    rank: int = 9
    """Which columns a narrow terminal shows: the lowest."""
    wide: bool = False
    """Whether only files have room for it."""


def percent(value: float) -> str:
    """A share."""
    return f"{100 * value:.2f} %"


def signed(value: float) -> str:
    """A relative change."""
    return f"{100 * value:+.2f} %".replace("-", "−")


def whole(value: float) -> str:
    """A count."""
    return f"{value:,.0f}"


def digits(number: int) -> Callable[[float], str]:
    """A number with so many digits after the point."""
    return lambda value: f"{value:.{number}f}"


COLUMNS = (
    TokenColumn("vocabulary", "vocab_size", whole, rank=5),
    TokenColumn("tokens", "tokens", whole, wide=True),
    TokenColumn("bytes/token", "bytes_per_token", digits(4), rank=0),
    TokenColumn("change", "bytes_per_token_change", signed, rank=1),
    TokenColumn("held out", "heldout_bytes_per_token", digits(4), rank=4),
    TokenColumn("chars/token", "mean_token_length", digits(3), wide=True),
    TokenColumn("tokens/word", "tokens_per_word", digits(3), rank=6),
    TokenColumn("entropy", "entropy", digits(4), rank=3),
    TokenColumn("redundancy", "redundancy", digits(4), rank=7),
    TokenColumn("Rényi", "renyi_efficiency", digits(4), wide=True),
    TokenColumn("unused", "unused_tokens", whole, wide=True),
    TokenColumn("own share", "own_share", percent, wide=True),
    TokenColumn("scaffolds", "scaffold_share", percent, wide=True),
)
LEGEND = (
    "Of the training text; special tokens are out. change: of bytes a token, from the row that a row is compared "
    "with, the first of the same vocabulary size where the experiment names no other. held out: bytes a token of the "
    "held-out text. tokens/word: words are what white space separates. entropy: of the tokens' frequencies, in bits; "
    "redundancy: one less entropy over log2 of the vocabulary's size; Rényi: efficiency of order 2.5. unused: tokens "
    "of the vocabulary that never occur. own share: occurrences of a token over those of all tokens that contain it, "
    "mean over tokens. scaffolds: scaffold tokens for each token of the vocabulary."
)


def columns_of(numbers: Sequence[Mapping[str, Number]]) -> list[TokenColumn]:
    """The columns in which some row has a number: those above, and precision, recall and F1 of segmented words."""
    words = list(dict.fromkeys(name for row in numbers for name in row if name.endswith(WORD_SCORES)))
    every = [*COLUMNS, *(TokenColumn(name.replace("_", " "), name, percent, rank=2) for name in words)]
    return [column for column in every if any(row.get(column.name) is not None for row in numbers)]


def shown(column: TokenColumn, row: Mapping[str, Number]) -> str:
    """What a cell says."""
    value = row.get(column.name)
    return ABSENT if value is None else column.show(float(value))


WORD_SCORES = ("_precision", "_recall", "_f1")
