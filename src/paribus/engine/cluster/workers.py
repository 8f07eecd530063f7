"""The workers of one map, spread over the nodes that are there.

Nodes may come and go: every living node has its workers, one that was lost is replaced, and a node where workers keep
dying before they begin is left out.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from paribus.engine.cluster.connection import Connection
from paribus.engine.cluster.worker import Requirements, Worker
from paribus.errors import InfrastructureError

_STARTS = 4
"""Workers that may die on a living node, one after the other, before one begins."""

Shares = Callable[[dict[str, int]], dict[str, int]]


@dataclass(eq=False)
class Crew:
    """One actor: where it is, how many shards it computes at once, and the references to those."""

    node: str
    actor: Any
    threads: int
    beginning: Any
    """Reference that is ready when the actor is; None from then on."""
    busy: set[Any] = field(default_factory=set)

    @property
    def free(self) -> int:
        """How many more shards it can compute now."""
        return 0 if self.beginning is not None else self.threads - len(self.busy)


class Workers:
    """A context manager: its workers are stopped when it ends, whatever they are doing.

    With `threads`, a node has one process whose threads share one function; otherwise a process and a function a core.
    `shares` says how many cores of each node are used.
    """

    def __init__(
        self,
        connection: Connection,
        function: Callable[[Any], Any],
        requirements: Requirements,
        shares: Shares,
        *,
        threads: bool,
    ) -> None:
        self._connection, self._requirements, self._shares, self._threads = connection, requirements, shares, threads
        self._ray = connection.ray
        self._function = self._ray.put(function)
        self._failures: Counter[str] = Counter()
        self._last_failure = ""
        self.crews: list[Crew] = []

    @property
    def capacity(self) -> int:
        """Shards that can be computed at once."""
        return sum(crew.threads for crew in self.crews)

    @property
    def ray(self) -> Any:
        """The module, connected."""
        return self._ray

    def fill(self) -> None:
        """Give every living node the workers it lacks. InfrastructureError where they die on all of them."""
        nodes = self._connection.nodes()
        healthy = {node: cores for node, cores in nodes.items() if self._failures[node] < _STARTS}
        if nodes and not healthy:
            raise InfrastructureError(f"engine=ray: workers die before they begin: {self._last_failure}")
        present: Counter[str] = Counter()
        for crew in self.crews:
            present[crew.node] += crew.threads
        for node, cores in self._shares(healthy).items():
            lacking = cores - present[node]
            if self._threads and lacking == cores > 0:
                self._start(node, cores)
            elif not self._threads:
                for _ in range(lacking):
                    self._start(node, 1)

    def began(self, crew: Crew) -> None:
        """Note that a crew is ready."""
        crew.beginning = None
        self._failures[crew.node] = 0

    def lost(self, crew: Crew, reason: str) -> None:
        """Note that a crew is dead, or cannot be reached and shall be."""
        if crew in self.crews:
            self.crews.remove(crew)
            self._ray.kill(crew.actor, no_restart=True)
            if crew.beginning is not None and crew.node in self._connection.nodes():
                self._failures[crew.node] += 1
                self._last_failure = reason

    def _start(self, node: str, threads: int) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        actor_class = self._ray.remote(
            num_cpus=threads,
            max_concurrency=threads,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        )(Worker)
        actor = actor_class.remote()
        # In a list, so that Ray hands over the reference: the node is checked before it loads anything.
        beginning = actor.prepare.remote([self._function], self._requirements)
        self.crews.append(Crew(node, actor, threads, beginning))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for crew in self.crews:
            self._ray.kill(crew.actor, no_restart=True)
        self.crews.clear()
