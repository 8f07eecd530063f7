"""Cut text into pre-tokens, the pieces that tokens do not cross.

Every pattern matches every character, so the pieces in order are the text. Special tokens are never looked for:
where their text occurs in a document it is cut and encoded as ordinary text.
"""

from collections.abc import Iterator

import regex

from paribus.errors import ConfigurationError

_CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"
PATTERNS: dict[str, str] = {
    "gpt2": _CONTRACTIONS + r"| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "gpt2_digits": _CONTRACTIONS + r"| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "gpt4": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "whitespace": r"\s\S*|\S+",
    "none": r"(?s:.+)",
}


class Pretokenizer:
    """One of `PATTERNS` by name: `gpt2`, `gpt2_digits` (a digit a piece), `gpt4` (cl100k), `whitespace`
    (every whitespace character begins a piece) or `none` (the document is one piece).

    Raises ConfigurationError for another name.
    """

    def __init__(self, name: str) -> None:
        if name not in PATTERNS:
            raise ConfigurationError(f"pretokenizer: {name!r} is unknown; one of {', '.join(PATTERNS)}")
        self.name = name
        self.pattern = PATTERNS[name]
        self._compiled = regex.compile(self.pattern)

    def pieces(self, text: str) -> list[str]:
        """The pre-tokens of `text` in order; their concatenation is `text`."""
        pieces: list[str] = self._compiled.findall(text)
        return pieces

    def pretokenize(self, text: str) -> Iterator[str]:
        """Iterate over the pre-tokens of `text` in order."""
        return iter(self.pieces(text))
