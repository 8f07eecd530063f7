"""Packing `best_fit`: documents are put together so that only those longer than a context are cut.

Best-fit-decreasing bin packing (Ding et al., "Fewer Truncations Improve Language Modeling", arXiv 2404.10830,
section 3). It is done within windows of consecutive documents, so that documents near each other in the order stay
near each other; the paper's is one window of all.
"""

from bisect import bisect_left, insort
from itertools import pairwise

import numpy as np

from paribus.ordering.packing.assigned import AssignedContexts
from paribus.ordering.packing.documents import Integers, OrderedDocuments
from paribus.ordering.packing.pieces import cut


def best_fit(documents: OrderedDocuments, context_length: int, window: int | None) -> AssignedContexts:
    """Contexts of whole documents, `window` consecutive ones at a time (None: all).

    A longer document is first cut into pieces of a whole context and a rest. Within a context pieces stand in the
    sequence of the order.
    """
    pieces = cut(documents.lengths, context_length)
    first = np.arange(0, len(documents), window or max(1, len(documents)))
    bounds = [*pieces.bounds[first].tolist(), len(pieces.positions)]
    assigned = np.empty_like(pieces.positions)
    for begin, end in pairwise(bounds):
        # A window has no more contexts than pieces, so no two windows share a number.
        assigned[begin:end] = begin + best_fit_decreasing(pieces.lengths[begin:end], context_length)
    return AssignedContexts.together(documents, context_length, pieces, assigned)


def best_fit_decreasing(lengths: Integers, capacity: int) -> Integers:
    """The bin, 0, 1, ..., of each of (n,) items of `lengths`, none longer than `capacity`.

    The longest item first, items of one length in their sequence, goes into the bin with the least room that suffices,
    of those with the same room into the one that came to have it last, or else into another bin. O(n log capacity):
    `rooms` holds what rooms there are, ascending, as the paper's segment tree does.
    """
    sequence = np.argsort(-lengths, kind="stable")
    assigned = np.empty(len(lengths), dtype=np.int64)
    rooms: list[int] = []
    bins_with: dict[int, list[int]] = {}
    bins = 0
    for item, length in zip(sequence.tolist(), lengths[sequence].tolist(), strict=True):
        place = bisect_left(rooms, length)
        if place < len(rooms):
            room = rooms[place]
            chosen = bins_with[room].pop()
            if not bins_with[room]:
                del rooms[place], bins_with[room]
        else:
            chosen, room = bins, capacity
            bins += 1
        assigned[item] = chosen
        left = room - length
        if left in bins_with:
            bins_with[left].append(chosen)
        elif left:
            bins_with[left] = [chosen]
            insort(rooms, left)
    return assigned
