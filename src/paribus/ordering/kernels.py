"""Compiled loops of ordering; see `paribus.native`."""

import numba
import numpy as np

from paribus.native.compiler import address_of, f64_at, lowest_bit, multiply_high, prefetch, within16

_AHEAD = 16
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_RECORD = 3
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_HIGHEST = np.uint64(0xFFFFFFFF)
_SIGN = np.uint64(0x80000000)
_ABREAST = 16
_LINE = 16


@numba.njit(inline="always")
def _random(state, place):
    """A number in [0, place], as int64, from a counter (splitmix64: Steele, Lea and Flood, 2014)."""
    value = state + np.uint64(place + 1) * _GOLDEN
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    value ^= value >> np.uint64(31)
    return np.int64(multiply_high(value, np.uint64(place + 1)))


# Algorithm 1 of In-Context Pretraining (arXiv 2310.10638) over whole neighbour lists and the listings of `graph`.
def sort_landings(degrees, documents, begin, largest, state, landings):
    """Write all documents by degree, in random order among equals.

    `begin` has `largest` + 2 zeros for the begin of each degree, `largest` being the largest one.
    """
    for document in range(documents):
        begin[np.int64(degrees[document]) + 1] += 1
    for degree in range(largest + 1):
        begin[degree + 1] += begin[degree]
    for document in range(documents):
        degree = np.int64(degrees[document])
        landings[begin[degree]] = document
        begin[degree] += 1
    first = np.int64(0)
    base = address_of(landings)
    for degree in range(largest + 1):
        # Fisher and Yates, from the last place down.
        for place in range(begin[degree] - first - 1, 0, -1):
            if place > _AHEAD:
                prefetch(base + 4 * (first + _random(state, place - _AHEAD)))
            other = first + _random(state, place)
            kept = landings[first + place]
            landings[first + place] = landings[other]
            landings[other] = kept
        first = begin[degree]
    return first


def walk(
    ids, similarities, exact, documents, width, is_sorted, visited, begin, listings, landings, order, weights, jumps
):
    """Write the path and the bits of the weight of the edge to each document; returns the number of landings.

    `jumps` is a bit map of the positions that were landed on, where the weight is 0; `visited` one of documents. Lists
    that are `is_sorted` go from the heaviest edge down. `exact` is the address of the weights in double precision,
    which decide where those in single precision are equal, or 0.
    """
    landing, landed = np.int64(0), np.int64(0)
    best = np.uint64(0)
    for position in range(documents):
        if best == np.uint64(0):
            while is_set(visited, np.int64(landings[landing])):
                landing += 1
            document, bits = np.int64(landings[landing]), np.int32(0)
            jumps[position >> 6] |= np.uint64(1) << np.uint64(position & 63)
            landed += 1
        else:
            document, bits = key_document(best), key_bits(best)
        visited[document >> 6] |= np.uint64(1) << np.uint64(document & 63)
        order[position] = document
        weights[position] = bits
        best = _heaviest(ids, similarities, exact, width, is_sorted, visited, begin, listings, document)
    return landed


@numba.njit
def _exact_weight(ids, weights, width, document, key):
    """The largest weight, in double precision, of the edge of a key in the lists of both its documents."""
    other = key_document(key)
    largest = -np.inf
    for place in range(document * width, (document + 1) * width):
        if np.int64(ids[place]) == other:
            largest = max(largest, weights[place])
    for place in range(other * width, (other + 1) * width):
        if np.int64(ids[place]) == document:
            largest = max(largest, weights[place])
    return largest


@numba.njit
def _tie_goes_to(ids, exact, width, document, key, best):
    """True if of two keys of one weight in single precision the first is the heavier edge in double precision."""
    weights = f64_at(exact)
    first = _exact_weight(ids, weights, width, document, key)
    second = _exact_weight(ids, weights, width, document, best)
    return first > second or (first == second and key > best)


@numba.njit(inline="always")
def _is_heavier(ids, exact, width, document, key, best):
    if exact != 0 and key >> np.uint64(32) == best >> np.uint64(32):
        return _tie_goes_to(ids, exact, width, document, key, best)
    return key > best


@numba.njit(inline="always")
def _expect(ids, similarities, width, begin, listings, document):
    """Ask for what is read of a document when the walk goes there."""
    prefetch(address_of(ids) + 4 * document * width)
    prefetch(address_of(similarities) + 4 * document * width)
    first = address_of(listings) + 8 * begin[document]
    prefetch(first)
    prefetch(first + 64)
    prefetch(first + 128)


@numba.njit(inline="always")
def _heaviest(ids, similarities, exact, width, is_sorted, visited, begin, listings, document):
    """Key of the heaviest edge to a document that is not visited; 0 where there is none."""
    best = np.uint64(0)
    first, last = begin[document], begin[document + 1]
    row = document * width
    for place in range(row, row + width):
        other = np.int64(ids[place])
        if other < 0 or is_set(visited, other):
            continue
        key = edge_key(similarities[place], other)
        if _is_heavier(ids, exact, width, document, key, best):
            best = key
            _expect(ids, similarities, width, begin, listings, other)
        if is_sorted:
            break
    for place in range(first, last):
        key = listings[place]
        if _is_heavier(ids, exact, width, document, key, best) and not is_set(visited, key_document(key)):
            best = key
            _expect(ids, similarities, width, begin, listings, key_document(key))
    return best


# The undirected graph of neighbour lists: who lists a document, and how many documents it is linked to.
#
# A document's edges are those of its own list, which stays where it is, and those of the lists that it is in. The
# latter, its listings, are kept as keys (see `edges`), document after document. Edges are first parted by ranges of
# documents, as few at a time as the caches hold, since writing each at once to where it belongs would miss them every
# time.
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


