"""Which contexts a step trains on: a pure function of (order, tokens, packing, seed, global batch, step).

There is no sampler state. Resuming, another micro-batch or another number of processes gives the same global batches.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from paribus.ordering.packing import CONTEXTS_AT_ONCE, Contexts
from paribus.ordering.pairs import PairContexts
from paribus.ordering.shuffle import Traversal

Integers = npt.NDArray[np.int64]
STEPS_AT_ONCE = 64


@dataclass(frozen=True)
class Batches:
    """Batches of `global_batch` contexts out of the endless repetition of packed contexts.

    Context number g = step · global_batch + row is the one that `traversal` has at place g mod count of its pass
    g div count. A pass is an epoch, or as many as there are draws of BPE-dropout.
    """

    contexts: Contexts
    global_batch: int
    traversal: Traversal

    @property
    def contexts_an_epoch(self) -> int:
        """Contexts in one reading of the text."""
        return self.contexts.count // self.traversal.draws

    def indices(self, step: int) -> Integers:
        """Indices of the contexts of 0-based `step`, int64 (global_batch,)."""
        return self.numbered(np.arange(step * self.global_batch, (step + 1) * self.global_batch, dtype=np.int64))

    def each(self, start: int, stop: int) -> Iterator[tuple[int, Integers]]:
        """Steps `start` to `stop`, each with its indices; a permutation costs as much for many steps as for one."""
        for first in range(start, stop, STEPS_AT_ONCE):
            last = min(first + STEPS_AT_ONCE, stop)
            numbers = np.arange(first * self.global_batch, last * self.global_batch, dtype=np.int64)
            yield from zip(range(first, last), self.numbered(numbers).reshape(-1, self.global_batch), strict=True)

    def numbered(self, numbers: Integers) -> Integers:
        """Indices of the contexts with the global context numbers `numbers`, same shape."""
        epochs, places = np.divmod(numbers, self.contexts.count)
        indices = np.empty_like(places)
        for epoch in np.unique(epochs):
            inside = epochs == epoch
            indices[inside] = self.traversal.at(places[inside], int(epoch))
        return indices

    def rows(self, step: int, start: int = 0, stop: int | None = None) -> tuple[Integers, Integers]:
        """Rows `start` to `stop` of the batch of `step`: inputs and targets as `Contexts.rows` gives them."""
        return self.contexts.rows(self.indices(step)[start:stop])

    def times_read(self, contexts: Integers, steps: int) -> Integers:
        """How often each of `contexts` (n,) is read in the first `steps` steps, int64 (n,)."""
        epochs, rest = divmod(steps * self.global_batch, self.contexts.count)
        return epochs + (self.traversal.places_of(contexts, epochs) < rest)

    def steps_of(self, indices: npt.ArrayLike, steps: int) -> list[tuple[int, int]]:
        """(0-based step, context) of every time one of the contexts `indices` is read in the first `steps` steps.

        Sorted; a context that a step reads twice is listed twice. With `Contexts.contexts_of` this says when a
        document was seen.
        """
        contexts, count = np.unique(np.asarray(indices, dtype=np.int64)), self.contexts.count
        last = steps * self.global_batch
        found: list[tuple[int, int]] = []
        for epoch in range(-(-last // count)):
            numbers = epoch * count + self.traversal.places_of(contexts, epoch)
            read = numbers < last
            found += zip((numbers[read] // self.global_batch).tolist(), contexts[read].tolist(), strict=True)
        return sorted(found)


def context_text_bytes(contexts: Contexts, token_byte_lengths: Integers) -> Integers:
    """Bytes of source text that the targets of each context cover, int64 (count,)."""
    return _of_each(contexts, lambda indices: contexts.source_bytes(token_byte_lengths, indices))


def context_targets(contexts: Contexts) -> Integers:
    """Tokens that each context predicts, int64 (count,); a constant without memory where all predict as many."""
    if contexts.full:
        return np.broadcast_to(np.int64(contexts.context_length), (contexts.count,))
    return _of_each(contexts, contexts.target_tokens)


class Amounts(Protocol):
    """A number for each context, looked up or counted when it is asked for."""

    def __getitem__(self, indices: Integers, /) -> Integers:
        """Those of some contexts, int64 (n,)."""

    def sum(self) -> int:
        """That of all contexts."""


@dataclass(frozen=True)
class SourceTokens:
    """Tokens of the source of each pair, which nobody asks for often enough to keep them for all draws."""

    contexts: PairContexts

    def __getitem__(self, indices: Integers, /) -> Integers:
        """See `Amounts`."""
        return self.contexts.source_tokens(indices)

    def sum(self) -> int:
        """See `Amounts`."""
        return sum(int(self[indices].sum()) for indices in _in_parts(self.contexts.count))


def _of_each(contexts: Contexts, measure: Callable[[Integers], Integers]) -> Integers:
    measured = np.empty(contexts.count, dtype=np.int64)
    for indices in _in_parts(contexts.count):
        measured[indices] = measure(indices)
    return measured


def _in_parts(count: int) -> Iterator[Integers]:
    for start in range(0, count, CONTEXTS_AT_ONCE):
        yield np.arange(start, min(start + CONTEXTS_AT_ONCE, count), dtype=np.int64)
