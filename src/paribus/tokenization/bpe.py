"""Training by merges: byte-pair encoding, Scaffold-BPE and WordPiece."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError
from paribus.native.loader import KernelState, address, kernel, table_zeros
from paribus.tokenization.counts import SymbolCorpus
from paribus.tokenization.kernels import training_layout as slot

Stopped = Literal["vocab_size", "no_pair_left", "exhausted"]
"""Why training ended: the vocabulary was full, no pair was left to merge, or (Unigram) pieces ran out."""
Progress = Callable[[int], None]

_STEPS = 2048
"""Merges between two reports."""
_SMALL = 1 << 18
"""A corpus of fewer positions is indexed whole at once."""
_LOWERED = 8
"""Divisor of the threshold when no pair is left above it."""
_SMALLEST_BITS, _SMALLEST_ROOM = 12, 1024
_TOKEN_COLUMNS: dict[int, type[np.generic]] = {
    slot.LENGTHS: np.int32,
    slot.LEFT: np.int32,
    slot.RIGHT: np.int32,
    slot.FREQUENCIES: np.int64,
    slot.LIVE: np.int64,
    slot.SCAFFOLD: np.uint8,
}


# Byte-pair encoding: merge the most frequent pair of adjacent tokens until the vocabulary is full.
#
# Sennrich et al., *Neural Machine Translation of Rare Words with Subword Units*, Algorithm 1. Counts are exact,
# overlaps included; ties go to the smaller left rank, then the smaller right rank (the rule of Hugging Face's
# `BpeTrainer`, whose merge list on the same pre-tokens is the same).
@dataclass(frozen=True, eq=False)
class MergeTraining:
    """Tokens that training made, as arrays over all tokens in order of creation; a token's index is its rank.

    The first `units` tokens are the alphabet. Every later one was made by one merge, so (left, right, rank) of those
    are the merges. No two are the same string of units: a merge replaces all occurrences of its pair, so a string
    whose ends no merge crosses is always built up the same way.
    """

    units: int
    left: npt.NDArray[np.int32]
    """Rank of the left parent, -1 for units."""
    right: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]
    """Units of each token."""
    frequencies: npt.NDArray[np.int64]
    """Occurrences when the token was made, after replacing left to right."""
    scaffold: npt.NDArray[np.bool_]
    """True if the token has left the vocabulary (Scaffold-BPE)."""
    stopped: Stopped

    @property
    def merges(self) -> npt.NDArray[np.int32]:
        """(left, right, result) ranks in training order, shape (merges, 3)."""
        made = np.arange(self.units, len(self.left), dtype=np.int32)
        return np.column_stack([self.left[self.units :], self.right[self.units :], made])

    def unit_sequences(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Units of each token one after another, and n + 1 offsets."""
        offsets = np.zeros(len(self.lengths) + 1, np.int64)
        np.cumsum(self.lengths, out=offsets[1:])
        units = np.empty(offsets[-1], np.int32)
        kernel("spell_tokens")(
            address(self.left), address(self.right), len(self.left), address(offsets), address(units)
        )
        return units, offsets


def train_bpe(
    corpus: SymbolCorpus, size: int, progress: Progress | None = None, *, threshold: int | None = None
) -> MergeTraining:
    """Merge until there are `size` tokens (units included), or no pair is left.

    `progress` is called with the size reached. `threshold` is the count below which pairs are not indexed until they
    are needed; it only changes how long training takes.
    """
    return MergeTrainer(corpus, size, scaffolding=False, threshold=threshold).run(progress)


