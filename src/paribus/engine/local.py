"""Map a function over shards in this process or in a pool of processes on this machine.

Results come back in the order of the items whatever the number of workers, so an artefact never depends on it.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class LocalEngine:
    """Processes of this machine; `workers=1` stays in this process, 0 takes one a core."""

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers or os.cpu_count() or 1

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Results in item order. `function` must be importable (module level); its exceptions propagate."""
        if self.workers == 1:
            yield from map(function, items)
            return
        context = multiprocessing.get_context("forkserver")
        with ProcessPoolExecutor(self.workers, mp_context=context) as pool:
            yield from pool.map(function, items)
