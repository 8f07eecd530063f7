"""Rows of different lengths: pairs of source and target, and prompts with their answers."""

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError
from paribus.ordering.packing import CONTEXTS_AT_ONCE, NO_TARGET, ContextPieces, Contexts, Integers, OrderedDocuments


class RaggedContexts(Contexts):
    """A row a position of the order; rows are as long as the longest of those asked for together."""

    full = False

    @property
    def count(self) -> int:
        return len(self.documents)

    @abstractmethod
    def _sources(self, positions: Integers) -> Integers:
        """Tokens at each of `positions` that are read and not predicted, (n,)."""

    def target_pieces(self, indices: npt.ArrayLike) -> ContextPieces:
        """The predicted part of each row, a piece a row."""
        chosen = self.pieces(indices).positions
        bounds = np.arange(len(chosen) + 1, dtype=np.int64)
        return ContextPieces(chosen, self._sources(chosen), self.target_tokens(chosen), bounds)

    def target_tokens(self, indices: npt.ArrayLike) -> Integers:
        chosen = np.asarray(indices, dtype=np.int64)
        targets: Integers = np.minimum(self.documents.lengths_at(chosen) - self._sources(chosen), self.context_length)
        return targets

    @abstractmethod
    def by_length(self, indices: Integers) -> Integers:
        """Sort `indices` (n,), longer rows first: micro-batches of neighbours among them are padded little."""

    def _pieces(self, indices: Integers) -> ContextPieces:
        starts = np.zeros_like(indices)
        return ContextPieces(indices, starts, self.documents.lengths_at(indices), np.arange(len(indices) + 1))

    def predicted(self, indices: npt.ArrayLike) -> ContextPieces:
        """The whole rows: what of them is read leads to what is predicted."""
        return self.pieces(indices)


class PairContexts(RaggedContexts):
    """A row a pair: the source and an end-of-document token, and the same of the target, which is predicted.

    Each is cut to `context_length` tokens: of a longer source the last ones are left out and its end stays, of a longer
    target the end too, since the text does go on.
    """

    def __init__(self, documents: OrderedDocuments, context_length: int, source_lengths: npt.ArrayLike) -> None:
        """Rows of pairs; `source_lengths` (draws · documents of the corpus,) says how many ids are the source."""
        super().__init__(documents, context_length)
        self._source_lengths: Integers = np.asarray(source_lengths, dtype=np.int64)

    @property
    def left_out_tokens(self) -> int:
        """Tokens that are cut off."""
        left_out = 0
        for start in range(0, self.count, CONTEXTS_AT_ONCE):
            rows = np.arange(start, min(start + CONTEXTS_AT_ONCE, self.count), dtype=np.int64)
            held = self.source_tokens(rows) - 1 + self.target_tokens(rows)
            left_out += int((self.documents.lengths_at(rows) - held).sum())
        return left_out

    def rows(self, indices: npt.ArrayLike) -> tuple[Integers, Integers]:
        """Tokens of sources (n, S) and of targets (n, T), int64, -1 after the end of each."""
        chosen = self.pieces(indices).positions
        sources, targets = self.source_tokens(chosen), self.target_tokens(chosen)
        left, right = (
            np.full((len(chosen), int(sizes.max(initial=0))), NO_TARGET, dtype=np.int64) for sizes in (sources, targets)
        )
        begins = np.zeros_like(chosen)
        self.documents.read(chosen, begins, parts_of(left, begins, sources - 1))
        left[np.arange(len(chosen)), sources - 1] = self.documents.eos_id
        self.documents.read(chosen, self._sources(chosen), parts_of(right, begins, targets))
        return left, right

    def predicted(self, indices: npt.ArrayLike) -> ContextPieces:
        """The part of each pair that is read and the one that is predicted, two pieces a row."""
        chosen = self.pieces(indices).positions
        sources = self._sources(chosen)
        starts = np.stack([np.zeros_like(sources), sources], axis=1)
        lengths = np.stack([np.minimum(sources, self.context_length - 1), self.target_tokens(chosen)], axis=1)
        bounds = 2 * np.arange(len(chosen) + 1, dtype=np.int64)
        return ContextPieces(np.repeat(chosen, 2), starts.reshape(-1), lengths.reshape(-1), bounds)

    def source_tokens(self, indices: npt.ArrayLike) -> Integers:
        """Tokens of each source, its end-of-document token included, (n,) int64."""
        return np.minimum(self._sources(np.asarray(indices, dtype=np.int64)) + 1, self.context_length)

    def by_length(self, indices: Integers) -> Integers:
        """Sort `indices` (n,), longer targets and among equals longer sources first."""
        return indices[np.lexsort((-self.source_tokens(indices), -self.target_tokens(indices)))]

    def _sources(self, positions: Integers) -> Integers:
        sources: Integers = self._source_lengths[self.documents.numbers_at(positions)]
        return sources


class PromptContexts(RaggedContexts):
    """A row a document that is a prompt and its answer, an end-of-document token after it.

    Answer and end-of-document token are predicted, the prompt is read. Nothing is cut here.
    """

    left_out_tokens = 0

    def __init__(self, documents: OrderedDocuments, context_length: int, prompt_lengths: npt.ArrayLike) -> None:
        """`prompt_lengths` (documents of the corpus,) says how many ids of each are its prompt, one at least.

        Raises DataError for a document without a prompt or of more than `context_length` tokens, its end not counted.
        """
        super().__init__(documents, context_length)
        self._prompts: Integers = np.asarray(prompt_lengths, dtype=np.int64)[documents.order]
        lengths = documents.lengths
        wrong = np.flatnonzero((self._prompts < 1) | (lengths > context_length + 1))
        if len(wrong):
            raise DataError(
                f"prompt {wrong[0]} has {self._prompts[wrong[0]]} of the {lengths[wrong[0]]} tokens of its "
                f"row; it must have one at least, and a row at most {context_length + 1}"
            )

    def rows(self, indices: npt.ArrayLike) -> tuple[Integers, Integers]:
        """Input tokens, -1 after the end of a row, and the tokens they predict, -1 where there is none.

        Both (n, tokens of the longest of these rows but one) int64.
        """
        chosen = self.pieces(indices).positions
        sizes = self.documents.lengths_at(chosen) - 1
        shape = (len(chosen), int(sizes.max(initial=0)))
        inputs, targets = np.full(shape, NO_TARGET, dtype=np.int64), np.full(shape, NO_TARGET, dtype=np.int64)
        prompts = self._prompts[chosen]
        self.documents.read(chosen, np.zeros_like(chosen), parts_of(inputs, np.zeros_like(chosen), sizes))
        self.documents.read(chosen, prompts, parts_of(targets, prompts - 1, sizes))
        return inputs, targets

    def _sources(self, positions: Integers) -> Integers:
        prompts: Integers = self._prompts[positions]
        return prompts

    def by_length(self, indices: Integers) -> Integers:
        """Sort `indices` (n,), longer rows first."""
        return indices[np.argsort(-self.documents.lengths_at(indices), kind="stable")]


def parts_of(rows: Integers, starts: Integers, stops: Integers) -> Iterator[Integers]:
    """Columns `starts[i]` to `stops[i]` of row i of `rows` (n, columns), each a view."""
    return (row[start:stop] for row, start, stop in zip(rows, starts.tolist(), stops.tolist(), strict=True))
