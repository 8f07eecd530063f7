"""One tokenizer with its encoder, as a row of the table of tokenizers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LENGTHS = ("1-3", "4-6", "7-9", "10-12", "13-15", "16+")
"""Characters of a token, as the papers' tables have them, and the longer ones together."""

Number = float | int | None


@dataclass(frozen=True)
class Replaced:
    """How the vocabulary of a row differs from that of the row it is compared with (Scaffold-BPE, section 1, Figure 5).

    With BPE as the other row and Scaffold-BPE as this one, what is gone are the scaffold tokens of BPE's vocabulary.
    """

    gone: int
    """Tokens of the other vocabulary that this one lacks."""
    gone_share: float
    """Of the other vocabulary's tokens."""
    gone_frequency: float
    """Mean occurrences of those in the text that the other encoded."""
    came: int
    came_frequency: float
    """Mean occurrences of this vocabulary's own ones in the text that it encoded."""

    @property
    def rise(self) -> float | None:
        """Mean frequency of what came over that of what is gone, less one; None from nothing."""
        return self.came_frequency / self.gone_frequency - 1 if self.gone_frequency and self.came else None


@dataclass(frozen=True)
class TokenRow:
    """One tokenizer with its encoder on the training text of a corpus."""

    labels: tuple[str, ...]
    """By factor."""
    name: str
    config: Mapping[str, Any]
    """Of one of the configurations that ask for it, as plain data."""
    statistics: Mapping[str, Any]
    """The `statistics.json` of a `token_statistics` artefact."""
    vocab_size: int
    baseline: int | None = None
    """Place of the row that it is compared with."""
    replaced: Replaced | None = None
    """None where the vocabularies are the same, and without a row to compare with."""

    @staticmethod
    def read(directory: Path) -> Mapping[str, Any]:
        """The statistics in the directory of an artefact."""
        content: Mapping[str, Any] = json.loads((directory / "statistics.json").read_text(encoding="utf-8"))
        return content

    @property
    def train(self) -> Mapping[str, Any]:
        """Statistics of the training text."""
        return dict(self.statistics["train"])

    def lengths(self) -> Sequence[int]:
        """Tokens in the training text by `LENGTHS`."""
        return folded(self.train["token_lengths"])

    def vocabulary_lengths(self) -> Sequence[int]:
        """Tokens of the vocabulary by `LENGTHS`."""
        return folded(self.statistics["vocabulary_lengths"])


def folded(buckets: Mapping[str, int]) -> list[int]:
    """Counts by `LENGTHS` of counts in buckets of three characters, `1-3`, `4-6` and so on, in whatever order."""
    counts = [0] * len(LENGTHS)
    for name, count in buckets.items():
        place = (int(name.partition("-")[0]) - 1) // 3
        counts[min(place, len(LENGTHS) - 1)] += count
    return counts


def changed(after: float, before: float) -> float | None:
    """Relative change; None from nothing."""
    return after / before - 1 if before else None


def numbers(row: TokenRow, other: TokenRow | None) -> dict[str, Number]:
    """Every number of a row by name; those of a comparison with `other` are None without one.

    Names that end in `_share`, `_change` or `_rise`, and scores of words, are shares and relative changes.
    """
    train, heldout = row.train, row.statistics["heldout"]
    before = other.train if other else None
    total = max(sum(row.lengths()), 1)
    found: dict[str, Number] = {
        "vocab_size": row.vocab_size,
        **{name: train[name] for name in _TRAIN},
        "own_share": row.statistics["own_share"],
        "bytes_per_token_change": changed(train["bytes_per_token"], before["bytes_per_token"]) if before else None,
        "mean_token_length_change":
            changed(train["mean_token_length"], before["mean_token_length"]) if before else None,
        "heldout_bytes_per_token": heldout["bytes_per_token"],
        "heldout_tokens_per_word": heldout["tokens_per_word"],
        **row.statistics["words"],
    }  # fmt: skip
    for place, bucket in enumerate(LENGTHS):
        key = "tokens_" + bucket.replace("-", "_").replace("+", "_more")
        found[f"{key}_share"] = row.lengths()[place] / total
        found[f"{key}_change"] = changed(row.lengths()[place], other.lengths()[place]) if other else None
    replaced = row.replaced
    return found | {
        "gone": replaced.gone if replaced else None,
        "gone_share": replaced.gone_share if replaced else None,
        "gone_frequency": replaced.gone_frequency if replaced else None,
        "came_frequency": replaced.came_frequency if replaced else None,
        "frequency_rise": replaced.rise if replaced else None,
    }


_TRAIN = (
    "texts", "bytes", "tokens", "words", "bytes_per_token", "tokens_per_word", "mean_token_length", "entropy",
    "redundancy", "renyi_efficiency", "used_tokens", "unused_tokens", "scaffold_share",
)  # fmt: skip
