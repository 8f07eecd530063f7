"""Who is measured, under which name, with which vocabulary."""

from dataclasses import dataclass, field
from typing import Any

REFERENCE = "paribus merge_rank"
RIVAL = "gigatoken"
"""The fastest known encoder, which ratios are taken against."""
DROPOUT = 0.1


@dataclass(frozen=True, slots=True)
class Contestant:
    """`function` of `encoders` or `trainers`, with `options`.

    `ids` says what its ids must do: `equal` those of the reference, `decode` to the text, or nothing (`own`
    vocabulary). `slow` ones encode only the first documents.
    """

    name: str
    function: str
    options: dict[str, Any] = field(default_factory=dict)
    vocabulary: str = "bpe"
    ids: str = "equal"
    slow: bool = False


def _paribus(encoder: str, vocabulary: str = "bpe", ids: str = "decode", **options: Any) -> Contestant:
    name = " ".join(["paribus", encoder, *map(str, options.values())])
    name += ", Scaffold-BPE" if vocabulary == "scaffold_bpe" else ""
    return Contestant(name, "paribus", {"vocabulary": vocabulary, "encoder": encoder, **options}, vocabulary, ids)


ENCODERS = (
    _paribus("merge_rank", ids="equal"),
    _paribus("longest_first"),
    _paribus("merge_rank", "scaffold_bpe"),
    _paribus("longest_first", "scaffold_bpe"),
    _paribus("left_to_right"),
    _paribus("fewest"),
    _paribus("viterbi", "unigram"),
    _paribus("dropout", dropout=DROPOUT),
    Contestant("gigatoken", "gigatoken"),
    Contestant("gigatoken, one buffer", "gigatoken", {"buffer": True}),
    Contestant("fastokens", "fastokens"),
    Contestant("tiktoken", "tiktoken", slow=True),
    Contestant("tokenizers", "tokenizers", slow=True),
    Contestant(f"tokenizers, dropout {DROPOUT}", "tokenizers", {"dropout": DROPOUT}, ids="decode", slow=True),
    Contestant("sentencepiece bpe", "sentencepiece", {"model": "bpe"}, "sentencepiece.bpe", "own", slow=True),
    Contestant(
        "sentencepiece unigram", "sentencepiece", {"model": "unigram"}, "sentencepiece.unigram", "own", slow=True
    ),
)
STRING_ENCODERS = tuple(c for c in ENCODERS if c.name != "gigatoken, one buffer" and c.vocabulary == "bpe")

LEARNERS = (
    Contestant("paribus BPE", "paribus", {"algorithm": "bpe"}),
    Contestant("paribus Scaffold-BPE", "paribus", {"algorithm": "scaffold_bpe"}),
    Contestant("gigabpe", "gigabpe"),
    Contestant("gigatoken", "gigatoken"),
    Contestant("rustbpe", "rustbpe", slow=True),
    Contestant("bpeasy", "bpeasy", slow=True),
    Contestant("tokenizers", "tokenizers", slow=True),
    Contestant("sentencepiece bpe", "sentencepiece", slow=True),
)
CHECKS = {
    "paribus BPE": Contestant("tokenizers, alphabet in byte order", "tokenizers_in_byte_order"),
    "gigabpe": Contestant("tokenizers, lines as documents", "tokenizers", {"lines": True}),
}
"""Not measured: what must learn the merges of those that differ from `tokenizers` in ties or documents."""
