"""Packing `one_document`: a context holds tokens of one document only; the rest of it is padding."""

import numpy as np

from paribus.ordering.packing.assigned import AssignedContexts
from paribus.ordering.packing.documents import OrderedDocuments
from paribus.ordering.packing.pieces import cut


def one_document(documents: OrderedDocuments, context_length: int) -> AssignedContexts:
    """A context a document, several for a longer one; an empty document has none, as it predicts nothing."""
    pieces = cut(documents.lengths, context_length)
    return AssignedContexts(documents, context_length, pieces, np.arange(len(pieces.positions)))
