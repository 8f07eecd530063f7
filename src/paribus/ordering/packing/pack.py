"""The contexts of a configured packing."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from paribus.config.groups.packing import (
    BestFitPacking,
    ConcatenatePacking,
    OneDocumentPacking,
    PackingConfig,
    PairPacking,
)
from paribus.errors import DataError
from paribus.ordering.packing.assigned import one_document
from paribus.ordering.packing.best_fit import best_fit
from paribus.ordering.packing.concatenate import GroupedStream, PackedStream
from paribus.ordering.packing.contexts import Contexts
from paribus.ordering.packing.documents import Integers, OrderedDocuments
from paribus.ordering.packing.pairs import PairContexts


class DocumentOrder(Protocol):
    """What packing needs of an order."""

    @property
    def documents(self) -> Integers:
        """Document indices in the sequence in which they are read, (m,); repeats allowed."""

    @property
    def groups(self) -> Integers | None:
        """Positions in `documents` at which a group begins, and m, (g + 1,); None for an order without groups."""


@dataclass(frozen=True)
class GivenOrder:
    """An order that no stage has stored."""

    documents: Integers
    groups: Integers | None = None


def pack(  # noqa: PLR0917 (each is one input of packing; none has a default to leave out)
    packing: PackingConfig,
    ids: npt.ArrayLike,
    offsets: npt.ArrayLike,
    order: DocumentOrder,
    eos_id: int,
    context_length: int,
    source_lengths: npt.ArrayLike | None = None,
    draws: int = 1,
) -> Contexts:
    """Contexts of `context_length` tokens of the encoded corpus (flat `ids`, `offsets`) in `order`.

    Pairs whose tokens were drawn several times are those of one draw, then those of the next.

    Raises DataError if the documents are fewer tokens than one context, if the order names a document that is not
    there, and if `pair` is not given the `source_lengths` (draws · documents,) of a corpus of pairs. Only `concatenate`
    has use for the groups of an order.
    """
    documents = OrderedDocuments(ids, offsets, order.documents, eos_id, draws)
    if isinstance(packing, PairPacking):
        if source_lengths is None:
            raise DataError("packing.kind=pair needs pairs, and the encoded corpus has documents; use corpus=parallel")
        return PairContexts(documents, context_length, source_lengths)
    _refuse_too_small(documents, context_length)
    match packing:
        case ConcatenatePacking():
            if order.groups is None:
                return PackedStream(documents, context_length)
            return GroupedStream(documents, context_length, order.groups)
        case BestFitPacking(window=window):
            return best_fit(documents, context_length, window)
        case OneDocumentPacking():
            return one_document(documents, context_length)


def _refuse_too_small(documents: OrderedDocuments, context_length: int) -> None:
    # So many documents are more than a context, as each has its end-of-document token; fewer are all there are.
    first = np.arange(min(len(documents), context_length + 1), dtype=np.int64)
    tokens = int(documents.lengths_at(first).sum())
    if tokens <= context_length:
        raise DataError(
            f"The corpus is smaller than one context: {len(documents)} documents give {tokens} tokens "
            f"(end-of-document tokens included), and `model.context_length` = {context_length} needs "
            f"{context_length + 1}. Set model.context_length to {max(tokens - 1, 1)} or less, or give more text"
        )
