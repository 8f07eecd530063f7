"""A priority queue whose keys' counts rise and fall.

A count that falls leaves its old entry in the heap; the entry is corrected when it comes to the head. So each live
key always has an entry at least as large as its count, and a fall costs nothing.
"""

import heapq


class LazyQueue:
    """Maximum of integer keys by count; the smaller key goes first at equal count."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []

    def set(self, key: int, count: int) -> None:
        """Give `key` this count; zero removes it."""
        if count == 0:
            self._counts.pop(key, None)
            return
        if count > self._counts.get(key, 0):
            heapq.heappush(self._heap, (-count, key))
        self._counts[key] = count

    def add(self, changes: dict[int, int]) -> None:
        """Add a change to each key's count."""
        counts = self._counts
        for key, change in changes.items():
            if change:
                self.set(key, counts.get(key, 0) + change)

    def head(self) -> tuple[int, int] | None:
        """(key, count) of the largest count, or None when the queue is empty."""
        heap, counts = self._heap, self._counts
        while heap:
            negative, key = heap[0]
            count = counts.get(key, 0)
            if count == -negative:
                return key, count
            if 0 < count < -negative:
                heapq.heapreplace(heap, (-count, key))
            else:
                heapq.heappop(heap)
        return None
