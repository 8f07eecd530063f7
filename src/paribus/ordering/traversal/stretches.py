"""Stretches of equal bytes of an ordered text, the contexts that begin in each, and a random sequence of them."""

import numpy as np

from paribus.ordering.packing.documents import Integers
from paribus.ordering.packing.pieces import boundaries, ranges
from paribus.ordering.seeding import STRETCHES, seed_sequence
from paribus.ordering.traversal.shuffle import permute, unpermute

WINDOWS = 32
FEWEST, MOST = 64, 4096
"""Stretches that are read side by side, at least: a 32nd of all within these bounds, so that even a small part of an
epoch is many whole windows, and neighbours are further apart than a batch is large. Global batches have no say in it,
so that they change no sequence."""


class AlongText:
    """Contexts in the sequence in which they begin in a text."""

    def __init__(self, places: Integers) -> None:
        """`places` (contexts,) are the bytes before each context, in any order."""
        self.places = places
        ascending = bool((places[1:] >= places[:-1]).all())
        self._contexts = None if ascending else np.argsort(places, kind="stable")
        self._sorted = places if self._contexts is None else places[self._contexts]

    def before(self, edges: Integers) -> Integers:
        """Contexts that begin before each of some bytes of the text, same shape."""
        return np.searchsorted(self._sorted, edges)

    def contexts(self, places: Integers) -> Integers:
        """The contexts at places of the sequence, same shape."""
        return places if self._contexts is None else self._contexts[places]


class Stretches:
    """The stretches of one epoch, numbered along the text, in a random sequence.

    Where the first one ends is random too: else what is read early in one epoch would be so in all, as a short text is
    one window.
    """

    def __init__(self, along: AlongText, text_bytes: int, stretch_bytes: int, seed: int, epoch: int) -> None:
        self._along, self._bytes, self._key = along, stretch_bytes, (seed, epoch)
        generator = np.random.Generator(np.random.PCG64(seed_sequence(STRETCHES, seed, epoch)))
        self._shift = int(generator.integers(stretch_bytes))
        """Bytes by which the first stretch is shorter than the others."""
        self.count = max(1, -(-(text_bytes + self._shift) // stretch_bytes))
        fewest = max(FEWEST, min(MOST, self.count // WINDOWS))
        windows = np.arange(max(1, self.count // fewest) + 1, dtype=np.int64)
        self.windows: Integers = windows * self.count // windows[-1]
        """Ranks of the stretches with which windows begin, and all of them, (windows + 1,); all are about as large."""
        self._first = along.before(np.arange(self.count + 1, dtype=np.int64) * stretch_bytes - self._shift)
        self._first[-1] = len(along.places)
        self._sequence = permute(np.arange(self.count, dtype=np.int64), self.count, seed=seed, epoch=epoch)
        sizes = np.diff(self._first)[self._sequence]
        self.window_bounds: Integers = boundaries(np.add.reduceat(sizes, self.windows[:-1]))
        """Contexts that are read before each window, and all of them, (windows + 1,)."""

    def of(self, places: Integers) -> Integers:
        """The stretch in which each of some bytes of the text lies, same shape.

        What begins behind all text, empty documents, belongs to the last one.
        """
        return np.minimum((places + self._shift) // self._bytes, self.count - 1)

    def windows_of(self, contexts: Integers) -> Integers:
        """The window in which each context is read, same shape."""
        seed, epoch = self._key
        ranks = unpermute(self.of(self._along.places[contexts]), self.count, seed=seed, epoch=epoch)
        return np.searchsorted(self.windows, ranks, side="right") - 1

    def side_by_side(self, window: int) -> Integers:
        """The contexts of a window, int64: those that begin nearest to the begin of their stretch first.

        Those equally near to it are in the sequence of the stretches.
        """
        stretches = self._sequence[self.windows[window] : self.windows[window + 1]]
        first, last = self._first[stretches], self._first[stretches + 1]
        contexts = self._along.contexts(ranges(first, last))
        sizes = last - first
        into = self._along.places[contexts] - np.repeat(stretches * self._bytes, sizes)
        return contexts[np.lexsort((np.repeat(np.arange(len(stretches)), sizes), into))]
