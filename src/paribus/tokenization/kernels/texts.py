"""Where Python keeps the UTF-8 of many strings; runs while it holds the interpreter's lock."""

import numpy as np

from paribus.native.intrinsics import call_with_place


def find_texts(strings, count, as_utf8, addresses, sizes):
    """Address and size of the UTF-8 of each string; returns how many there are, or the first that has none.

    `strings` holds the addresses of Python objects and `as_utf8` is that of PyUnicode_AsUTF8AndSize.
    """
    for index in range(count):
        address = call_with_place(as_utf8, strings[index], sizes, index)
        if address == 0:
            return np.int64(index)
        addresses[index] = address
    return np.int64(count)
