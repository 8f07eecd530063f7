"""Counts of integer keys, exact and sorted, whatever the number of keys that are counted."""

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


class Tally:
    """Counts keys that come in arrays. Memory follows the distinct keys."""

    def __init__(self) -> None:
        self._parts: list[tuple[Integers, Integers]] = [_nothing()]
        self._pending = 0

    def add(self, keys: Integers) -> None:
        """Count every element of `keys`."""
        distinct, counts = np.unique(keys, return_counts=True)
        self._parts.append((distinct, counts.astype(np.int64)))
        self._pending += len(distinct)
        if self._pending > len(self._parts[0][0]):
            self.counts()

    def counts(self) -> tuple[Integers, Integers]:
        """The distinct keys, ascending, and how often each was counted."""
        if self._pending:
            self._parts = [_summed(self._parts)]
            self._pending = 0
        return self._parts[0]


def _nothing() -> tuple[Integers, Integers]:
    return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)


def _summed(parts: list[tuple[Integers, Integers]]) -> tuple[Integers, Integers]:
    keys = np.concatenate([part[0] for part in parts])
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    counts = np.concatenate([part[1] for part in parts])[order]
    return keys[starts], np.add.reduceat(counts, starts)


def entropies(keys: Integers, counts: Integers, groups: int, bits: int) -> npt.NDArray[np.float64]:
    """Shannon entropy in bits of the counts of each group, shape (groups,); the group of a key is `key >> bits`.

    Every group must have a key.
    """
    group = keys >> bits
    total = np.bincount(group, weights=counts, minlength=groups)
    spread = np.bincount(group, weights=counts * np.log2(counts), minlength=groups)
    return np.log2(total) - spread / total
