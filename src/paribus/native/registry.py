"""The kernels and their signatures, readable without numba, by what needs them together."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signature:
    """Module of a kernel's code and types of its arguments; every kernel returns an int64.

    Types: `i64`, `u64`, `f64`, and pointers `u8*`, `u16*`, `i32*`, `u32*`, `f32*`, `i64*`, `u64*`, `f64*`. One that
    calls Python `holds_gil`, the global interpreter lock.
    """

    module: str
    """Full name of the module that holds the code."""
    arguments: tuple[str, ...]
    holds_gil: bool = False


def _kernel(module: str, arguments: str, *, holds_gil: bool = False) -> Signature:
    return Signature(f"paribus.{module}", tuple(arguments.split()), holds_gil)


SHINGLES: dict[str, Signature] = {
    "hash_shingles": _kernel("corpus.kernels", "u8* i64* i64 u8* i64 u64* u64* i64*"),
    "count_shared": _kernel(
        "corpus.kernels", "u64* i64* i64 u64* u64 u64* i64* u64 i64* i32* i32* i32* i32* i32* i64 i32* i32*"
    ),
}
"""Kernels that find what held-out text shares with training text."""

_MEMO = {"grow_table": _kernel("tokenization.kernels.memo", "u64* i64 u64* i64 i64")}
PRETOKENS = {"pretoken_starts": _kernel("tokenization.kernels.scan", "u8* i64 i64 u8* u64* i64 u64* u8* i64*")}
"""The pre-tokens of a text, by themselves."""
COUNTING = _MEMO | {
    "count_texts": _kernel("tokenization.kernels.count", "i64*"),
    "add_counts": _kernel("tokenization.kernels.count", "i64* i64*"),
    "add_words": _kernel("tokenization.kernels.count", "i64* i64 i64* i64 i64*"),
    "list_words": _kernel("tokenization.kernels.count", "i64* u8* i64* i64*"),
}
"""How often each pre-token occurs."""
UNITS = {
    "observe_characters": _kernel("tokenization.kernels.train", "u8* i64 u8*"),
    "lay_out_bytes": _kernel("tokenization.kernels.train", "u8* i64* i64 i64* i64 i32* i64*"),
    "lay_out_characters": _kernel("tokenization.kernels.train", "u8* i64* i64 i64* i32* i64 i32* i64*"),
}
"""Pre-tokens as units, of which trainers make tokens."""
_MERGES = {
    "spell_tokens": _kernel("tokenization.kernels.train", "i32* i32* i64 i64* i32*"),
    "count_pairs": _kernel("tokenization.kernels.train", "i64*"),
    "move_pairs": _kernel("tokenization.kernels.train", "i64* i64 i64* i64 i64"),
    "locate_pairs": _kernel("tokenization.kernels.train", "i64*"),
}
BPE = _MERGES | {"train_bpe": _kernel("tokenization.kernels.train", "i64*")}
"""Merges by frequency, scaffolds too."""
WORDPIECE = _MERGES | {
    "link_pairs": _kernel("tokenization.kernels.wordpiece", "i64*"),
    "train_wordpiece": _kernel("tokenization.kernels.wordpiece", "i64*"),
}
"""Merges by likelihood."""
TABLES = {
    "fill_pairs": _kernel("tokenization.kernels.merge", "i32* i64 i32* u64* i64"),
    "grow_trie": _kernel("tokenization.kernels.match", "i32* i64* i32* i64 u64* i64 i32* i32* i32* i32*"),
    "number_nodes": _kernel("tokenization.kernels.match", "i32* i64* i64 i32* i32*"),
    "fill_edges": _kernel("tokenization.kernels.match", "i32* i32* i32* i64 u64* i64"),
}
"""Kernels that make the tables with which a vocabulary encodes."""
ENCODING = (
    _MEMO
    | TABLES
    | {
        "find_texts": _kernel("tokenization.kernels.scan", "i64* i64 i64 i64* i64*", holds_gil=True),
        "encode_documents": _kernel("tokenization.kernels.encode", "i64* i64* i64 i64* i64* i32* i64*"),
    }
)
"""Text to ids."""

RANKING = {"score_candidates": _kernel("ordering.kernels", "f32* f32* i64* i64 i64 i64 f64* f64*")}
"""Exact similarities of the neighbours that an index found."""
AGREEMENT = {"split_agreeing": _kernel("ordering.kernels", "u16* u64* i64 i64 i64 i64* i64 i64* i64*")}
"""Which signatures of documents are alike."""
TRAVERSAL = {
    "survey_lists": _kernel("ordering.kernels", "i32* i32* i64 i64 i64 i64*"),
    "compact_lists": _kernel("ordering.kernels", "i32* i32* i64 i64 i32* i64 i32* i32* u64*"),
    "part_edges": _kernel("ordering.kernels", "i32* i32* i64 i64 u64 i64 i64 i64 i64* i32*"),
    "place_edges": _kernel("ordering.kernels", "i32* i64* i64 i64 i64 i64 i64 i64* u64* i64*"),
    "count_edges": _kernel("ordering.kernels", "i32* i64 i64 i64* u64* u64* u32*"),
    "sort_landings": _kernel("ordering.kernels", "u32* i64 i64* i64 u64 u32*"),
    "walk": _kernel("ordering.kernels", "i32* i32* i64 i64 i64 i64 u64* i64* u64* u32* i64* i32* u64*"),
}
"""The path of In-Context Pretraining through lists of neighbours."""
SPANS = {"sum_spans": _kernel("ordering.kernels", "u16* u32* i64 i64* i64 i64* i64* i64 i64*")}
"""Bytes and tokens of stretches of documents."""

KERNELS = SHINGLES | PRETOKENS | COUNTING | UNITS | BPE | WORDPIECE | ENCODING | RANKING | AGREEMENT | TRAVERSAL | SPANS
