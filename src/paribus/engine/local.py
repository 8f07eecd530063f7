"""Opening of the engine that a configuration describes, and the engine of this machine: processes, threads or neither.

One shard alone is computed in this process as well: a small corpus has no more, and another process would first have to
start and to import what this one has.
"""

import importlib.util
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Self

from paribus.config.groups.execution import EngineConfig, RayEngineConfig
from paribus.engine import Engine, Item, Result
from paribus.engine.processes import end_with_starter, out_of_memory_kills
from paribus.errors import InfrastructureError, OutOfMemoryError, Problem
from paribus.store.provenance import changed, loaded_code, pin_code


def open_engine(config: EngineConfig, shared: Path) -> Engine:
    """The engine of `config`; it takes processes, or joins a cluster, at its first map.

    `shared` is a directory that every node of a cluster must see.
    """
    if isinstance(config, RayEngineConfig):
        from paribus.engine.ray import RayEngine

        return RayEngine(config, shared)
    return LocalEngine(config.workers)


def check_engine(config: EngineConfig) -> list[Problem]:
    """Problems of an engine that cannot be opened on this machine."""
    if not isinstance(config, RayEngineConfig):
        return []
    problems = []
    if importlib.util.find_spec("ray") is None:
        problems.append(Problem("engine.kind", "ray is not installed; pip install 'paribus[ray]', or use engine=local"))
    if config.address is not None and "://" in config.address:
        message = f"{config.address!r} is no host:port; start paribus on a machine of the cluster and say auto"
        problems.append(Problem("engine.address", message))
    return problems


class LocalEngine:
    """Processes of this machine; `workers=1` stays in this process, 0 takes one a core."""

    shares_memory = True

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers or os.cpu_count() or 1

    def map(
        self, function: Callable[[Item], Result], items: Iterable[Item], *, releases_gil: bool = False
    ) -> Iterator[Result]:
        """Results in item order, as `Engine` says; a function that `releases_gil` is called by threads here."""
        source = iter(items)
        first = list(islice(source, 2)) if self.workers > 1 else []
        items = chain(first, source)
        if len(first) < 2:
            yield from map(function, items)
            return
        checked = function if releases_gil else partial(_call_same_code, loaded_code().digest, function)
        killed_before = out_of_memory_kills()
        context = multiprocessing.get_context("forkserver")
        processes = partial(ProcessPoolExecutor, mp_context=context, initializer=end_with_starter)
        try:
            with (ThreadPoolExecutor if releases_gil else processes)(self.workers) as pool:
                yield from _in_order(pool, checked, items, 2 * self.workers)
        except BrokenProcessPool as error:
            if out_of_memory_kills() > killed_before:
                raise OutOfMemoryError("the kernel killed a worker for want of memory; lower engine.workers") from error
            raise InfrastructureError(
                "a worker was killed from outside, and not by the kernel for want of memory"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held between maps."""


def _call_same_code(digest: str, function: Callable[[Item], Result], item: Item) -> Result:
    """Call a function in a worker; ConfigurationError where the worker, which began later, imported other code."""
    if loaded_code().digest != digest:
        raise changed(["files of paribus or versions of packages"])
    pin_code(loaded_code())
    return function(item)


def _in_order(
    pool: Executor, function: Callable[[Item], Result], items: Iterable[Item], ahead: int
) -> Iterator[Result]:
    """Results in item order, with at most `ahead` items handed out before their results are taken."""
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
