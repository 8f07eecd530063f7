"""Merge-rank encoding: apply the earliest-learned applicable merge, leftmost first at equal rank.

The standard encoding of BPE. Over an expanded vocabulary (Scaffold-BPE, Algorithm 2) all merges apply at their own
ranks and scaffold tokens are demolished once, at the end. O(n log n) in the units of a pre-token.
"""

import heapq
from collections.abc import Sequence
from itertools import pairwise

from paribus.tokenization.symbol_corpus import pair_key
from paribus.tokenization.vocabulary import Vocabulary

_SHIFT = 32
_MASK = (1 << _SHIFT) - 1
_MERGED_AWAY = -1


class MergeRankEncoder:
    """Encodes by the vocabulary's merge list; `children` are the dense ids each rank becomes."""

    def __init__(self, vocabulary: Vocabulary, children: Sequence[tuple[int, ...]]) -> None:
        self._children = children
        self._unit_ranks = vocabulary.unit_ranks
        self._priorities = {pair_key(left, right): n for n, (left, right, _) in enumerate(vocabulary.merges)}
        self._results = [result for _, _, result in vocabulary.merges]

    def encode(self, units: str) -> list[int]:
        """Dense ids of one pre-token given as a string of units."""
        ranks = self._unit_ranks
        symbols = [ranks[unit] for unit in units]
        if len(symbols) > 1:
            self._merge(symbols)
        children = self._children
        return [child for symbol in symbols if symbol != _MERGED_AWAY for child in children[symbol]]

    def _merge(self, symbols: list[int]) -> None:
        size, priorities, results = len(symbols), self._priorities, self._results
        previous, following = list(range(-1, size - 1)), list(range(1, size + 1))
        heap = self._applicable(symbols)
        while heap:
            entry = heapq.heappop(heap)
            priority, position = entry >> _SHIFT, entry & _MASK
            second = following[position]
            if second >= size or priorities.get(symbols[position] << _SHIFT | symbols[second]) != priority:
                continue
            token = symbols[position] = results[priority]
            symbols[second] = _MERGED_AWAY
            before, after = previous[position], following[second]
            following[position] = after
            if after < size:
                previous[after] = position
                if (made := priorities.get(token << _SHIFT | symbols[after])) is not None:
                    heapq.heappush(heap, made << _SHIFT | position)
            if before >= 0 and (made := priorities.get(symbols[before] << _SHIFT | token)) is not None:
                heapq.heappush(heap, made << _SHIFT | before)

    def _applicable(self, symbols: list[int]) -> list[int]:
        heap = []
        for position, (left, right) in enumerate(pairwise(symbols)):
            priority = self._priorities.get(left << _SHIFT | right)
            if priority is not None:
                heap.append(priority << _SHIFT | position)
        heapq.heapify(heap)
        return heap
