"""Compiled loops of the corpus: hashes of runs of words, and how many of them texts share."""

import numpy as np

from paribus.native.compiler import inline

_SPACED, _UNSPACED, _MARK = 1, 2, 4
_BASE = np.uint64(0x9E3779B97F4A7C15)
_BYTE = np.uint64(0x100000001B3)
_SEED = np.uint64(0xCBF29CE484222325)
_ZERO, _ONE = np.uint64(0), np.uint64(1)


@inline
def _root(parents, document):
    """First of the documents that are joined with this one; paths are halved on the way."""
    while parents[document] != document:
        parents[document] = parents[parents[document]]
        document = np.int64(parents[document])
    return document


def count_shared(
    hashes,
    counts,
    documents,
    bits,
    bit_shift,
    keys,
    buckets,
    shift,
    starts,
    owners,
    seen,
    shared,
    touched,
    most,
    own,
    least,
    parents,
):
    """Raise most[i] to the number of distinct shingles that document i of a table shares with one of `documents`.

    Their hashes stand document after document, counts[d] of document d. The table: a bit for each value above
    `bit_shift` that a key has; sorted `keys`, of which those from buckets[b] to buckets[b + 1] have b above `shift`;
    and the documents owners[starts[k]:starts[k + 1]] of key k. `seen` (one more than keys, zeros at first; the first
    counts documents) and `shared` (a document of the table, zeros) are kept from call to call, `touched` has room for
    all documents.

    With `own` >= 0 the documents are the table's own from that number on: `most` stays, and each is joined in `parents`
    with those that share least[i] or more with it.
    """
    place = np.int64(0)
    for document in range(documents):
        number, reached = np.int32(seen[0] + 1), np.int64(0)
        seen[0] = number
        for current in range(place, place + counts[document]):
            value = hashes[current]
            # Most shingles are in no document of the table, and the bits alone fit into a cache.
            bit = value >> bit_shift
            if bits[np.int64(bit >> np.uint64(6))] >> (bit & np.uint64(63)) & np.uint64(1) == np.uint64(0):
                continue
            bucket = np.int64(value >> shift)
            key, last = buckets[bucket], buckets[bucket + 1]
            while key < last and keys[key] < value:
                key += 1
            if key == last or keys[key] != value or seen[key + 1] == number:
                continue
            seen[key + 1] = number
            for listed in range(starts[key], starts[key + 1]):
                owner = np.int64(owners[listed])
                if shared[owner] == 0:
                    touched[reached] = owner
                    reached += 1
                shared[owner] += 1
        place += counts[document]
        for index in range(reached):
            owner = np.int64(touched[index])
            if own < 0:
                most[owner] = max(most[owner], shared[owner])
            elif shared[owner] >= least[owner]:
                one, other = _root(parents, owner), _root(parents, own + document)
                parents[max(one, other)] = np.int32(min(one, other))
            shared[owner] = 0
    return np.int64(0)


@inline
def _mixed(value):
    """Each bit of the result depends on all of `value` (the finalizer of SplitMix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@inline
def _length(first):
    """Bytes of the UTF-8 character that begins with this byte."""
    return (
        np.int64(1) if first < 0x80 else np.int64(2) if first < 0xE0 else np.int64(3) if first < 0xF0 else np.int64(4)
    )


@inline
def _class(text, position, length, classes):
    """Class of the character of `length` bytes at `position`."""
    first = np.int64(text[position])
    if length == 1:
        return classes[first]
    codepoint = first & (0x7F >> length)
    for offset in range(1, length):
        codepoint = codepoint << 6 | np.int64(text[position + offset]) & 0x3F
    return classes[codepoint]


def hash_shingles(text, starts, count, classes, size, recent, hashes, counts):
    """Write the hash of each run of `size` words to `hashes`, text after text, and their numbers to `counts`.

    Text i is text[starts[i]:starts[i + 1]], valid UTF-8; `classes` are those of `corpus.overlap`; `recent` has room for
    `size`. A text of fewer words has one hash, of them all, and one without a word that of its bytes. Returns how many
    were written, at most one a byte and text.
    """
    power = _ONE
    for _ in range(size - 1):
        power *= _BASE
    written = np.int64(0)
    for number in range(count):
        begin, position, end = written, starts[number], starts[number + 1]
        words, kind = np.int64(0), np.int64(0)
        rolling, value = _ZERO, _SEED
        while position <= end:
            code, length = np.int64(0), np.int64(1)
            if position < end:
                length = _length(text[position])
                code = np.int64(_class(text, position, length, classes))
            goes_on = (kind == _SPACED and code & _SPACED != 0) or (kind == _UNSPACED and code & _MARK != 0)
            if kind != 0 and not goes_on:
                word, slot = _mixed(value), words % size
                if words >= size:
                    rolling -= recent[slot] * power
                rolling = rolling * _BASE + word
                recent[slot] = word
                words += 1
                if words >= size:
                    hashes[written] = _mixed(rolling)
                    written += 1
            if not goes_on:
                kind = _UNSPACED if code & _UNSPACED != 0 else code & _SPACED
                value = _SEED
            if kind != 0:
                for offset in range(length):
                    value = (value ^ np.uint64(text[position + offset])) * _BYTE
            position += length
        if words == 0:
            for place in range(starts[number], end):
                rolling = (rolling ^ np.uint64(text[place])) * _BYTE
        if written == begin:
            # Fewer words than a run has: what tells it from a whole run is their number.
            hashes[written] = _mixed(rolling + np.uint64(words + 1))
            written += 1
        counts[number] = written - begin
    return written
