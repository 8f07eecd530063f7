"""The same map over shards, wherever it runs: in this process, in others (`local`) or on a Ray cluster (`ray`).

In come a function and items, out come its results in the order of the items, so that no artefact depends on the number
of workers. An exception of an item ends the map and comes back as it was; a worker that is killed is replaced by the
engine that can do so, and ends the map with an InfrastructureError or OutOfMemoryError in the others."""

import importlib.util
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeVar

from paribus.config.groups.execution import EngineConfig, RayEngineConfig

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Where shards are computed; a context manager that gives back what it took."""

    @property
    def workers(self) -> int:
        """Shards that are computed at once."""

    @property
    def shares_memory(self) -> bool:
        """Whether all workers are on this machine, so that threads of this process can do what a map would."""

    def map(
        self, function: Callable[[Item], Result], items: Iterable[Item], *, releases_gil: bool = False
    ) -> Iterator[Result]:
        """Results in item order. `function` must be importable (module level); its exceptions propagate.

        No more than two items a worker are handed out that nobody has taken the result of. A function may be called
        twice for one item where a worker died, so what it writes must appear in one step. What it loads at its first
        call may stay loaded. One that `releases_gil`, the global interpreter lock, for most of its time and that
        threads may call at once is called by threads, which share what it carries.
        """

    def __enter__(self) -> Self:
        """The engine itself."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give back what it took."""


def open_engine(config: EngineConfig, shared: Path) -> Engine:
    """The engine of `config`; it takes processes, or joins a cluster, at its first map.

    `shared` is a directory that every node of a cluster must see.
    """
    if isinstance(config, RayEngineConfig):
        from paribus.engine.ray import RayEngine

        return RayEngine(config, shared)
    from paribus.engine.local import LocalEngine

    return LocalEngine(config.workers)


def problems(config: EngineConfig) -> list[tuple[str, str]]:
    """(config path, what is wrong and what would be right) of an engine that cannot be opened on this machine."""
    if not isinstance(config, RayEngineConfig):
        return []
    found = []
    if importlib.util.find_spec("ray") is None:
        found.append(("engine.kind", "ray is not installed; pip install 'paribus[ray]', or use engine=local"))
    if config.address is not None and "://" in config.address:
        message = f"{config.address!r} is no host:port; start paribus on a machine of the cluster and say auto"
        found.append(("engine.address", message))
    return found
