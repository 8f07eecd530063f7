"""What every pre-tokenizer that was made from data can do, and the names of all pre-tokenizers."""

from typing import Any, Protocol

from paribus.tokenization.pretokenize.patterns import PATTERNS

PRETOKENIZERS = (*PATTERNS, "spans", "predictive_entropy")


class Cutter(Protocol):
    """A pre-tokenizer that was made from data, so a tokenizer carries its state."""

    def pieces(self, text: str) -> list[str]:
        """The pre-tokens of `text` in order; their concatenation is `text`."""

    def to_state(self) -> dict[str, Any]:
        """All of it as JSON values, among them its `kind`."""
