"""Pre-tokenizers without training: patterns, the words of BERT, and the text that a SentencePiece model sees."""

import base64
import json
import re
from collections.abc import Sequence
from functools import cache, cached_property
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from paribus.errors import ConfigurationError, DataError
from paribus.native.loader import address, kernel
from paribus.tokenization.kernels import layout
from paribus.tokenization.vocabulary import utf8

if TYPE_CHECKING:
    import tokenizers
    from sentencepiece import SentencePieceProcessor


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
"""Patterns of the compiled scanners, as regular expressions of the `regex` module."""
PRETOKENIZERS = (*PATTERNS, "spans", "predictive_entropy", "sentencepiece", "bert")
"""Pre-tokenizers; `sentencepiece` and `bert` are imported ones, and change a text before they cut it."""
BERT, BERT_FORMAT = "bert", 1
TOO_LONG = "\ufdd0"
"""Stands for a word that is too long: a noncharacter, which no vocabulary has, so the word is unknown."""
SENTENCEPIECE, SENTENCEPIECE_FORMAT = "sentencepiece", 2
SPACE = "\u2581"
"""The character that SentencePiece writes for a space."""
CODES = {"letters": 1, "numbers": 2, "spaces": 4}
"""Codes of the classes in `kernels.classify`."""
_WITH_MARKS = ("punctuation",)
"""Patterns in which a mark, such as an accent or a vowel sign of Devanagari, counts as a letter."""


# Cut text into pre-tokens, the pieces that tokens do not cross.
#
# Every pattern matches every character, so the pieces in order are the text; only `stripped` drops what is whitespace.
# Special tokens are never looked for: where their text occurs in a document it is cut and encoded as ordinary text.
class PatternPretokenizer:
    """One of `PATTERNS` by name: `gpt2`, `gpt2_digits` (a digit a piece), `gpt4` (cl100k), `whitespace`
    (every whitespace character begins a piece), `stripped` (the words between whitespace, which is lost), `none`
    (the document is one piece) or `punctuation` (every character that is no letter, mark or number begins a piece).

    Raises ConfigurationError for another name.
    """

    def __init__(self, name: str) -> None:
        if name not in PATTERNS:
            raise ConfigurationError(f"pretokenizer: {name!r} is unknown; one of {', '.join(PATTERNS)}")
        self.name = name
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
        text_and_pattern = address(source), size, self._code, address(class_table(self.name))
        scratch_memory = address(masks), stride, address(starts), address(scratch)
        count = kernel("pretoken_starts")(*text_and_pattern, *scratch_memory, address(positions))
        positions[count] = size
        bounds = positions[: count + 1].tolist()
        pieces = [encoded[begin:end].decode("utf-8") for begin, end in pairwise(bounds)]
        if self.name != "stripped":
            return pieces
        table = class_table()
        return [piece for piece in pieces if table[ord(piece[0])] != CODES["spaces"]]


class Pretokenizer(Protocol):
    """A pre-tokenizer that was made from data or came with a tokenizer, which carries its state."""

    def pieces(self, text: str) -> list[str]:
        """The pre-tokens of `text` in order; joined, they are `text`, or what an imported one makes of it."""

    def to_state(self) -> dict[str, Any]:
        """State as JSON values, among them its `kind`."""


def check_state(state: Any, kind: str, format: int) -> None:
    """DataError where a state is not one of a pre-tokenizer of that kind and format."""
    if not isinstance(state, dict) or (state.get("kind"), state.get("format")) != (kind, format):
        raise DataError(f"the state is not one of a pre-tokenizer of kind {kind!r}, format {format}")


