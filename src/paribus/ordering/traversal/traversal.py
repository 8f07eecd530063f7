"""The sequence in which contexts are read in each epoch of training."""

from abc import ABC, abstractmethod

import numpy as np

from paribus.config.groups.packing import PackingConfig, PairPacking
from paribus.ordering.contexts.measure import MeasuredContexts
from paribus.ordering.contexts.sample import SAMPLED as SAMPLED_BYTES
from paribus.ordering.packing.documents import Integers
from paribus.ordering.traversal.shuffle import permute, unpermute
from paribus.ordering.traversal.stretches import AlongText, Stretches

CONTEXTS_A_STRETCH = 8
BYTES_A_TOKEN = 4
SAMPLED = 4096


class Traversal(ABC):
    """A permutation of `count` contexts for every epoch, found for any of its places alone."""

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


class Sequential(Traversal):
    """Contexts as they are numbered, epoch after epoch."""

    def at(self, places: Integers, epoch: int) -> Integers:
        """See `Traversal.at`."""
        return places

    def places_of(self, contexts: Integers, epoch: int) -> Integers:
        """See `Traversal.places_of`."""
        return contexts


class ShuffledContexts(Traversal):
    """Contexts in a random sequence, which depends on how many there are (In-Context Pretraining, arXiv 2310.10638).

    Arms whose contexts are as many, such as pairs or orders under one tokenizer, read those of one number at one time.
    """

    def __init__(self, count: int, seed: int) -> None:
        super().__init__(count)
        self._seed = seed

    def at(self, places: Integers, epoch: int) -> Integers:
        """See `Traversal.at`."""
        return permute(places, self.count, seed=self._seed, epoch=epoch)

    def places_of(self, contexts: Integers, epoch: int) -> Integers:
        """See `Traversal.places_of`."""
        return unpermute(contexts, self.count, seed=self._seed, epoch=epoch)


class ShuffledText(Traversal):
    """Contexts by where they begin in the ordered text, whose stretches of equal bytes are in a random sequence.

    Stretches are read a window of them at a time, side by side: of these the contexts that begin nearest to the begin
    of their stretch first. So all tokenizers and packings read the same text in about the same sequence, which drifts
    apart within a window by as much as their contexts differ, while contexts that follow each other in the order are
    about as many contexts apart as a window has stretches.
    """

    def __init__(self, places: Integers, text_bytes: int, stretch_bytes: int, seed: int) -> None:
        """`places` (contexts,) are the bytes before each context in the ordered text of `text_bytes`, in any order."""
        super().__init__(len(places))
        self.stretch_bytes, self._text_bytes, self._seed = stretch_bytes, text_bytes, seed
        self._along = AlongText(places)
        self._epoch: tuple[int, Stretches] | None = None
        self._window: tuple[int, int, Integers] | None = None

    def at(self, places: Integers, epoch: int) -> Integers:
        """See `Traversal.at`."""
        bounds = self.stretches(epoch).window_bounds
        found = np.empty(places.shape, dtype=np.int64)
        for window, chosen in _grouped(np.searchsorted(bounds, places, side="right") - 1):
            found[chosen] = self._contexts(epoch, window)[places[chosen] - bounds[window]]
        return found

    def places_of(self, contexts: Integers, epoch: int) -> Integers:
        """See `Traversal.places_of`."""
        stretches = self.stretches(epoch)
        found = np.empty(contexts.shape, dtype=np.int64)
        for window, chosen in _grouped(stretches.windows_of(contexts)):
            sequence = self._contexts(epoch, window)
            along = np.argsort(sequence)
            places = along[np.searchsorted(sequence, contexts[chosen], sorter=along)]
            found[chosen] = stretches.window_bounds[window] + places
        return found

    def stretches(self, epoch: int) -> Stretches:
        """Those of an epoch; the last are kept, since training goes through epochs in turn."""
        kept = self._epoch
        if kept is None or kept[0] != epoch:
            kept = (epoch, Stretches(self._along, self._text_bytes, self.stretch_bytes, self._seed, epoch))
            self._epoch = kept
        return kept[1]

    def _contexts(self, epoch: int, window: int) -> Integers:
        """Contexts of a window in the sequence in which they are read; the last are kept, as of epochs."""
        kept = self._window
        if kept is None or kept[:2] != (epoch, window):
            kept = (epoch, window, self.stretches(epoch).side_by_side(window))
            self._window = kept
        return kept[2]


