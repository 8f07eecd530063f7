"""Which MinHash signatures of a bucket agree with one of them."""

import numpy as np


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