# The words that BERT's WordPiece sees: cleaned, perhaps in lower case and without accents, punctuation apart.
#
# Both steps are done by the library `tokenizers` from the part of `tokenizer.json` that describes them, so words are
# the same for every text.
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
        words = backend.pre_tokenizer.pre_tokenize_str(normalized)
        return [word if len(word) <= self.longest else TOO_LONG for word, _ in words]

    def to_state(self) -> dict[str, Any]:
        """State as JSON values."""
        steps = {"normalizer": self.normalizer, "pre_tokenizer": self.pre_tokenizer}
        return {"kind": BERT, "format": BERT_FORMAT, "longest": self.longest, **steps}

    @classmethod
    def from_state(cls, state: Any) -> "BertWords":
        """Read what `to_state` gave; DataError for another state."""
        check_state(state, BERT, BERT_FORMAT)
        if not isinstance(state.get("longest"), int):
            raise DataError(f"the state of pre-tokenizer {BERT!r} has no longest word")
        words = cls(state.get("normalizer"), state.get("pre_tokenizer"), state["longest"])
        _ = words._backend
        return words

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
            raise DataError(f"the state of pre-tokenizer {BERT!r} is malformed: {error}") from error

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_state, (self.to_state(),)


# The text that a SentencePiece model sees: normalized by its own rules, with a space before it if these say so.
#
# Before a BPE model merges, the pieces that a user defined are cut out, from the left, the longest first.
#
# The library normalizes by the rules that are kept of the model, so every text becomes what the model would see. Its
# `▁` becomes the space that it stands for; a `▁` of the text itself therefore becomes a space too.
class SentencePieceText:
    """Normalizes a text and makes one piece of it, or several where it has `fixed` pieces.

    `rules` is a model without most of its pieces; `prefix` is True if a space is put before a text, which decoding
    removes; `fixed` are pieces that are never merged.
    """

    def __init__(self, rules: bytes, *, prefix: bool, fixed: Sequence[str] = ()) -> None:
        self.rules, self.prefix, self.fixed = rules, prefix, tuple(fixed)

    def pieces(self, text: str) -> list[str]:
        """The normalized text, cut around fixed pieces; no piece where the text becomes empty."""
        normalized = self._processor.normalize(text).replace(SPACE, " ")
        if not self.fixed:
            return [normalized] if normalized else []
        return [piece for piece in self._fixed_pattern.split(normalized) if piece]

    def to_state(self) -> dict[str, Any]:
        """State as JSON values."""
        named = {"kind": SENTENCEPIECE, "format": SENTENCEPIECE_FORMAT, "prefix": self.prefix}
        return named | {"rules": base64.b64encode(self.rules).decode("ascii"), "fixed": list(self.fixed)}

    @classmethod
    def from_state(cls, state: Any) -> "SentencePieceText":
        """Read what `to_state` gave; DataError for another state."""
        check_state(state, SENTENCEPIECE, SENTENCEPIECE_FORMAT)
        try:
            rules = base64.b64decode(state["rules"], validate=True)
            fixed = [str(piece) for piece in state["fixed"]]
            pretokenizer = cls(rules, prefix=bool(state["prefix"]), fixed=fixed)
            _ = pretokenizer._processor
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise DataError(f"the state of pre-tokenizer {SENTENCEPIECE!r} is malformed: {error}") from error
        return pretokenizer

    @cached_property
    def _fixed_pattern(self) -> re.Pattern[str]:
        longest_first = sorted((piece.replace(SPACE, " ") for piece in self.fixed), key=len, reverse=True)
        return re.compile(f"({'|'.join(map(re.escape, longest_first))})")

    @cached_property
    def _processor(self) -> "SentencePieceProcessor":
        from sentencepiece import SentencePieceProcessor

        return SentencePieceProcessor(model_proto=self.rules)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_state, (self.to_state(),)


# Letters, marks, numbers and spaces of one version of Unicode, so that a text has the same pre-tokens on every machine.
#
# `unicode_classes.json` holds the ranges of `\p{L}`, `\p{N}`, `\p{M}` and `\s`; the version of Unicode is in it.
def class_table(pattern: str = "none") -> npt.NDArray[np.uint8]:
    """Class code of each codepoint for `pattern`, shape (0x110000,); 0 for everything else."""
    return _table(pattern in _WITH_MARKS)


@cache
def _table(marks: bool) -> npt.NDArray[np.uint8]:
    described = json.loads((files("paribus.tokenization") / "unicode_classes.json").read_text(encoding="utf-8"))
    table = np.zeros(0x110000, dtype=np.uint8)
    for name, code in CODES.items():
        for first, last in described[name]:
            table[first : last + 1] = code
    for first, last in described["marks"] if marks else ():
        table[first : last + 1] = CODES["letters"]
    table.flags.writeable = False
    return table
