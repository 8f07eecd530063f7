"""The engine of a Ray cluster.

Ray carries functions, items and results between our own processes as pickles, as `multiprocessing` does; nothing is
read from a file that way. Results should be small: what is large goes to files, which all nodes see.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from paribus.config.groups.execution import RayEngineConfig
from paribus.engine.cluster.connection import Connection
from paribus.engine.cluster.shards import ShardMap
from paribus.engine.cluster.worker import Requirements
from paribus.engine.cluster.workers import Workers
from paribus.engine.engine import Item, Result


class RayEngine:
    """Workers on the nodes of a cluster; joined, or started on this machine, at the first map.

    A worker or node that dies costs the shards it had in hand: they are handed to others, up to `config.retries` times
    each; then InfrastructureError. `shared` is a directory that every node must see: ConfigurationError names one
    that does not, or that has other versions of the packages.
    """

    shares_memory = False

    def __init__(self, config: RayEngineConfig, shared: Path) -> None:
        self._config, self._shared = config, shared
        self._connection = Connection(config.address, config.workers)

    @property
    def workers(self) -> int:
        """Cores of the cluster, or as many of them as the configuration allows."""
        nodes = self._connection.nodes()
        return sum(self._shares(nodes).values())

    def map(
        self, function: Callable[[Item], Result], items: Iterable[Item], *, releases_gil: bool = False
    ) -> Iterator[Result]:
        """Results in item order, as `Engine` says.

        Each worker has one core and a function of its own, which stays loaded until the map ends; of a function that
        `releases_gil`, each node has one, called by as many threads as it has cores.
        """
        self._connection.open()
        with Requirements.of(self._shared) as requirements:
            workers = Workers(self._connection, function, requirements, self._shares, threads=releases_gil)
            with workers:
                shards = ShardMap[Item, Result](workers, self._config.retries, self._config.patience)
                yield from shards.results(items)

    def _shares(self, nodes: dict[str, int]) -> dict[str, int]:
        """How many cores of each node are used, given how many it has."""
        left = self._config.workers or sum(nodes.values())
        shares = {}
        for node, cores in sorted(nodes.items()):
            shares[node] = min(cores, left)
            left -= shares[node]
        return shares

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the cluster, or stop what was started."""
        self._connection.close()
