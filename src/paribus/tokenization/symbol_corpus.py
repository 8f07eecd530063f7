"""The training corpus as linked symbols, and the replacement of a pair wherever it occurs.

All distinct pre-tokens lie in one flat sequence with a separator around each. A replacement visits only the
occurrences of its pair, left to right, and reports by how much each neighbouring pair's count changed.
"""

from collections import defaultdict
from collections.abc import Mapping

_SEPARATOR, _MERGED_AWAY = -1, -2
_SHIFT = 32
_MASK = (1 << _SHIFT) - 1


def pair_key(left: int, right: int) -> int:
    """One integer that orders pairs by left, then right."""
    return left << _SHIFT | right


def split_key(key: int) -> tuple[int, int]:
    """The pair of a `pair_key`."""
    return key >> _SHIFT, key & _MASK


class SymbolCorpus:
    """Distinct pre-tokens as unit strings with their counts, and `ranks` of the units."""

    def __init__(self, words: Mapping[str, int], ranks: Mapping[str, int]) -> None:
        self._symbols: list[int] = [_SEPARATOR]
        self._weights: list[int] = [0]
        for word, count in words.items():
            self._symbols.extend(map(ranks.__getitem__, word))
            self._symbols.append(_SEPARATOR)
            self._weights.extend([count] * (len(word) + 1))
        size = len(self._symbols)
        self._previous = list(range(-1, size - 1))
        self._following = list(range(1, size + 1))
        self._occurrences: defaultdict[int, list[int]] = defaultdict(list)

    def unit_counts(self, units: int) -> list[int]:
        """Occurrences of each unit, shape (units,)."""
        counts = [0] * units
        for symbol, weight in zip(self._symbols, self._weights, strict=True):
            if symbol >= 0:
                counts[symbol] += weight
        return counts

    def pair_counts(self) -> dict[int, int]:
        """Adjacent positions of each pair of units, overlaps included; notes where they are."""
        counts: defaultdict[int, int] = defaultdict(int)
        left = _SEPARATOR
        for position, right in enumerate(self._symbols):
            if left >= 0 and right >= 0:
                key = left << _SHIFT | right
                counts[key] += self._weights[position]
                self._occurrences[key].append(position - 1)
            left = right
        return counts

    def replace(self, left: int, right: int, token: int) -> tuple[int, dict[int, int]]:
        """Replace (left, right) by `token` everywhere, left to right.

        Returns the number of replacements and the change of the count of each pair, the replaced one included.
        """
        key = left << _SHIFT | right
        symbols, previous, following, weights = self._symbols, self._previous, self._following, self._weights
        occurrences = self._occurrences
        changes: defaultdict[int, int] = defaultdict(int)
        total = 0
        positions = occurrences.pop(key, [])
        if left == right:
            positions.sort()
        for position in positions:
            second = following[position]
            if symbols[position] != left or symbols[second] != right:
                continue
            weight = weights[position]
            before, after = previous[position], following[second]
            symbols[position], symbols[second] = token, _MERGED_AWAY
            following[position], previous[after] = after, position
            total += weight
            if (neighbour := symbols[before]) >= 0:
                changes[neighbour << _SHIFT | left] -= weight
                made = neighbour << _SHIFT | token
                changes[made] += weight
                occurrences[made].append(before)
            if (neighbour := symbols[after]) >= 0:
                changes[right << _SHIFT | neighbour] -= weight
                made = token << _SHIFT | neighbour
                changes[made] += weight
                occurrences[made].append(position)
        changes[key] -= total
        return total, changes
