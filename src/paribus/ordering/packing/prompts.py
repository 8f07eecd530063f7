"""Prompts with their answers, of which the answers alone are predicted."""

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError
from paribus.ordering.packing.contexts import NO_TARGET
from paribus.ordering.packing.documents import Integers, OrderedDocuments
from paribus.ordering.packing.pieces import ContextPieces
from paribus.ordering.packing.ragged import RaggedContexts, parts_of


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

    def target_pieces(self, indices: npt.ArrayLike) -> ContextPieces:
        """The answers with their ends, a piece a row."""
        chosen = self.pieces(indices).positions
        bounds = np.arange(len(chosen) + 1, dtype=np.int64)
        return ContextPieces(chosen, self._prompts[chosen], self.target_tokens(chosen), bounds)

    def target_tokens(self, indices: npt.ArrayLike) -> Integers:
        """Tokens that each row predicts, (n,) int64."""
        chosen = np.asarray(indices, dtype=np.int64)
        return self.documents.lengths_at(chosen) - self._prompts[chosen]

    def by_length(self, indices: Integers) -> Integers:
        """The same `indices` (n,), longer rows first."""
        return indices[np.argsort(-self.documents.lengths_at(indices), kind="stable")]
