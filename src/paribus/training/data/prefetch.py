"""Reads the batches of coming steps from the memory-mapped tokens while the current one is trained on."""

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from paribus.ordering.pairs import RaggedContexts
from paribus.training.data.batches import Batches, Integers

AHEAD = 2
COLUMNS = 8
"""Rows of different lengths are as long as a multiple of this: matrix units like it, and fewer shapes are compiled."""


@dataclass(frozen=True)
class Batch:
    """One process' share of a step's global batch."""

    step: int
    """0-based."""
    indices: Integers
    """Contexts of the whole global batch, int64 (global batch,)."""
    inputs: torch.Tensor
    """int64 (rows, L); of rows of different lengths -1 after their end; of pairs the sources (rows, S)."""
    targets: torch.Tensor
    """int64 (rows, L), -1 where nothing is predicted; of pairs (rows, T)."""
    predicted: int
    """Target tokens of the whole global batch."""
    ragged: bool = False

    def part(self, rows: slice) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and targets of some rows; of rows of different lengths without columns that are padding in all."""
        inputs, targets = self.inputs[rows], self.targets[rows]
        return (_trimmed(inputs), _trimmed(targets)) if self.ragged else (inputs, targets)


Item = Batch | BaseException | None
"""What the reading thread gives: a batch, what went wrong, or the end."""


@dataclass(frozen=True)
class BatchReader:
    """Reads what process `rank` of `processes` trains on; consecutive rows of the global batch."""

    batches: Batches
    predicted: Integers
    """Tokens that each context predicts, int64 (count,)."""
    rank: int = 0
    processes: int = 1
    pinned: bool = False
    """Whether to page-lock batches, so that their copy to a GPU runs beside its computation."""

    def read(self, step: int, indices: Integers) -> Batch:
        """The batch of 0-based `step`, whose contexts are `indices`."""
        share = len(indices) // self.processes
        mine = indices[self.rank * share : (self.rank + 1) * share]
        contexts = self.batches.contexts
        ragged = isinstance(contexts, RaggedContexts)
        inputs, targets = contexts.rows(contexts.by_length(mine) if isinstance(contexts, RaggedContexts) else mine)
        predicted = int(self.predicted[indices].sum())
        return Batch(step, indices, self._tensor(inputs), self._tensor(targets), predicted, ragged)

    def _tensor(self, array: Integers) -> torch.Tensor:
        tensor = torch.from_numpy(np.ascontiguousarray(array))
        return tensor.pin_memory() if self.pinned else tensor

    @contextmanager
    def ahead(self, start: int, stop: int) -> Iterator[Iterator[Batch]]:
        """The batches of steps `start` to `stop`, read by a thread that is up to two steps ahead."""
        ready: queue.Queue[Item] = queue.Queue(AHEAD)
        ended = threading.Event()
        thread = threading.Thread(target=self._fill, args=(ready, ended, start, stop), name="batches", daemon=True)
        thread.start()
        try:
            yield _taken(ready)
        finally:
            ended.set()
            thread.join()

    def _fill(self, ready: queue.Queue[Item], ended: threading.Event, start: int, stop: int) -> None:
        try:
            for step, indices in self.batches.each(start, stop):
                if not _put(ready, self.read(step, indices), ended):
                    return
            _put(ready, None, ended)
        except BaseException as error:
            _put(ready, error, ended)


def _trimmed(tokens: torch.Tensor) -> torch.Tensor:
    """The first columns, in which every row ends; a multiple of `COLUMNS` of them where there are as many."""
    longest = int((tokens >= 0).any(dim=0).nonzero().max()) + 1
    return tokens[:, : -(-longest // COLUMNS) * COLUMNS]


def _put(ready: queue.Queue[Item], item: Item, ended: threading.Event) -> bool:
    """Whether there was room for the item before the reader was ended."""
    while not ended.is_set():
        try:
            ready.put(item, timeout=0.1)
            return True
        except queue.Full:
            continue
    return False


def _taken(ready: queue.Queue[Item]) -> Iterator[Batch]:
    while (item := ready.get()) is not None:
        if isinstance(item, BaseException):
            raise item
        yield item
