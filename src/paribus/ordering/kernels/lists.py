"""Lists of neighbours made whole: some documents left out, the rest numbered anew, heaviest edge first."""

import numpy as np

from paribus.ordering.kernels.edges import edge_key, key_bits, key_document


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
