"""The kernels and their signatures, readable without numba, by what needs them together."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signature:
    """Where a kernel's code is and the types of its arguments; every kernel returns an int64.

    Types: `i64`, `u64`, `f64`, and pointers `u8*`, `u16*`, `i32*`, `u32*`, `f32*`, `i64*`, `u64*`, `f64*`. One that
    calls Python `holds_gil`, the global interpreter lock.
    """

    module: str
    """Full name of the module that holds the code."""
    arguments: tuple[str, ...]
    holds_gil: bool = False


def _tokenization(file: str, arguments: str, *, holds_gil: bool = False) -> Signature:
    return Signature(f"paribus.tokenization.kernels.{file}", tuple(arguments.split()), holds_gil)


def _ordering(arguments: str) -> Signature:
    return Signature("paribus.ordering.kernels", tuple(arguments.split()))


def _corpus(arguments: str) -> Signature:
    return Signature("paribus.corpus.kernels", tuple(arguments.split()))


SHINGLES: dict[str, Signature] = {
    "hash_shingles": _corpus("u8* i64* i64 u8* i64 u64* u64* i64*"),
    "count_shared": _corpus("u64* i64* i64 u64* u64 u64* i64* u64 i64* i32* i32* i32* i32* i32* i64 i32* i32*"),
}
"""What held-out text shares with training text."""

_MEMO = {"grow_table": _tokenization("memo", "u64* i64 u64* i64 i64")}
PRETOKENS = {"pretoken_starts": _tokenization("scan", "u8* i64 i64 u8* u64* i64 u64* u8* i64*")}
"""The pre-tokens of a text, by themselves."""
COUNTING = _MEMO | {
    "find_invalid_text": _tokenization("count", "i64*"),
    "count_texts": _tokenization("count", "i64*"),
    "add_counts": _tokenization("count", "i64* i64*"),
    "add_words": _tokenization("count", "i64* i64 i64* i64 i64*"),
    "list_words": _tokenization("count", "i64* u8* i64* i64*"),
}
"""How often each pre-token occurs."""
UNITS = {
    "observe_characters": _tokenization("train", "u8* i64 u8*"),
    "lay_out_bytes": _tokenization("train", "u8* i64* i64 i64* i64 i32* i64*"),
    "lay_out_characters": _tokenization("train", "u8* i64* i64 i64* i32* i64 i32* i64*"),
}
"""Pre-tokens as units, of which trainers make tokens."""
_MERGES = {
    "spell_tokens": _tokenization("train", "i32* i32* i64 i64* i32*"),
    "count_pairs": _tokenization("train", "i64*"),
    "move_pairs": _tokenization("train", "i64* i64 i64* i64 i64"),
    "locate_pairs": _tokenization("train", "i64*"),
}
BPE = _MERGES | {"train_bpe": _tokenization("train", "i64*")}
"""Merges by frequency, scaffolds too."""
WORDPIECE = _MERGES | {
    "link_pairs": _tokenization("wordpiece", "i64*"),
    "train_wordpiece": _tokenization("wordpiece", "i64*"),
}
"""Merges by likelihood."""
TABLES = {
    "fill_pairs": _tokenization("merge", "i32* i64 i32* u64* i64"),
    "grow_trie": _tokenization("match", "i32* i64* i32* i64 u64* i64 i32* i32* i32* i32*"),
    "number_nodes": _tokenization("match", "i32* i64* i64 i32* i32*"),
    "fill_edges": _tokenization("match", "i32* i32* i32* i64 u64* i64"),
}
"""What is made of a vocabulary before it encodes."""
ENCODING = (
    _MEMO
    | TABLES
    | {
        "find_texts": _tokenization("scan", "i64* i64 i64 i64* i64*", holds_gil=True),
        "encode_documents": _tokenization("encode", "i64* i64* i64 i64* i64* i32* i64*"),
    }
)
"""Text to ids."""

RANKING = {"score_candidates": _ordering("f32* f32* i64* i64 i64 i64 f64* f64*")}
"""Exact similarities of the neighbours that an index found."""
AGREEMENT = {"split_agreeing": _ordering("u16* u64* i64 i64 i64 i64* i64 i64* i64*")}
"""Which signatures of documents are alike."""
TRAVERSAL = {
    "survey_lists": _ordering("i32* i32* i64 i64 i64 i64*"),
    "compact_lists": _ordering("i32* i32* i64 i64 i32* i64 i32* i32* u64*"),
    "part_edges": _ordering("i32* i32* i64 i64 u64 i64 i64 i64 i64* i32*"),
    "place_edges": _ordering("i32* i64* i64 i64 i64 i64 i64 i64* u64* i64*"),
    "count_edges": _ordering("i32* i64 i64 i64* u64* u64* u32*"),
    "sort_landings": _ordering("u32* i64 i64* i64 u64 u32*"),
    "walk": _ordering("i32* i32* i64 i64 i64 i64 u64* i64* u64* u32* i64* i32* u64*"),
}
"""The path of In-Context Pretraining through lists of neighbours."""
SPANS = {"sum_spans": _ordering("u16* u32* i64 i64* i64 i64* i64* i64 i64*")}
"""Bytes and tokens of stretches of documents."""

KERNELS = SHINGLES | PRETOKENS | COUNTING | UNITS | BPE | WORDPIECE | ENCODING | RANKING | AGREEMENT | TRAVERSAL | SPANS
