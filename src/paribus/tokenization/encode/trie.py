"""The trie that encoders walk, laid out for the processor's caches as `kernels.trie` describes it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paribus.errors import ConfigurationError
from paribus.native.loader import address, kernel
from paribus.tokenization.kernels import layout

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
_MANY_CHILDREN = 16
"""Children of a node that are rather looked up in a hash table than compared one after another."""


@dataclass(frozen=True, slots=True)
class TokenTrie:
    """Nodes, edges of the wide ones, the nodes of one and two units, and the longest token within each (ranks,)."""

    nodes: npt.NDArray[np.uint64]
    edges: npt.NDArray[np.uint64]
    heads: Int32s
    shorter: Int32s


@dataclass(frozen=True, slots=True)
class _Paths:
    """Nodes as they were made: the parent, the unit that leads there, the token that ends there (-1)."""

    parents: Int32s
    units: Int32s
    tokens: Int32s


def token_trie(units: Int32s, offsets: Int64s, ranks: Int32s, size: int) -> TokenTrie:
    """The trie of the tokens `ranks` of a vocabulary of `size`; units of token i: units[offsets[i] : offsets[i + 1]].

    ConfigurationError where there is more than a trie holds.
    """
    _check_size(units, size)
    shorter = np.full(size, -1, dtype=np.int32)
    paths = _grow(units, offsets, ranks, shorter)
    count = len(paths.parents)
    keys = paths.parents.astype(np.int64) << layout.UNIT_BITS | paths.units
    order: Int32s = np.argsort(keys, kind="stable")[1:].astype(np.int32)
    children = np.bincount(paths.parents[1:], minlength=count)
    begins = np.concatenate([[0], np.cumsum(children)])
    numbers, stack = np.empty((2, count), dtype=np.int32)
    kernel("number_nodes")(address(order), address(begins), count, address(numbers), address(stack))
    wide = children > _MANY_CHILDREN
    return TokenTrie(
        nodes=_nodes(paths, order, begins, numbers, wide),
        edges=_edges(paths, numbers, np.flatnonzero(wide[paths.parents] & (np.arange(count) > 0))),
        heads=_heads(paths, numbers),
        shorter=shorter,
    )


def _check_size(units: Int32s, size: int) -> None:
    most = (1 << layout.NODE_BITS) - 2
    if len(units) >= most or units.max(initial=0) >= 1 << layout.UNIT_BITS or size >= (1 << layout.RANK_BITS) - 1:
        raise ConfigurationError(
            f"tokenizer.vocab_size: {size} tokens with {len(units)} units in all are more than a trie holds "
            f"({(1 << layout.RANK_BITS) - 2} and {most - 1}), or there are units beyond rank "
            f"{(1 << layout.UNIT_BITS) - 1}"
        )


def _grow(units: Int32s, offsets: Int64s, ranks: Int32s, shorter: Int32s) -> _Paths:
    most = len(units) + 1
    paths = _Paths(np.zeros(most, np.int32), np.full(most, -1, np.int32), np.full(most, -1, np.int32))
    edges = np.zeros(1 << table_bits(most), dtype=np.uint64)
    tokens = address(units), address(offsets), address(ranks), len(ranks)
    made = address(paths.parents), address(paths.units), address(paths.tokens), address(shorter)
    count = kernel("grow_trie")(*tokens, address(edges), 64 - table_bits(most), *made)
    return _Paths(paths.parents[:count], paths.units[:count], paths.tokens[:count])


def _nodes(
    paths: _Paths, order: Int32s, begins: Int64s, numbers: Int32s, wide: npt.NDArray[np.bool_]
) -> npt.NDArray[np.uint64]:
    """One word a node, by number; the children of node i, as it was made, are order[begins[i] : begins[i + 1]].

    `wide` says of each node, as it was made, whether its children are looked up in the hash table.
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


def _edges(paths: _Paths, numbers: Int32s, listed: Int64s) -> npt.NDArray[np.uint64]:
    """Hash table of the edges to these nodes."""
    edges = np.zeros(1 << table_bits(len(listed)), dtype=np.uint64)
    froms, units, ends = numbers[paths.parents[listed]], paths.units[listed], numbers[listed]
    shift = 64 - table_bits(len(listed))
    kernel("fill_edges")(address(froms), address(units), address(ends), len(listed), address(edges), shift)
    return edges


def _heads(paths: _Paths, numbers: Int32s) -> Int32s:
    """Nodes after two of the first units, by the first and the second, and after them those after one; -1: none."""
    ranks = layout.DIRECT_RANKS
    heads = np.full(ranks * (ranks + 1), -1, dtype=np.int32)
    direct = (paths.units >= 0) & (paths.units < ranks)
    ones = np.flatnonzero(direct & (paths.parents == 0))
    heads[ranks * ranks + paths.units[ones]] = numbers[ones]
    after_one = np.zeros(len(numbers), dtype=bool)
    after_one[ones] = True
    twos = np.flatnonzero(direct & after_one[paths.parents])
    heads[ranks * paths.units[paths.parents[twos]] + paths.units[twos]] = numbers[twos]
    return heads


def table_bits(entries: int) -> int:
    """Binary logarithm of the slots of a hash table at most half full."""
    return max(4, (2 * entries - 1).bit_length())
