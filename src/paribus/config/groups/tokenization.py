"""Groups `pretokenizer`, `tokenizer` and `encoder`."""

from typing import Literal

from paribus.config.declare import group, identity
from paribus.config.groups.types import Positive, Strings
from paribus.config.units import Size

VOCAB_DOC = "Tokens of the final vocabulary, units and special tokens included (papers: 32K, 64K, 128K)."
UNIT_DOC = "Smallest piece: UTF-8 bytes, or Unicode characters of the corpus."
UNKNOWN_DOC = "With character units, a character outside the alphabet becomes its UTF-8 bytes or one unknown token."
SPECIAL_DOC = "Special tokens; the first one ends a document. They are never matched inside text."
SAMPLE_DOC = "Train on the first documents up to this many bytes of text; null uses all of the training split."


@group
class PretokenizerConfig:
    """Pieces of text that tokens do not cross."""

    kind: Literal["gpt2", "gpt2_digits", "gpt4", "whitespace", "none"] = identity(
        "gpt2_digits", doc="Pattern; gpt2_digits is the papers': GPT-2's with every digit a piece of its own."
    )


@group
class BPETokenizer:
    """Byte-pair encoding: merge the most frequent pair until the vocabulary is full."""

    kind: Literal["bpe"] = identity("bpe", doc="Byte-pair encoding.")
    vocab_size: Positive = identity(32_000, doc=VOCAB_DOC)
    unit: Literal["byte", "character"] = identity("byte", doc=UNIT_DOC)
    unknown: Literal["byte_fallback", "token"] = identity("byte_fallback", doc=UNKNOWN_DOC)
    special_tokens: Strings = identity(("<|endoftext|>",), doc=SPECIAL_DOC)
    sample: Size | None = identity(None, doc=SAMPLE_DOC)


@group
class ScaffoldBPETokenizer:
    """Scaffold-BPE (arXiv 2404.17808): rare intermediate tokens leave the vocabulary and serve as scaffolds only."""

    kind: Literal["scaffold_bpe"] = identity("scaffold_bpe", doc="Scaffold-BPE, Algorithm 1.")
    vocab_size: Positive = identity(32_000, doc=VOCAB_DOC)
    unit: Literal["byte", "character"] = identity("byte", doc=UNIT_DOC)
    unknown: Literal["byte_fallback", "token"] = identity("byte_fallback", doc=UNKNOWN_DOC)
    special_tokens: Strings = identity(("<|endoftext|>",), doc=SPECIAL_DOC)
    sample: Size | None = identity(None, doc=SAMPLE_DOC)
    demolish: Literal["parents", "shortest"] = identity(
        "parents", doc="Scaffolds become their parents (equation 6), or the fewest normal tokens."
    )


@group
class BytesTokenizer:
    """One token a byte (ByT5), special tokens after."""

    kind: Literal["bytes"] = identity("bytes", doc="No training: 256 byte tokens and the special tokens.")
    special_tokens: Strings = identity(("<|endoftext|>",), doc=SPECIAL_DOC)


TokenizerConfig = BPETokenizer | ScaffoldBPETokenizer | BytesTokenizer


@group
class MergeRankEncoder:
    """Apply the earliest-learned applicable merge, leftmost first (standard BPE encoding)."""

    kind: Literal["merge_rank"] = identity("merge_rank", doc="Standard BPE encoding.")


@group
class LongestFirstEncoder:
    """LBPE, Algorithm 1: the longest token first, anywhere in the pre-token, leftmost at equal length."""

    kind: Literal["longest_first"] = identity("longest_first", doc="Longest token first (LBPE).")
    candidates: Literal["normal", "expanded"] = identity(
        "normal", doc="With Scaffold-BPE: match normal tokens only, or scaffolds too and demolish them afterwards."
    )


EncoderConfig = MergeRankEncoder | LongestFirstEncoder
