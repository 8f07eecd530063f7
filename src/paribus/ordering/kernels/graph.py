"""The undirected graph of neighbour lists: who lists a document, and how many documents it is linked to.

A document's edges are those of its own list, which stays where it is, and those of the lists that it is in. The latter,
its listings, are kept as keys (see `edges`), document after document. Edges are first parted by ranges of documents, as
few at a time as the caches hold, since writing each at once to where it belongs would miss them every time.
"""

import numba
import numpy as np

from paribus.native.intrinsics import lowest_bit, multiply_high, within16
from paribus.ordering.kernels.edges import edge_key, is_set, key_document

_RECORD = 3
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


def survey_lists(ids, similarities, documents, width, shift, sizes):
    """Add to sizes[r] the edges that lead to the documents j of range r = j >> `shift`.

    `ids` and the bits of `similarities` are (documents, width). Returns -1 if every list goes from the heaviest edge
    down, of equal ones from the smallest id up, -2 if not, or the place in `ids` of a document that is not there or of
    a similarity that is not finite.
    """
    unsorted = np.int64(0)
    for document in range(documents):
        last = np.uint64(0xFFFFFFFFFFFFFFFF)
        row = document * width
        for place in range(row, row + width):
            other = np.int64(ids[place])
            if other < 0 or other == document:
                continue
            if other >= documents or similarities[place] & 0x7F800000 == 0x7F800000:
                return np.int64(place)
            key = edge_key(similarities[place], other)
            unsorted |= np.int64(key > last)
            sizes[other >> shift] += 1
            last = key
    return np.int64(-1) - unsorted


@numba.njit(inline="always")
def _part_edge(ids, similarities, place, reciprocal, shift, cursors, records):
    other = np.int64(ids[place])
    document = place if reciprocal == np.uint64(0) else np.int64(multiply_high(np.uint64(place), reciprocal))
    if other == document:
        return
    cursor = cursors[other >> shift]
    cursors[other >> shift] = cursor + _RECORD
    key = edge_key(similarities[place], document)
    records[cursor] = np.int32(other)
    records[cursor + 1] = np.int32(key & _LOW)
    records[cursor + 2] = np.int32(key >> _HALF)


def part_edges(ids, similarities, documents, width, reciprocal, shift, low, high, cursors, records):
    """Write the edges that lead to the documents j in [low, high) behind cursors[j >> shift].

    A record is j and the two halves of the listing's key. `reciprocal` is 2**64 / width, rounded up, and 0 for
    a width of 1.
    """
    total = documents * width
    for first in range(0, total - 15, 16):
        inside = within16(ids, first, np.int32(low), np.int32(high - low))
        while inside != np.uint64(0):
            place = first + lowest_bit(inside)
            inside &= inside - np.uint64(1)
            _part_edge(ids, similarities, place, reciprocal, shift, cursors, records)
    for place in range(total // 16 * 16, total):
        if low <= np.int64(ids[place]) < high:
            _part_edge(ids, similarities, place, reciprocal, shift, cursors, records)
    return np.int64(0)


def place_edges(records, sizes, first, last, shift, documents, placed, begin, listings, counts):
    """Sort the records of the ranges from `first` to `last`, which stand range after range, into listings[placed:].

    Writes begin[j] of their documents and returns where the next range begins. Of range r there are sizes[r] records;
    `counts` has room for one number more than a range has documents.
    """
    record = np.int64(0)
    for number in range(first, last):
        low, high = number << shift, min((number + 1) << shift, documents)
        _place_range(records, record, sizes[number], low, high, placed, begin, listings, counts)
        record += sizes[number]
        placed += sizes[number]
    return placed


@numba.njit(inline="always")
def _place_range(records, start, count, low, high, begin_at, begin, listings, counts):
    for document in range(high - low + 1):
        counts[document] = 0
    for number in range(start, start + count):
        counts[np.int64(records[_RECORD * number]) - low + 1] += 1
    counts[0] = begin_at
    for document in range(high - low):
        counts[document + 1] += counts[document]
        begin[low + document] = counts[document]
    for number in range(start, start + count):
        record = _RECORD * number
        document = np.int64(records[record]) - low
        key = np.uint64(np.uint32(records[record + 2])) << _HALF | np.uint64(np.uint32(records[record + 1]))
        listings[counts[document]] = key
        counts[document] += 1


@numba.njit(inline="always")
def _filter_bit(document):
    """Place of a document in a set of 512 bits."""
    return np.int64((np.uint64(document) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(55))


@numba.njit(inline="always")
def _among(ids, first, last, document):
    found = False
    for place in range(first, last):
        found |= np.int64(ids[place]) == document
    return found


def count_edges(ids, documents, width, begin, listings, members, degrees):
    """Write the number of distinct documents each one is linked to; returns their sum, which is twice the edges.

    `members` has room for 512 bits, which say what is certainly not in a document's list.
    """
    total = np.int64(0)
    for document in range(documents):
        for word in range(8):
            members[word] = 0
        row, degree = document * width, np.int64(0)
        for place in range(row, row + width):
            other = np.int64(ids[place])
            if other < 0 or other == document:
                continue
            bit = _filter_bit(other)
            if not is_set(members, bit) or not _among(ids, row, place, other):
                degree += 1
            members[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
        last = np.int64(-1)
        for place in range(begin[document], begin[document + 1]):
            other = key_document(listings[place])
            # A list that names a document twice does so in listings that stand together.
            if other != last and not (is_set(members, _filter_bit(other)) and _among(ids, row, row + width, other)):
                degree += 1
            last = other
        degrees[document] = degree
        total += degree
    return total
