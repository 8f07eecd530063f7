"""The words that BERT's WordPiece sees: cleaned, perhaps in lower case and without accents, punctuation apart.

Both steps are done by the library `tokenizers` from the part of `tokenizer.json` that describes them, so words are the
same for every text.
"""

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

from paribus.errors import DataError

if TYPE_CHECKING:
    import tokenizers

KIND, FORMAT = "bert", 1
TOO_LONG = "\ufdd0"
"""In the place of a word that is too long: a noncharacter, which no vocabulary has, so the word is unknown."""


class BertWords:
    """Cuts a text into words; one of more than `longest` characters is unknown.

    `normalizer` and `pre_tokenizer` are as in `tokenizer.json`.
    """

    def __init__(self, normalizer: Any, pre_tokenizer: Any, longest: int) -> None:
        self.normalizer, self.pre_tokenizer, self.longest = normalizer, pre_tokenizer, longest

    def pieces(self, text: str) -> list[str]:
        """The words of `text` in order."""
        backend = self._backend
        normalized = text if backend.normalizer is None else backend.normalizer.normalize_str(text)
        found = backend.pre_tokenizer.pre_tokenize_str(normalized)
        return [word if len(word) <= self.longest else TOO_LONG for word, _ in found]

    def to_state(self) -> dict[str, Any]:
        """All of it as JSON values."""
        steps = {"normalizer": self.normalizer, "pre_tokenizer": self.pre_tokenizer}
        return {"kind": KIND, "format": FORMAT, "longest": self.longest, **steps}

    @classmethod
    def from_state(cls, state: Any) -> "BertWords":
        """What `to_state` gave; DataError for another state."""
        if not isinstance(state, dict) or (state.get("kind"), state.get("format")) != (KIND, FORMAT):
            raise DataError(f"the state is not one of a pre-tokenizer of kind {KIND!r}, format {FORMAT}")
        if not isinstance(state.get("longest"), int):
            raise DataError(f"the state of pre-tokenizer {KIND!r} has no longest word")
        made = cls(state.get("normalizer"), state.get("pre_tokenizer"), state["longest"])
        _ = made._backend
        return made

    @cached_property
    def _backend(self) -> "tokenizers.Tokenizer":
        import tokenizers

        described = {
            "version": "1.0",
            "added_tokens": [],
            "normalizer": self.normalizer,
            "pre_tokenizer": self.pre_tokenizer,
            "model": {"type": "WordLevel", "vocab": {"": 0}, "unk_token": ""},
        }
        try:
            return tokenizers.Tokenizer.from_str(json.dumps(described))
        except Exception as error:  # the library has no other class for what it cannot read
            raise DataError(f"the state of pre-tokenizer {KIND!r} is malformed: {error}") from error

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_state, (self.to_state(),)