def compact_lists(ids, similarities, documents, width, numbers, take, whole_ids, whole_similarities, keys):
    """Write the lists of the documents with a number, by number, as (numbered, take) with -1 behind the last.

    `ids` and the bits of `similarities` are (documents, width). Of each list the first `take` that have a number and
    are not the document itself stay. `keys` has room for `take`. Returns -1, or the place in `ids` of a document that
    is not there or of a similarity that is not finite.
    """
    row = np.int64(0)
    for document in range(documents):
        if numbers[document] < 0:
            continue
        taken = 0
        for place in range(document * width, (document + 1) * width):
            other = np.int64(ids[place])
            if other < 0 or taken == take:
                continue
            if other >= documents or similarities[place] & 0x7F800000 == 0x7F800000:
                return np.int64(place)
            if other == document or numbers[other] < 0:
                continue
            key, hole = edge_key(similarities[place], np.int64(numbers[other])), taken
            while hole > 0 and keys[hole - 1] < key:
                keys[hole] = keys[hole - 1]
                hole -= 1
            keys[hole] = key
            taken += 1
        for place in range(taken):
            whole_ids[row + place] = np.int32(key_document(keys[place]))
            whole_similarities[row + place] = key_bits(keys[place])
        for place in range(taken, take):
            whole_ids[row + place] = -1
            whole_similarities[row + place] = 0
        row += take
    return np.int64(-1)


@numba.njit(inline="always")
def edge_key(bits, document):
    """Key of an edge to a document, from the bits (int32) of its float32 weight."""
    # -0.0 is 0.0.
    word = np.uint64(0) if bits == np.int32(-2147483648) else np.uint64(np.uint32(bits))
    # Unsigned order becomes that of the numbers when all bits of negative ones flip, and the sign of the others.
    flipped = word ^ _HIGHEST if word >= _SIGN else word | _SIGN
    return flipped << np.uint64(32) | (_HIGHEST - np.uint64(document))


@numba.njit(inline="always")
def key_document(key):
    """The document an edge leads to."""
    return np.int64(_HIGHEST - (key & _HIGHEST))


@numba.njit(inline="always")
def key_bits(key):
    """The bits (int32) of the edge's float32 weight."""
    word = key >> np.uint64(32)
    return np.int32(np.uint32(word ^ _SIGN if word >= _SIGN else word ^ _HIGHEST))


@numba.njit(inline="always")
def is_set(bits, place):
    """True if a bit is set in a bit map of uint64."""
    return (bits[place >> 6] >> np.uint64(place & 63)) & np.uint64(1) != np.uint64(0)


def score_candidates(queries, base, candidates, rows, width, dimensions, sums, scores):
    """Write the inner product of every query with each of its candidates.

    `queries` is (rows, dimensions), `base` (n, dimensions), `candidates` and `scores` (rows, width). A negative
    candidate is none; `sums` has room for 16 numbers.
    """
    whole = dimensions // _ABREAST * _ABREAST
    lines = address_of(base)
    for row in range(rows):
        query = row * dimensions
        for place in range(row * width, (row + 1) * width):
            if candidates[place] < 0:
                continue
            vector = candidates[place] * dimensions
            if place + 1 < (row + 1) * width and candidates[place + 1] >= 0:
                ahead = lines + 4 * candidates[place + 1] * dimensions
                for line in range(0, min(dimensions, 256), _LINE):
                    prefetch(ahead + 4 * line)
            for lane in range(_ABREAST):
                sums[lane] = 0.0
            for first in range(0, whole, _ABREAST):
                for lane in range(_ABREAST):
                    left = np.float64(queries[query + first + lane])
                    sums[lane] += left * np.float64(base[vector + first + lane])
            total = 0.0
            for lane in range(_ABREAST):
                total += sums[lane]
            for number in range(whole, dimensions):
                total += np.float64(queries[query + number]) * np.float64(base[vector + number])
            scores[place] = total
    return np.int64(0)


def split_agreeing(short, signatures, permutations, current, least, waiting, count, reached, agreements):
    """Part the `count` rows that are `waiting`: those that agree with row `current` in `least` values or more go to
    `reached`, with the number of values to `agreements`; the others stay, in order. Returns how many stay.

    `signatures` is (n, permutations), and `short` the lowest 16 bits of its values: they agree wherever these do, so
    the whole values are read of few rows.
    """
    left, found = np.int64(0), np.int64(0)
    own = current * permutations
    for place in range(count):
        row = np.int64(waiting[place])
        other, agreeing = row * permutations, np.int64(0)
        for column in range(permutations):
            agreeing += np.int64(short[own + column] == short[other + column])
        if agreeing >= least:
            agreeing = np.int64(0)
            for column in range(permutations):
                agreeing += np.int64(signatures[own + column] == signatures[other + column])
        if agreeing >= least:
            reached[found], agreements[found] = row, agreeing
            found += 1
        else:
            waiting[left] = row
            left += 1
    return left


def sum_spans(narrow, wide, is_wide, values, size, begins, ends, count, sums):
    """Write the sum of `values[id]` over the ids `begins[i]` to `ends[i]` to `sums[i]`, for each of `count` spans.

    The ids are `wide`, of 32 bits, where `is_wide` says so, else `narrow`, of 16. `values` has `size` entries. Returns
    -1, or the place of an id that is not among them.
    """
    for span in range(count):
        total = np.int64(0)
        if is_wide:
            for place in range(begins[span], ends[span]):
                number = np.int64(wide[place])
                if number >= size:
                    return np.int64(place)
                total += values[number]
        else:
            for place in range(begins[span], ends[span]):
                number = np.int64(narrow[place])
                if number >= size:
                    return np.int64(place)
                total += values[number]
        sums[span] = total
    return np.int64(-1)
