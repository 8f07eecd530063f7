"""Pre-tokenizers of every kind: by pattern, by spans, by a language model."""

from typing import Any, Protocol

from paribus.errors import DataError
from paribus.tokenization.pretokenizers import PATTERNS, Pretokenizer
from paribus.tokenization.spans import PredictiveEntropyPretokenizer, SpanPretokenizer

PRETOKENIZERS = (*PATTERNS, "spans", "predictive_entropy")


class Cutter(Protocol):
    """A pre-tokenizer that was made from data, so a tokenizer carries its state."""

    def pieces(self, text: str) -> list[str]:
        """The pre-tokens of `text` in order; their concatenation is `text`."""

    def to_state(self) -> dict[str, Any]:
        """All of it as JSON values, among them its `kind`."""


def cutter_from_state(kind: str, state: Any) -> Cutter:
    """What `to_state` gave. DataError where it is malformed or its model is not the one it was made with."""
    if kind == "spans":
        return SpanPretokenizer.from_state(state)
    if kind == "predictive_entropy":
        return PredictiveEntropyPretokenizer.from_state(state)
    raise DataError(f"pretokenizer {kind!r} has no state")


def kind_of(pretokenizer: str | Cutter) -> str:
    """Its name in `PRETOKENIZERS`."""
    return pretokenizer if isinstance(pretokenizer, str) else str(pretokenizer.to_state()["kind"])


__all__ = ["PRETOKENIZERS", "Cutter", "Pretokenizer", "cutter_from_state", "kind_of"]
