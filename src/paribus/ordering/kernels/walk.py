"""Algorithm 1 of In-Context Pretraining (arXiv 2310.10638) over whole neighbour lists and the listings of `graph`."""

import numba
import numpy as np

from paribus.native.intrinsics import address_of, f64_at, multiply_high, prefetch
from paribus.ordering.kernels.edges import edge_key, is_set, key_bits, key_document

_AHEAD = 16
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@numba.njit(inline="always")
def _random(state, place):
    """A number in [0, place], as int64, from a counter (splitmix64: Steele, Lea and Flood, 2014)."""
    value = state + np.uint64(place + 1) * _GOLDEN
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    value ^= value >> np.uint64(31)
    return np.int64(multiply_high(value, np.uint64(place + 1)))


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
    """Whether of two keys of one weight in single precision the first is the heavier edge in double precision."""
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
