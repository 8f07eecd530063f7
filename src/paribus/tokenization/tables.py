"""Tables of a tokenizer for encoding kernels: hash tables, a trie and replacements, behind one array of slots."""

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from paribus.errors import ConfigurationError, DataError
from paribus.native.loader import CACHE_LINE, address, kernel, table_zeros
from paribus.tokenization.kernels import layout
from paribus.tokenization.pretokenize import class_table
from paribus.tokenization.settings import Settings
from paribus.tokenization.vocabulary import (
    FIXED,
    SPECIAL,
    UNIT,
    UnitTable,
    Unknown,
    Vocabulary,
    replacements,
    unit_sequences,
    unit_table,
)

UNKNOWN_RULES: dict[Unknown, int] = dict(zip(get_args(Unknown), range(3), strict=True))
_SCORED_OR_WHOLE = {"unigram": "viterbi", "words": "whole"}
"""Natural encoders of the algorithms whose vocabularies have no merges."""
_MERGING = (layout.MERGE_RANK, layout.DROPOUT)
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
_MANY_CHILDREN = 16
"""A node with more children has them in a hash table; those of others are compared one after another."""


class EncodingTables:
    """The tables of one vocabulary with one encoder; kernels read them through `slots`."""

    def __init__(self, vocabulary: Vocabulary, settings: Settings) -> None:
        self.slots = np.zeros(layout.MODEL_SLOTS, dtype=np.int64)
        self._arrays: dict[int, npt.NDArray[Any]] = {}
        encoder = layout.ENCODERS.index(settings.encoder)
        self._set(layout.ENCODER, encoder)
        pattern = settings.pretokenizer if settings.pretokenizer in layout.PATTERNS else "none"
        self._set(layout.PATTERN, layout.PATTERNS.index(pattern))
        self._set(layout.CLASSES, class_table(pattern))
        units = unit_table(vocabulary)
        self._set_units(units, UNKNOWN_RULES[settings.unknown])
        offsets, ids = replacements(vocabulary, settings.demolish)
        if len(ids) != len(vocabulary):
            self._set(layout.CHILD_OFFSETS, offsets)
        if not np.array_equal(ids, np.arange(len(vocabulary))):
            self._set(layout.CHILD_IDS, ids)
        if encoder in _MERGING:
            self._set_pairs(vocabulary)
            if settings.pretokenizer == "sentencepiece":
                self._set(layout.TURNS, _turns(vocabulary))
        ranks = _trie_ranks(vocabulary, settings)
        if len(ranks):
            self._set_trie(vocabulary, units, ranks)
            self._set(layout.SCORES, vocabulary.columns.scores)
        self._set(layout.DROP_PROBABILITY, round(settings.dropout * 2**32))
        self._set(layout.SEED, settings.seed)
        self._set(layout.SENTENCEPIECE, int(settings.pretokenizer == "sentencepiece"))
        self._lay_out()

    def _set(self, slot: int, value: npt.NDArray[Any] | int) -> None:
        if isinstance(value, int):
            self.slots[slot] = value
        else:
            self._arrays[slot] = value

    def _lay_out(self) -> None:
        """Copy all arrays into one block of memory, the smallest first, each aligned to a cache line."""
        arrays = sorted(self._arrays.items(), key=lambda item: item[1].nbytes)
        sizes = [-(-array.nbytes // CACHE_LINE) * CACHE_LINE for _, array in arrays]
        self._memory = table_zeros((sum(sizes),), np.uint8)
        for (slot, array), end, size in zip(arrays, np.cumsum(sizes).tolist(), sizes, strict=True):
            place = self._memory[end - size : end - size + array.nbytes]
            place.view(array.dtype)[:] = array.ravel()
            self.slots[slot] = address(place)
        self._arrays.clear()

    def _set_units(self, units: UnitTable, rule: int) -> None:
        if units.bytes is not None:
            self._set(layout.BYTE_UNITS, units.bytes)
        if units.characters is not None:
            if rule == layout.BYTE_FALLBACK and (units.fallback < 0).any():
                byte = int(np.argmin(units.fallback))
                raise DataError(f"vocabulary: unknown=byte_fallback, but byte {byte} has no fallback entry")
            if rule == layout.UNKNOWN_TOKEN and units.unknown < 0:
                raise DataError("vocabulary: unknown=token, but there is no unknown token")
            self._set(layout.CHARACTER_UNITS, units.characters)
        self._set(layout.FALLBACK_UNITS, units.fallback)
        self._set(layout.UNKNOWN_RULE, rule)
        self._set(layout.UNKNOWN_UNIT, units.unknown)
        self._set(layout.CONTINUATION, units.continuation)

    def _set_pairs(self, vocabulary: Vocabulary) -> None:
        merges = np.ascontiguousarray(vocabulary.merge_ranks)
        if len(vocabulary) >= 1 << layout.RANK_BITS or len(merges) >= (1 << layout.PRIORITY_BITS) - 1:
            raise ConfigurationError(
                f"tokenizer.vocab_size: {len(vocabulary)} tokens and {len(merges)} merges are more than merging takes "
                f"({1 << layout.RANK_BITS} tokens, {1 << layout.PRIORITY_BITS} merges)"
            )
        direct = np.full(layout.DIRECT_RANKS**2, np.iinfo(np.int32).max, dtype=np.int32)
        bits = table_bits(len(merges))
        pairs = np.zeros(1 << bits, dtype=np.uint64)
        kernel("fill_pairs")(address(merges), len(merges), address(direct), address(pairs), 64 - bits)
        self._set(layout.DIRECT, direct)
        self._set(layout.PAIRS, pairs)
        self._set(layout.PAIRS_SHIFT, 64 - bits)
        self._set(layout.RESULTS, merges[:, 2])

    def _set_trie(self, vocabulary: Vocabulary, units: UnitTable, ranks: npt.NDArray[np.int64]) -> None:
        flat, offsets = unit_sequences(vocabulary, units, ranks)
        nodes, edges, heads, shorter = token_trie(flat, offsets, ranks.astype(np.int32), len(vocabulary))
        lengths = np.zeros(len(vocabulary), dtype=np.int32)
        lengths[ranks] = np.diff(offsets)
        self._set(layout.NODES, nodes)
        self._set(layout.EDGES, edges)
        self._set(layout.EDGES_SHIFT, 65 - len(edges).bit_length())
        self._set(layout.HEADS, heads)
        self._set(layout.LENGTHS, lengths)
        self._set(layout.SHORTER, shorter)


def _trie_ranks(vocabulary: Vocabulary, settings: Settings) -> npt.NDArray[np.int64]:
    """Ranks of the tokens that are matched in text; where all others are merged, those with the score `FIXED`."""
    columns = vocabulary.columns
    if settings.encoder in ("merge_rank", "dropout") and not settings.whole_pretokens:
        return np.flatnonzero(columns.scores == FIXED)
    expanded = settings.candidates == "expanded"
    return np.flatnonzero((columns.kinds != SPECIAL) & (expanded | (columns.ids >= 0)))


def _turns(vocabulary: Vocabulary) -> npt.NDArray[np.int32]:
    """Turn of each merge, int32: the number of scores better than its token's; merges of one score share a turn."""
    bits = vocabulary.columns.scores[vocabulary.merge_ranks[:, 2]].astype(np.float32).view(np.int32)
    # The library compares the bits of scores: -0.0, its trainer's score of the first piece, is below 0.0.
    return np.unique(-np.where(bits < 0, bits ^ 0x7FFFFFFF, bits), return_inverse=True)[1].astype(np.int32)


def check_servable(vocabulary: Vocabulary, settings: Settings) -> None:
    """ConfigurationError where the vocabulary cannot serve the encoder."""
    if settings.encoder in ("merge_rank", "dropout") and settings.algorithm in _SCORED_OR_WHOLE:
        raise ConfigurationError(
            f"encoder={settings.encoder} needs merges, and a vocabulary of {settings.algorithm} has none; "
            f"use {_SCORED_OR_WHOLE[settings.algorithm]}, longest_first, left_to_right or fewest"
        )
    if settings.encoder not in ("left_to_right", "whole") and not np.isin(vocabulary.columns.kinds, (UNIT,)).any():
        raise ConfigurationError(
            f"encoder={settings.encoder} needs every character as a token, and this vocabulary has whole words or "
            "WordPiece's pieces alone; use the encoder it came with (whole, left_to_right)"
        )
    if settings.encoder == "dropout" and settings.pretokenizer not in layout.PATTERNS:
        raise ConfigurationError(
            f"encoder=dropout needs a pre-tokenizer by pattern ({', '.join(layout.PATTERNS)}), not "
            f"{settings.pretokenizer}"
        )
    # The pieces of SentencePiece's BPE have scores too, which only say in what order it merges.
    if settings.encoder == "viterbi" and (settings.algorithm == "bpe" or not vocabulary.columns.scores.any()):
        raise ConfigurationError(
            f"encoder=viterbi needs the scores of a Unigram vocabulary, and {settings.algorithm} has none; "
            "encoder=fewest finds the fewest tokens of any vocabulary"
        )


@dataclass(frozen=True, slots=True)
class _Paths:
    """Trie nodes in order of creation: parent, unit that leads to the node, token that ends there (-1: none)."""

    parents: Int32s
    units: Int32s
    tokens: Int32s


def token_trie(units: Int32s, offsets: Int64s, ranks: Int32s, size: int) -> tuple[UInt64s, UInt64s, Int32s, Int32s]:
    """Trie of the tokens `ranks` of a vocabulary of `size`; the units of token i: units[offsets[i] : offsets[i + 1]].

    Returns the nodes, the edges of wide nodes, the nodes after one and two units, and for each token the longest proper
    prefix that is a token or -1, (size,). ConfigurationError for more than a trie holds.
    """
    most = (1 << layout.NODE_BITS) - 2
    if len(units) >= most or units.max(initial=0) >= 1 << layout.UNIT_BITS or size >= (1 << layout.RANK_BITS) - 1:
        raise ConfigurationError(
            f"tokenizer.vocab_size: {size} tokens with {len(units)} units in all are more than a trie holds "
            f"({(1 << layout.RANK_BITS) - 2} and {most - 1}), or there are units beyond rank "
            f"{(1 << layout.UNIT_BITS) - 1}"
        )
    shorter = np.full(size, -1, dtype=np.int32)
    paths = _grow_trie(units, offsets, ranks, shorter)
    count = len(paths.parents)
    keys = paths.parents.astype(np.int64) << layout.UNIT_BITS | paths.units
    order: Int32s = np.argsort(keys, kind="stable")[1:].astype(np.int32)
    children = np.bincount(paths.parents[1:], minlength=count)
    begins = np.concatenate([[0], np.cumsum(children)])
    numbers, stack = np.empty((2, count), dtype=np.int32)
    kernel("number_nodes")(address(order), address(begins), count, address(numbers), address(stack))
    wide = children > _MANY_CHILDREN
    edges = _edges(paths, numbers, np.flatnonzero(wide[paths.parents] & (np.arange(count) > 0)))
    return _nodes(paths, order, begins, numbers, wide), edges, _heads(paths, numbers), shorter


def _grow_trie(units: Int32s, offsets: Int64s, ranks: Int32s, shorter: Int32s) -> _Paths:
    most = len(units) + 1
    paths = _Paths(np.zeros(most, np.int32), np.full(most, -1, np.int32), np.full(most, -1, np.int32))
    edges = np.zeros(1 << table_bits(most), dtype=np.uint64)
    tokens = address(units), address(offsets), address(ranks), len(ranks)
    made = address(paths.parents), address(paths.units), address(paths.tokens), address(shorter)
    count = kernel("grow_trie")(*tokens, address(edges), 64 - table_bits(most), *made)
    return _Paths(paths.parents[:count], paths.units[:count], paths.tokens[:count])


def _nodes(paths: _Paths, order: Int32s, begins: Int64s, numbers: Int32s, wide: npt.NDArray[np.bool_]) -> UInt64s:
    """One word per node, by its number in `numbers`; in the arguments, node i is the i-th that was made.

    The children of node i are order[begins[i] : begins[i + 1]]; where `wide[i]`, they are in the hash table.
    """
    firsts = np.zeros(len(numbers), dtype=np.uint64)
    inner = np.diff(begins) > 0
    firsts[inner] = numbers[order[begins[:-1][inner]]]
    firsts[wide] = layout.WIDE
    lasts = np.zeros(len(numbers), dtype=np.uint64)
    lasts[order[begins[1:][inner] - 1]] = 1
    token_shift = np.uint64(layout.UNIT_BITS + layout.NODE_BITS)
    nodes = np.empty(len(numbers), dtype=np.uint64)
    nodes[numbers] = (
        np.maximum(paths.units, 0).astype(np.uint64)
        | firsts << np.uint64(layout.UNIT_BITS)
        | (paths.tokens + 1).astype(np.uint64) << token_shift
        | lasts << np.uint64(63)
    )
    return nodes


def _edges(paths: _Paths, numbers: Int32s, children: Int64s) -> UInt64s:
    """Hash table of the edges that lead to `children`, which are in order of creation."""
    edges = np.zeros(1 << table_bits(len(children)), dtype=np.uint64)
    froms, units, ends = numbers[paths.parents[children]], paths.units[children], numbers[children]
    edge_list = address(froms), address(units), address(ends), len(children)
    kernel("fill_edges")(*edge_list, address(edges), 64 - table_bits(len(children)))
    return edges


def _heads(paths: _Paths, numbers: Int32s) -> Int32s:
    """Nodes after two units below `DIRECT_RANKS`, by the first and the second; then those after one. -1: none."""
    ranks = layout.DIRECT_RANKS
    heads = np.full(ranks * (ranks + 1), -1, dtype=np.int32)
    direct = (paths.units >= 0) & (paths.units < ranks)
    after_one = np.flatnonzero(direct & (paths.parents == 0))
    heads[ranks * ranks + paths.units[after_one]] = numbers[after_one]
    is_after_one = np.zeros(len(numbers), dtype=bool)
    is_after_one[after_one] = True
    after_two = np.flatnonzero(direct & is_after_one[paths.parents])
    heads[ranks * paths.units[paths.parents[after_two]] + paths.units[after_two]] = numbers[after_two]
    return heads


def table_bits(entries: int) -> int:
    """Binary logarithm of the slots of a hash table at most half full."""
    return max(4, (2 * entries - 1).bit_length())