class MergeTrainer:
    """The compiled trainer of BPE and Scaffold-BPE and its arrays; base of the other trainers by merges."""

    kernel = "train_bpe"

    def __init__(self, corpus: SymbolCorpus, size: int, *, scaffolding: bool, threshold: int | None = None) -> None:
        _check_size(corpus)
        self._state = state = KernelState(slot.TRAINING_SLOTS)
        self._units = units = corpus.units
        state.hold(slot.SYMBOLS, corpus.symbols.copy(), slot.SYMBOL_COUNT)
        state.hold(slot.WEIGHTS, corpus.weights)
        state.hold(slot.MET, np.empty(_SMALLEST_ROOM, np.int64), slot.MET_ROOM)
        state[slot.TOKENS] = state[slot.UNITS] = state[slot.NORMAL] = units
        state[slot.TARGET], state[slot.STEPS], state[slot.SCAFFOLDING] = size, _STEPS, scaffolding
        state[slot.THRESHOLD] = threshold or _threshold(corpus, size)
        for name, dtype in _TOKEN_COLUMNS.items():
            state.arrays[name] = np.zeros(units, dtype)
        state.arrays[slot.LENGTHS][:] = 1
        state.arrays[slot.LEFT][:] = state.arrays[slot.RIGHT][:] = -1
        state.arrays[slot.FREQUENCIES][:] = state.arrays[slot.LIVE][:] = corpus.frequencies
        self._make_token_room(min(size + scaffolding * size // 8, units + len(corpus.symbols)) + 1)

    def run(self, progress: Progress | None) -> MergeTraining:
        """Train to the end."""
        state = self._state
        self._index()
        while (status := kernel(self.kernel)(state.address)) not in (slot.FULL, slot.NO_PAIR_LEFT):
            if status == slot.LOWER_THRESHOLD:
                state[slot.THRESHOLD] = max(1, state[slot.THRESHOLD] // _LOWERED)
                self._index()
            elif status != slot.STEPPED:
                self._grow(status)
            elif progress is not None:
                progress(state[slot.NORMAL])
        if progress is not None:
            progress(state[slot.NORMAL])
        names = (slot.LEFT, slot.RIGHT, slot.LENGTHS, slot.FREQUENCIES, slot.SCAFFOLD)
        left, right, lengths, frequencies, scaffold = (
            state.arrays[name][: state[slot.TOKENS]].copy() for name in names
        )
        stopped: Stopped = "vocab_size" if status == slot.FULL else "no_pair_left"
        return MergeTraining(self._units, left, right, lengths, frequencies, scaffold.astype(np.bool_), stopped)

    def _index(self) -> None:
        """Find the pairs at or above the threshold and where they occur."""
        state = self._state
        state[slot.POSITION] = state[slot.WORD] = state[slot.PAIRS_USED] = 0
        state.hold(slot.PAIRS, table_zeros((1 << _SMALLEST_BITS, 4), np.int64))
        state[slot.PAIRS_SHIFT] = 64 - _SMALLEST_BITS
        while kernel("count_pairs")(state.address) != 0:
            self._move_pairs(64 - state[slot.PAIRS_SHIFT] + 1, 1)
        pairs = state.arrays[slot.PAIRS]
        frequent = pairs[pairs[:, 1] >= state[slot.THRESHOLD]]
        self._move_pairs(max(_SMALLEST_BITS, len(frequent).bit_length() + 2), state[slot.THRESHOLD])
        entries = len(frequent) + int(state.arrays[slot.SCAFFOLD].sum())
        state.hold(slot.HEAP, np.empty((2 * entries + _SMALLEST_ROOM, 2), np.int64), slot.HEAP_ROOM)
        room = int(2.5 * frequent[:, 3].sum()) + _SMALLEST_ROOM
        state.hold(slot.OCCURRENCES, np.empty(room, np.int64), slot.OCCURRENCE_ROOM)
        state[slot.OCCURRENCES_USED] = kernel("locate_pairs")(state.address)

    def _grow(self, status: int) -> None:
        state = self._state
        if status == slot.GROW_TOKENS:
            self._make_token_room(2 * state[slot.TOKEN_ROOM])
        elif status == slot.GROW_PAIRS:
            self._move_pairs(64 - state[slot.PAIRS_SHIFT] + 1, state[slot.THRESHOLD])
        elif status == slot.GROW_HEAP:
            state.enlarge(slot.HEAP, state[slot.HEAP_USED], slot.HEAP_ROOM, 2 * state[slot.WANTED])
        elif status == slot.GROW_OCCURRENCES:
            length = state[slot.WANTED] + state[slot.WANTED] // 2
            state.enlarge(slot.OCCURRENCES, state[slot.OCCURRENCES_USED], slot.OCCURRENCE_ROOM, length)
        else:
            state.hold(slot.MET, np.empty(2 * state[slot.WANTED], np.int64), slot.MET_ROOM)

    def _make_token_room(self, room: int) -> None:
        state, tokens = self._state, self._state[slot.TOKENS]
        for name, dtype in _TOKEN_COLUMNS.items():
            column = np.zeros(room, dtype)
            column[:tokens] = state.arrays[name][:tokens]
            state.hold(name, column, slot.TOKEN_ROOM)
        state.hold(slot.BEFORE, np.zeros((room + 2, 2), np.int64))
        state.hold(slot.AFTER, np.zeros((room + 2, 2), np.int64))
        state.hold(slot.NEIGHBOURS, np.zeros((2, room + 2), np.int32))

    def _move_pairs(self, bits: int, smallest: int) -> None:
        """Put the pairs with a count of at least `smallest` into a table of 2^bits entries."""
        state, old, larger = self._state, self._state.arrays[slot.PAIRS], table_zeros((1 << bits, 4), np.int64)
        state[slot.PAIRS_USED] = kernel("move_pairs")(address(old), len(old), address(larger), 64 - bits, smallest)
        state.hold(slot.PAIRS, larger)
        state[slot.PAIRS_SHIFT] = 64 - bits


def _check_size(corpus: SymbolCorpus) -> None:
    """An occurrence is a word and a position in 63 bits."""
    words, positions = len(corpus.weights), len(corpus.symbols)
    if words >= 1 << slot.WORD_BITS or positions >= 1 << slot.POSITION_BITS:
        raise DataError(
            f"corpus: {words} distinct pre-tokens of {positions} units in all; training takes {1 << slot.WORD_BITS} of "
            f"{1 << slot.POSITION_BITS} units: train on a sample, or with a pre-tokenizer that makes shorter pieces"
        )


def _threshold(corpus: SymbolCorpus, size: int) -> int:
    """A count that the last merge will hardly fall below: that of the last word if all tokens were words."""
    if len(corpus.symbols) < _SMALL or size >= len(corpus.weights):
        return 1
    place = len(corpus.weights) - size
    return max(1, int(np.partition(corpus.weights, place)[place]))


# Scaffold-BPE: tokens that are rare once longer tokens took their occurrences leave the vocabulary.
#
# Lian et al., *Scaffold-BPE* (arXiv 2404.17808), Algorithm 1. The expanded vocabulary E holds every token ever made;
# V = E without the scaffold tokens S reaches the requested size. Its merges are those of BPE, carried further.
def train_scaffold_bpe(
    corpus: SymbolCorpus, size: int, progress: Progress | None = None, *, threshold: int | None = None
) -> MergeTraining:
    """Merge as BPE does until there are `size` tokens that are no scaffolds, or the queue is empty.

    After each merge its two parents are looked at, the left one first: one that is no unit and whose live count fell
    below that of the queue's head becomes a scaffold and goes back into the queue under its live count, after pairs
    of that count. When it comes to the head it is normal again, at its old rank. Arguments as of `train_bpe`.
    """
    return MergeTrainer(corpus, size, scaffolding=True, threshold=threshold).run(progress)


# WordPiece: merge the pair that makes the corpus most likely, until the vocabulary is full.
#
# The pair with the largest p(ij) / (p(i) p(j)) = f(ij) / (f(i) f(j)) is merged, with the counts of the corpus as it
# stands (Schuster and Nakajima 2012, as course notes give it; the trainers of that name that count frequencies alone
# are BPE). Fractions are compared exactly; ties go to the larger f(ij), then the smaller left rank, then the smaller
# right rank. Such a pair is often a rare one: two units that occur once, next to each other, score 1, the most there
# is. Encoding takes the longest match from the left.
def train_wordpiece(corpus: SymbolCorpus, size: int, progress: Progress | None = None) -> MergeTraining:
    """Merge until there are `size` tokens (units included), or no pair is left. Arguments as of `train_bpe`."""
    return LikelihoodTrainer(corpus, size, scaffolding=False, threshold=1).run(progress)


class LikelihoodTrainer(MergeTrainer):
    """The compiled trainer of WordPiece and its arrays: records of pairs, chained by token, in a heap by score."""

    kernel = "train_wordpiece"

    def _index(self) -> None:
        super()._index()
        state, pairs = self._state, self._state.arrays.pop(slot.PAIRS)
        occupied = pairs[pairs[:, 0] != 0]
        occupied = occupied[np.argsort(occupied[:, 0])]
        records = np.empty((2 * len(occupied) + _SMALLEST_ROOM, slot.RECORD_WORDS), np.int64)
        records[: len(occupied), slot.PAIR] = occupied[:, 0] - 1
        records[: len(occupied), slot.COUNT : slot.OCCURRING + 1] = occupied[:, 1:]
        state[slot.RECORDS_USED], state[slot.HEAP_USED] = len(occupied), 0
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

    def _hold_records(self, records: npt.NDArray[np.int64]) -> None:
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
