"""Cut text into pre-tokens, the pieces that tokens do not cross.

Every pattern matches every character, so the pieces in order are the text; only `stripped` drops what is whitespace.
Special tokens are never looked for: where their text occurs in a document it is cut and encoded as ordinary text.
"""

from itertools import pairwise

import numpy as np

from paribus.errors import ConfigurationError
from paribus.native.loader import address, kernel
from paribus.tokenization.kernels import layout
from paribus.tokenization.pretokenize.unicode_classes import CODES, class_table
from paribus.tokenization.vocabulary.units import utf8

_CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"
PATTERNS: dict[str, str] = {
    "gpt2": _CONTRACTIONS + r"| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "gpt2_digits": _CONTRACTIONS + r"| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "gpt4": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "whitespace": r"\s\S*|\S+",
    "stripped": r"\S+",
    "none": r"(?s:.+)",
    "punctuation": r"[^\p{L}\p{M}\p{N}][\p{L}\p{M}\p{N}]*|[\p{L}\p{M}\p{N}]+",
}
"""What the compiled scanners match, as regular expressions of the `regex` module."""


class Pretokenizer:
    """One of `PATTERNS` by name: `gpt2`, `gpt2_digits` (a digit a piece), `gpt4` (cl100k), `whitespace`
    (every whitespace character begins a piece), `stripped` (the words between whitespace, which is lost) `none`
    (the document is one piece) or `punctuation` (every character that is no letter, mark or number begins a piece).

    Raises ConfigurationError for another name.
    """

    def __init__(self, name: str) -> None:
        if name not in PATTERNS:
            raise ConfigurationError(f"pretokenizer: {name!r} is unknown; one of {', '.join(PATTERNS)}")
        self.name = name
        self.pattern = PATTERNS[name]
        self._code = layout.PATTERNS.index(name)

    def pieces(self, text: str) -> list[str]:
        """The pre-tokens of `text` in order. DataError for text that has no UTF-8."""
        encoded = utf8(text)
        size = len(encoded)
        if size == 0:
            return []
        stride = (size >> 6) + 2
        source, scratch = np.frombuffer(encoded, dtype=np.uint8), np.empty(64, dtype=np.uint8)
        masks, starts = np.empty(6 * stride, dtype=np.uint64), np.zeros(stride, dtype=np.uint64)
        positions = np.empty(size + 1, dtype=np.int64)
        count = kernel("pretoken_starts")(
            address(source),
            size,
            self._code,
            address(class_table(self.name)),
            address(masks),
            stride,
            address(starts),
            address(scratch),
            address(positions),
        )
        positions[count] = size
        bounds = positions[: count + 1].tolist()
        pieces = [encoded[begin:end].decode("utf-8") for begin, end in pairwise(bounds)]
        if self.name != "stripped":
            return pieces
        table = class_table()
        return [piece for piece in pieces if table[ord(piece[0])] != CODES["spaces"]]
