"""The kernels and their signatures, readable without numba."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signature:
    """Where a kernel's code is and the types of its arguments; every kernel returns an int64.

    Types: `i64`, `f64`, and pointers `u8*`, `i32*`, `i64*`, `u64*`, `f64*`. One that is `locked` calls Python.
    """

    module: str
    arguments: tuple[str, ...]
    locked: bool = False


def _signature(module: str, arguments: str, *, locked: bool = False) -> Signature:
    return Signature(module, tuple(arguments.split()), locked)


KERNELS: dict[str, Signature] = {
    "pretoken_starts": _signature("scan", "u8* i64 i64 u8* u64* i64 u64* u8* i64*"),
    "find_texts": _signature("texts", "i64* i64 i64 i64* i64*", locked=True),
    "encode_documents": _signature("encode", "i64* i64* i64 i64* i64* i32* i64*"),
    "fill_pairs": _signature("pairs", "i32* i64 i32* u64* i64"),
    "grow_trie": _signature("trie", "i32* i64* i32* i64 u64* i64 i32* i32* i32* i32*"),
    "number_nodes": _signature("trie", "i32* i64* i64 i32* i32*"),
    "fill_edges": _signature("trie", "i32* i32* i32* i64 u64* i64"),
    "grow_table": _signature("memo", "u64* i64 u64* i64 i64"),
    "find_invalid_text": _signature("count", "i64*"),
    "count_texts": _signature("count", "i64*"),
    "add_counts": _signature("count", "i64* i64*"),
    "list_words": _signature("count", "i64* u8* i64* i64*"),
    "observe_characters": _signature("symbols", "u8* i64 u8*"),
    "lay_out_bytes": _signature("symbols", "u8* i64* i64 i64* i64 i32* i64*"),
    "lay_out_characters": _signature("symbols", "u8* i64* i64 i64* i32* i64 i32* i64*"),
    "spell_tokens": _signature("symbols", "i32* i32* i64 i64* i32*"),
    "count_pairs": _signature("pair_index", "i64*"),
    "move_pairs": _signature("pair_index", "i64* i64 i64* i64 i64"),
    "locate_pairs": _signature("pair_index", "i64*"),
    "train_bpe": _signature("train_bpe", "i64*"),
    "link_pairs": _signature("train_wordpiece", "i64*"),
    "train_wordpiece": _signature("train_wordpiece", "i64*"),
}
