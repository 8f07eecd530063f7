"""Sums over spans of an encoded corpus, whose ids are looked up in a table as they are read."""

import numpy as np


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
