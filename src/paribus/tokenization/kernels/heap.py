"""A binary heap of uint64, smallest first."""

import numpy as np

from paribus.native.intrinsics import function


@function
def sift_down(heap, size, index):
    """Restore order below `index`."""
    value = heap[index]
    while True:
        child = 2 * index + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[index] = heap[child]
        index = child
    heap[index] = value


@function
def heapify(heap, size):
    """Order `size` values."""
    for index in range(size // 2 - 1, -1, -1):
        sift_down(heap, size, np.int64(index))


@function
def push(heap, size, value):
    """Add a value; returns the size."""
    index = size
    while index > 0:
        parent = (index - 1) // 2
        if heap[parent] <= value:
            break
        heap[index] = heap[parent]
        index = parent
    heap[index] = value
    return size + 1


@function
def pop(heap, size):
    """Take away the smallest, `heap[0]`; returns the size."""
    size -= 1
    heap[0] = heap[size]
    if size > 1:
        sift_down(heap, size, np.int64(0))
    return size
