"""WordPiece: merge the pair that makes the corpus most likely, until the vocabulary is full.

The pair with the largest p(ij) / (p(i) p(j)) = f(ij) / (f(i) f(j)) is merged, with the counts of the corpus as it
stands (Schuster and Nakajima 2012, as course notes give it; the trainers of that name that count frequencies alone
are BPE). Fractions are compared exactly; ties go to the larger f(ij), then the smaller left rank, then the smaller
right rank. Such a pair is often a rare one: two units that occur once, next to each other, score 1, the most there
is. Encoding takes the longest match from the left.
"""

import numpy as np

from paribus.native.loader import kernel
from paribus.tokenization.kernels import training_layout as slot
from paribus.tokenization.learn.bpe import MergeTrainer, MergeTraining, Progress
from paribus.tokenization.learn.symbol_corpus import SymbolCorpus

_SMALLEST_ROOM = 1024


def train_wordpiece(corpus: SymbolCorpus, size: int, progress: Progress | None = None) -> MergeTraining:
    """Merge until `size` tokens (units included) are there, or no pair is left.

    `progress` is called with the size reached.
    """
    return LikelihoodTrainer(corpus, size, scaffolding=False, threshold=1).run(progress)


class LikelihoodTrainer(MergeTrainer):
    """The arrays of the compiled trainer: records of pairs, chained by token, in a heap by score."""

    kernel = "train_wordpiece"

    def _index(self) -> None:
        super()._index()
        state, pairs = self._state, self._state.arrays.pop(slot.PAIRS)
        found = pairs[pairs[:, 0] != 0]
        found = found[np.argsort(found[:, 0])]
        records = np.empty((2 * len(found) + _SMALLEST_ROOM, slot.RECORD_WORDS), np.int64)
        records[: len(found), slot.PAIR] = found[:, 0] - 1
        records[: len(found), slot.COUNT : slot.OCCURRING + 1] = found[:, 1:]
        state[slot.RECORDS_USED], state[slot.HEAP_USED] = len(found), 0
        self._hold_records(records)
        kernel("link_pairs")(state.address)

    def _grow(self, status: int) -> None:
        if status == slot.GROW_RECORDS:
            used, old = self._state[slot.RECORDS_USED], self._state.arrays[slot.RECORDS]
            records = np.empty((2 * self._state[slot.WANTED], slot.RECORD_WORDS), np.int64)
            records[:used] = old[:used]
            self._hold_records(records)
        else:
            super()._grow(status)

    def _hold_records(self, records: np.typing.NDArray[np.int64]) -> None:
        state, used = self._state, self._state[slot.HEAP_USED]
        heap = np.empty((len(records), 2), np.int64)
        heap[:used] = state.arrays[slot.HEAP][:used]
        state.hold(slot.RECORDS, records, slot.RECORD_ROOM)
        state.hold(slot.HEAP, heap, slot.HEAP_ROOM)

    def _make_token_room(self, room: int) -> None:
        super()._make_token_room(room)
        chains = np.full((2, room), -1, np.int64)
        if slot.CHAINS in self._state.arrays:
            old = self._state.arrays[slot.CHAINS]
            chains[:, : old.shape[1]] = old
        self._state.hold(slot.CHAINS, chains)
