"""The sequence in which contexts are read in each epoch of training."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from paribus.config.groups.ordering import PackingConfig
from paribus.ordering import SAMPLED_BYTES
from paribus.ordering.arrays import CONTEXTS, STRETCHES, boundaries, seed_sequence, spread
from paribus.ordering.ordered_text import MeasuredContexts
from paribus.ordering.packing import Integers, ranges

CONTEXTS_A_STRETCH = 8
BYTES_A_TOKEN = 4
SAMPLED = 4096
WINDOWS = 32
FEWEST, MOST = 64, 4096
"""Bounds of the least number of stretches that are read side by side, which is a 32nd of all: even a small part of an
epoch is then many whole windows, and neighbours are further apart than a batch is large. It does not depend on global
batches, so these change no sequence."""
ROUNDS = 10
MIN_HALF_BITS = 2
Words = npt.NDArray[np.uint64]


class ContextShuffle(ABC):
    """A permutation of `count` contexts for every epoch, any place of which can be computed alone."""

    draws = 1
    """Epochs that one permutation is made of, each of which reads the text once."""

    def __init__(self, count: int) -> None:
        self.count = count

    @abstractmethod
    def at(self, places: Integers, epoch: int) -> Integers:
        """Contexts that are read at `places` of an epoch, (n,) int64."""

    @abstractmethod
    def places_of(self, contexts: Integers, epoch: int) -> Integers:
        """Places of an epoch at which `contexts` are read, (n,) int64."""


class Sequential(ContextShuffle):
    """Contexts by their number, in every epoch."""

    def at(self, places: Integers, epoch: int) -> Integers:
        return places

    def places_of(self, contexts: Integers, epoch: int) -> Integers:
        return contexts


class ShuffledContexts(ContextShuffle):
    """Contexts in a random sequence, which depends on how many there are (In-Context Pretraining, arXiv 2310.10638).

    Arms with equally many contexts, such as pairs or orders under one tokenizer, read those of one number at one time.
    """

    def __init__(self, count: int, seed: int) -> None:
        super().__init__(count)
        self._seed = seed

    def at(self, places: Integers, epoch: int) -> Integers:
        return permute(places, self.count, seed=self._seed, epoch=epoch)

    def places_of(self, contexts: Integers, epoch: int) -> Integers:
        return unpermute(contexts, self.count, seed=self._seed, epoch=epoch)


class AlongText:
    """Contexts in the sequence in which they begin in a text."""

    def __init__(self, places: Integers) -> None:
        """`places` (contexts,) are the bytes before each context, in any order."""
        self.places = places
        ascending = bool((places[1:] >= places[:-1]).all())
        self._contexts = None if ascending else np.argsort(places, kind="stable")
        self._sorted = places if self._contexts is None else places[self._contexts]

    def before(self, edges: Integers) -> Integers:
        """Number of contexts that begin before each of the bytes `edges` of the text, same shape."""
        return np.searchsorted(self._sorted, edges)

    def contexts(self, places: Integers) -> Integers:
        """The contexts at places of the sequence, same shape."""
        return places if self._contexts is None else self._contexts[places]


class Stretches:
    """The stretches of one epoch, numbered along the text, in a random sequence.

    The end of the first one is random too: a short text is one window, so otherwise every epoch would begin with the
    same contexts.
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
        """Number of stretches before each window, and all of them, (windows + 1,); windows are about equally large."""
        self._first = along.before(np.arange(self.count + 1, dtype=np.int64) * stretch_bytes - self._shift)
        self._first[-1] = len(along.places)
        self._sequence = permute(np.arange(self.count, dtype=np.int64), self.count, seed=seed, epoch=epoch)
        sizes = np.diff(self._first)[self._sequence]
        self.window_bounds: Integers = boundaries(np.add.reduceat(sizes, self.windows[:-1]))
        """Contexts that are read before each window, and all of them, (windows + 1,)."""

    def of(self, places: Integers) -> Integers:
        """The stretch of each of the bytes `places` of the text, same shape.

        Empty documents behind all text belong to the last one.
        """
        return np.minimum((places + self._shift) // self._bytes, self.count - 1)

    def windows_of(self, contexts: Integers) -> Integers:
        """The window in which each context is read, same shape."""
        seed, epoch = self._key
        ranks = unpermute(self.of(self._along.places[contexts]), self.count, seed=seed, epoch=epoch)
        return np.searchsorted(self.windows, ranks, side="right") - 1

    def side_by_side(self, window: int) -> Integers:
        """The contexts of a window, int64, by how far they begin from the begin of their stretch.

        Of equal ones, in the sequence of the stretches.
        """
        stretches = self._sequence[self.windows[window] : self.windows[window + 1]]
        first, last = self._first[stretches], self._first[stretches + 1]
        contexts = self._along.contexts(ranges(first, last))
        sizes = last - first
        offsets = self._along.places[contexts] - np.repeat(stretches * self._bytes, sizes)
        return contexts[np.lexsort((np.repeat(np.arange(len(stretches)), sizes), offsets))]


class ShuffledText(ContextShuffle):
    """Contexts by where they begin in the ordered text, whose stretches of equal bytes are in a random sequence.

    A window of stretches is read side by side, the contexts that begin nearest to the begin of their stretch first. So
    all tokenizers and packings read the same text in about the same sequence, which drifts apart within a window by as
    much as their contexts differ, while contexts that follow each other in the order are about as many contexts apart
    as a window has stretches.
    """

    def __init__(self, places: Integers, text_bytes: int, stretch_bytes: int, seed: int) -> None:
        """`places` (contexts,) are the bytes before each context in the ordered text of `text_bytes`, in any order."""
        super().__init__(len(places))
        self.stretch_bytes, self._text_bytes, self._seed = stretch_bytes, text_bytes, seed
        self._along = AlongText(places)
        self._epoch: tuple[int, Stretches] | None = None
        self._window: tuple[int, int, Integers] | None = None

    def at(self, places: Integers, epoch: int) -> Integers:
        bounds = self.stretches(epoch).window_bounds
        contexts = np.empty(places.shape, dtype=np.int64)
        for window, chosen in _grouped(np.searchsorted(bounds, places, side="right") - 1):
            contexts[chosen] = self._contexts(epoch, window)[places[chosen] - bounds[window]]
        return contexts

    def places_of(self, contexts: Integers, epoch: int) -> Integers:
        stretches = self.stretches(epoch)
        positions = np.empty(contexts.shape, dtype=np.int64)
        for window, chosen in _grouped(stretches.windows_of(contexts)):
            sequence = self._contexts(epoch, window)
            along = np.argsort(sequence)
            places = along[np.searchsorted(sequence, contexts[chosen], sorter=along)]
            positions[chosen] = stretches.window_bounds[window] + places
        return positions

    def stretches(self, epoch: int) -> Stretches:
        """Stretches of an epoch; those of the last call are cached, since training goes through epochs in turn."""
        if self._epoch is None or self._epoch[0] != epoch:
            stretches = Stretches(self._along, self._text_bytes, self.stretch_bytes, self._seed, epoch)
            self._epoch = epoch, stretches
        return self._epoch[1]

    def _contexts(self, epoch: int, window: int) -> Integers:
        """Contexts of a window in the sequence in which they are read; those of the last call are cached."""
        if self._window is None or self._window[:2] != (epoch, window):
            self._window = epoch, window, self.stretches(epoch).side_by_side(window)
        return self._window[2]


class Redrawn(ContextShuffle):
    """Pairs whose tokens BPE-dropout drew several times; the draws are read in turn, each in a sequence of its own.

    Draw d of pair i of n is context d · n + i. An epoch of this traversal is one over all draws.
    """

    def __init__(self, within: ContextShuffle, draws: int) -> None:
        super().__init__(draws * within.count)
        self.draws, self._within = draws, within

    def at(self, places: Integers, epoch: int) -> Integers:
        draws, inside = np.divmod(places, self._within.count)
        contexts = np.empty(places.shape, dtype=np.int64)
        for draw, chosen in _grouped(draws):
            contexts[chosen] = self._within.at(inside[chosen], self.draws * epoch + draw) + draw * self._within.count
        return contexts

    def places_of(self, contexts: Integers, epoch: int) -> Integers:
        draws, inside = np.divmod(contexts, self._within.count)
        positions = np.empty(contexts.shape, dtype=np.int64)
        for draw, chosen in _grouped(draws):
            place = self._within.places_of(inside[chosen], self.draws * epoch + draw)
            positions[chosen] = place + draw * self._within.count
        return positions


def _grouped(numbers: Integers) -> list[tuple[int, Integers]]:
    """(number, its indices) for each distinct number, ascending."""
    order = np.argsort(numbers, kind="stable")
    distinct, first = np.unique(numbers[order], return_index=True)
    return list(zip(distinct.tolist(), np.split(order, first[1:]), strict=True)) if len(distinct) else []


def traverse(
    packing: PackingConfig, measured: MeasuredContexts, seed: int, *, context_bytes: int | None = None, draws: int = 1
) -> ContextShuffle:
    """The sequence that `packing.shuffle` names.

    `context_bytes` is the size of a context where that, and not its tokens, is the same for all tokenizers. `draws` is
    how often the tokens of pairs were drawn.
    """
    count = measured.count // draws
    traversal: ContextShuffle
    match packing.shuffle:
        case "none":
            traversal = Sequential(count)
        case "contexts":
            traversal = ShuffledContexts(count, seed)
        case "text":
            size = context_bytes or BYTES_A_TOKEN * measured.context_length
            stretch = packing.stretch_bytes or CONTEXTS_A_STRETCH * size
            traversal = ShuffledText(measured.places, measured.ordered_bytes, stretch, seed)
    return Redrawn(traversal, draws) if draws > 1 else traversal


def straddling(traversal: ContextShuffle, measured: MeasuredContexts) -> float | None:
    """Share of a sample of contexts with text of several stretches of the first epoch; None without stretches."""
    if not isinstance(traversal, ShuffledText):
        return None
    sample = spread(measured.count, SAMPLED)
    first, after = measured.places[sample], measured.ends[sample]
    stretches = traversal.stretches(0)
    return float(np.mean(stretches.of(first) != stretches.of(np.maximum(first, after - 1))))


def first_steps(traversal: ContextShuffle, measured: MeasuredContexts, global_batch: int, steps: int) -> Integers:
    """The 0-based step that first predicts each sampled byte of the corpus, int64; -1 where none of `steps` does."""
    contexts, number = np.unique(measured.sampled[:, 1], return_inverse=True)
    first = np.full(min(SAMPLED_BYTES, measured.corpus_bytes), steps, dtype=np.int64)
    np.minimum.at(first, measured.sampled[:, 0], traversal.places_of(contexts, 0)[number] // global_batch)
    return np.where(first < steps, first, -1)


# Contexts are shuffled so that related documents share a context but adjacent contexts are unrelated (In-Context
# Pretraining, arXiv 2310.10638). The place of one context is computed alone, so a batch is a pure function of its step
# and no permutation is kept in memory.
def permute(indices: npt.ArrayLike, n: int, *, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """Images of `indices` under a pseudo-random permutation of range(n) keyed by (seed, epoch), int64, same shape.

    A Feistel network over the next even power of two (Luby and Rackoff, 1988) with cycle walking (Black and Rogaway,
    2002): values outside range(n) are permuted again until they fall inside.

    Raises ValueError for an index outside range(n).
    """
    keys = _keys(seed, epoch)
    return _cycle_walk(indices, n, lambda values, half_bits: _feistel(values, keys, half_bits))


def unpermute(images: npt.ArrayLike, n: int, *, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """The indices whose images under `permute` are `images`, int64, same shape.

    Raises ValueError for an image outside range(n).
    """
    keys = _keys(seed, epoch)[::-1]

    def inverse(values: Words, half_bits: int) -> Words:
        return _swap_halves(_feistel(_swap_halves(values, half_bits), keys, half_bits), half_bits)

    return _cycle_walk(images, n, inverse)


def _keys(seed: int, epoch: int) -> Words:
    return seed_sequence(CONTEXTS, seed, epoch).generate_state(ROUNDS, np.uint64).astype(np.uint64)


def _cycle_walk(indices: npt.ArrayLike, n: int, permutation: Callable[[Words, int], Words]) -> npt.NDArray[np.int64]:
    """Apply `permutation`, of range(4 ** half_bits), until all values are in range(n)."""
    values = np.array(indices, dtype=np.int64)
    if values.size and (values.min() < 0 or values.max() >= n):
        raise ValueError(f"indices must be in range({n}), not from {values.min()} to {values.max()}")
    half_bits = max(MIN_HALF_BITS, (max(n - 1, 1).bit_length() + 1) // 2)
    walked = permutation(values.reshape(-1).astype(np.uint64), half_bits)
    outside = np.flatnonzero(walked >= n)
    while len(outside):
        walked[outside] = permutation(walked[outside], half_bits)
        outside = outside[walked[outside] >= n]
    return walked.astype(np.int64).reshape(values.shape)


def _feistel(values: Words, keys: Iterable[np.uint64], half_bits: int) -> Words:
    """A permutation of range(4 ** half_bits); with the keys reversed and the halves swapped, its inverse."""
    bits, mask = np.uint64(half_bits), np.uint64((1 << half_bits) - 1)
    left, right = values >> bits, values & mask
    for key in keys:
        left, right = right, left ^ (_mix(right ^ key) & mask)
    return (left << bits) | right


def _swap_halves(values: Words, half_bits: int) -> Words:
    """Exchange the two halves of the bits."""
    bits, mask = np.uint64(half_bits), np.uint64((1 << half_bits) - 1)
    return ((values & mask) << bits) | (values >> bits)


def _mix(values: Words) -> Words:
    """The finalizer of splitmix64 (Steele, Lea and Flood, 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
