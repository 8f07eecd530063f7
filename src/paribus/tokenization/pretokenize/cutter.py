"""What every pre-tokenizer that has a state can do, and the names of all pre-tokenizers."""

from typing import Any, Protocol

from paribus.tokenization.pretokenize.patterns import PATTERNS

PRETOKENIZERS = (*PATTERNS, "spans", "predictive_entropy", "sentencepiece", "bert")
"""Of these, `sentencepiece` and `bert` are imported and change a text before they cut it."""


class Cutter(Protocol):
    """A pre-tokenizer that was made from data or came with a tokenizer, which carries its state."""

    def pieces(self, text: str) -> list[str]:
        """The pre-tokens of `text` in order; their concatenation is `text`, or what an imported one leaves of it."""

    def to_state(self) -> dict[str, Any]:
        """All of it as JSON values, among them its `kind`."""
