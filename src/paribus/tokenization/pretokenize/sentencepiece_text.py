"""The text that a SentencePiece model sees: normalized by its own rules, a space before it if it wants one.

BPE finds the pieces that a user defined before it merges: they are cut out, from the left, the longest first.

Normalization is done by the library from what is kept of the model, so it is the same for every text. Its `▁` is
written as the space that it stands for; a `▁` of the text itself therefore becomes a space too.
"""

import base64
import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from paribus.errors import DataError

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

KIND, FORMAT = "sentencepiece", 2
SPACE = "\u2581"
"""How the library writes a space."""


class SentencePieceText:
    """Makes one piece of a text, its normalization, or several where there are `fixed` ones in it.

    `rules` is a model without its pieces; `prefix` tells whether a space is put before a text, which decoding takes
    away; `fixed` are pieces that merging leaves alone.
    """

    def __init__(self, rules: bytes, *, prefix: bool, fixed: Sequence[str] = ()) -> None:
        self.rules, self.prefix, self.fixed = rules, prefix, tuple(fixed)

    def pieces(self, text: str) -> list[str]:
        """The normalized text, cut at fixed pieces, or nothing where nothing is left of it."""
        normalized = self._processor.normalize(text).replace(SPACE, " ")
        if not self.fixed:
            return [normalized] if normalized else []
        return [piece for piece in self._fixed.split(normalized) if piece]

    def to_state(self) -> dict[str, Any]:
        """All of it as JSON values."""
        rules = base64.b64encode(self.rules).decode("ascii")
        return {"kind": KIND, "format": FORMAT, "prefix": self.prefix, "rules": rules, "fixed": list(self.fixed)}

    @classmethod
    def from_state(cls, state: Any) -> "SentencePieceText":
        """What `to_state` gave; DataError for another state."""
        if not isinstance(state, dict) or (state.get("kind"), state.get("format")) != (KIND, FORMAT):
            raise DataError(f"the state is not one of a pre-tokenizer of kind {KIND!r}, format {FORMAT}")
        try:
            rules = base64.b64decode(state["rules"], validate=True)
            made = cls(rules, prefix=bool(state["prefix"]), fixed=[str(piece) for piece in state["fixed"]])
            _ = made._processor
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise DataError(f"the state of pre-tokenizer {KIND!r} is malformed: {error}") from error
        return made

    @cached_property
    def _fixed(self) -> re.Pattern[str]:
        longest_first = sorted((piece.replace(SPACE, " ") for piece in self.fixed), key=len, reverse=True)
        return re.compile(f"({'|'.join(map(re.escape, longest_first))})")

    @cached_property
    def _processor(self) -> "SentencePieceProcessor":
        from sentencepiece import SentencePieceProcessor

        return SentencePieceProcessor(model_proto=self.rules)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_state, (self.to_state(),)
