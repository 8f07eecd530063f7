"""Longest-token-first encoding: the longest token anywhere in the pre-token, then the next longest in what is left.

Lian et al., *LBPE*, Algorithm 1: for each length from the longest token down, from left to right, a span that is in
the vocabulary and touches no marked unit is marked. Membership is by string; no merge path is needed. Length is in
units. With Scaffold-BPE (Table VIII) it runs over the normal tokens, or over all and demolishes scaffolds afterwards.

Here each position offers its longest token to a heap; an offer that meets a marked unit is made again with the
longest token that still fits. That visits spans in the order of Algorithm 1 without trying those outside V.
"""

import heapq
from collections.abc import Sequence

from paribus.tokenization.encoders.trie import Trie
from paribus.tokenization.vocabulary import Vocabulary


class LongestFirstEncoder:
    """Encodes over the normal tokens, or with `expanded` over all tokens, through `children` (dense ids by rank)."""

    def __init__(self, vocabulary: Vocabulary, children: Sequence[tuple[int, ...]], *, expanded: bool) -> None:
        self._children = children
        self._tokens = {
            string: entry.rank
            for entry, string in zip(vocabulary, vocabulary.strings, strict=True)
            if string is not None and (expanded or not entry.scaffold)
        }
        self._trie = Trie(self._tokens.items())

    def encode(self, units: str) -> list[int]:
        """Dense ids of one pre-token given as a string of units."""
        whole = self._tokens.get(units)
        if whole is not None:
            return list(self._children[whole])
        children = self._children
        return [child for rank in self._place(units) for child in children[rank]]

    def _place(self, units: str) -> list[int]:
        size, length, shorter = len(units), self._trie.length, self._trie.shorter
        offers = [self._trie.longest(units, start) for start in range(size)]
        heap = [(size - length[rank]) * size + start for start, rank in enumerate(offers)]
        heapq.heapify(heap)
        marked = bytearray(size)
        chosen: list[tuple[int, int]] = []
        while heap:
            start = heapq.heappop(heap) % size
            if marked[start]:
                continue
            rank = offers[start]
            end = start + length[rank]
            obstacle = marked.find(1, start, end)
            if obstacle < 0:
                marked[start:end] = b"\1" * (end - start)
                chosen.append((start, rank))
                continue
            while length[rank] > obstacle - start:
                rank = shorter[rank]
            offers[start] = rank
            heapq.heappush(heap, (size - length[rank]) * size + start)
        return [rank for _, rank in sorted(chosen)]
