"""How many shingles each of some documents shares with others that stream past."""

import numpy as np

from paribus.native.intrinsics import inline


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