class Redrawn(Traversal):
    """Pairs whose tokens BPE-dropout drew several times: epochs that read the draws in turn, each in its own sequence.

    Draw d of pair i of n is context d · n + i. An epoch of this traversal is one over all draws.
    """

    def __init__(self, within: Traversal, draws: int) -> None:
        """`within` is the sequence of the pairs of one draw."""
        super().__init__(draws * within.count)
        self.draws, self._within = draws, within

    def at(self, places: Integers, epoch: int) -> Integers:
        """See `Traversal.at`."""
        draws, inside = np.divmod(places, self._within.count)
        found = np.empty(places.shape, dtype=np.int64)
        for draw, chosen in _grouped(draws):
            found[chosen] = self._within.at(inside[chosen], self.draws * epoch + draw) + draw * self._within.count
        return found

    def places_of(self, contexts: Integers, epoch: int) -> Integers:
        """See `Traversal.places_of`."""
        draws, inside = np.divmod(contexts, self._within.count)
        found = np.empty(contexts.shape, dtype=np.int64)
        for draw, chosen in _grouped(draws):
            place = self._within.places_of(inside[chosen], self.draws * epoch + draw)
            found[chosen] = place + draw * self._within.count
        return found


def _grouped(numbers: Integers) -> list[tuple[int, Integers]]:
    """The distinct numbers, ascending, each with the indices at which it stands."""
    order = np.argsort(numbers, kind="stable")
    found, first = np.unique(numbers[order], return_index=True)
    return list(zip(found.tolist(), np.split(order, first[1:]), strict=True)) if len(found) else []


def traverse(
    packing: PackingConfig,
    measured: MeasuredContexts,
    seed: int,
    *,
    context_bytes: int | None = None,
    draws: int = 1,
) -> Traversal:
    """The sequence that `packing.shuffle` names.

    `context_bytes` are those of a context where they, and not its tokens, are the same for all tokenizers. `draws` is
    how often the tokens of pairs were drawn.
    """
    if draws > 1:
        return Redrawn(_traverse(packing, measured, measured.count // draws, seed, context_bytes), draws)
    return _traverse(packing, measured, measured.count, seed, context_bytes)


def _traverse(
    packing: PackingConfig, measured: MeasuredContexts, count: int, seed: int, context_bytes: int | None
) -> Traversal:
    match packing.shuffle:
        case "none":
            return Sequential(count)
        case "contexts":
            return ShuffledContexts(count, seed)
        case "text":
            size = context_bytes or BYTES_A_TOKEN * measured.context_length
            stretch = _stretch_bytes(packing) or CONTEXTS_A_STRETCH * size
            return ShuffledText(measured.places, measured.ordered_bytes, stretch, seed)


def _stretch_bytes(packing: PackingConfig) -> int | None:
    return None if isinstance(packing, PairPacking) else packing.stretch_bytes


def straddling(traversal: Traversal, measured: MeasuredContexts) -> float | None:
    """Share of contexts with text of more than one stretch of the first epoch, of a sample; None without stretches."""
    if not isinstance(traversal, ShuffledText):
        return None
    taken = min(measured.count, SAMPLED)
    sample = np.arange(taken, dtype=np.int64) * measured.count // taken
    first, after = measured.places[sample], measured.ends[sample]
    stretches = traversal.stretches(0)
    return float(np.mean(stretches.of(first) != stretches.of(np.maximum(first, after - 1))))


def first_steps(traversal: Traversal, measured: MeasuredContexts, global_batch: int, steps: int) -> Integers:
    """The 0-based step that first predicts each sampled byte of the corpus, int64; -1 where none of `steps` does."""
    contexts, number = np.unique(measured.sampled[:, 1], return_inverse=True)
    found = np.full(min(SAMPLED_BYTES, measured.corpus_bytes), steps, dtype=np.int64)
    np.minimum.at(found, measured.sampled[:, 0], traversal.places_of(contexts, 0)[number] // global_batch)
    return np.where(found < steps, found, -1)
