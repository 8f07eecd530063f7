"""Which contexts a step trains on: a pure function of (order, tokens, context length, global batch, seed, step).

There is no sampler state. Resuming, another micro-batch or another number of processes gives the same global batches.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paribus.ordering.contexts import PackedStream
from paribus.ordering.shuffle import permute

Integers = npt.NDArray[np.int64]
CHUNK = 65_536


@dataclass(frozen=True)
class Batches:
    """Batches of `global_batch` contexts out of the endless repetition of a packed stream, reshuffled each epoch.

    Context number g = step · global_batch + row is context `permute(g mod count)` of epoch g div count.
    """

    stream: PackedStream
    global_batch: int
    seed: int

    def indices(self, step: int) -> Integers:
        """Context indices of 0-based `step` in the stream, int64 (global_batch,)."""
        return self.numbered(np.arange(step * self.global_batch, (step + 1) * self.global_batch, dtype=np.int64))

    def numbered(self, numbers: Integers) -> Integers:
        """Context indices in the stream of the global context numbers `numbers`, same shape."""
        epochs, places = np.divmod(numbers, self.stream.count)
        indices = np.empty_like(places)
        for epoch in np.unique(epochs):
            inside = epochs == epoch
            indices[inside] = permute(places[inside], self.stream.count, seed=self.seed, epoch=int(epoch))
        return indices

    def contexts(self, step: int, start: int = 0, stop: int | None = None) -> Integers:
        """Rows `start` to `stop` of the batch of `step`: token ids, int64 (rows, context_length + 1)."""
        return self.stream.contexts(self.indices(step)[start:stop])


def context_text_bytes(stream: PackedStream, token_byte_lengths: npt.NDArray[np.integer]) -> Integers:
    """Bytes of source text in each context of the stream, int64 (count,)."""
    chunks = [
        stream.source_bytes(token_byte_lengths, np.arange(start, min(start + CHUNK, stream.count), dtype=np.int64))
        for start in range(0, stream.count, CHUNK)
    ]
    return np.concatenate(chunks) if chunks else np.zeros(0, dtype=np.int64)
