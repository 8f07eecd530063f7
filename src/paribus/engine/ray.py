"""The engine of a Ray cluster: joining one, its workers, and the map over shards.

Ray carries functions, items and results between our own processes as pickles, as `multiprocessing` does; nothing is
read from files that way. Results should be small: what is large goes to files, which all nodes see.
"""

import os
import platform
import shutil
import socket
import tempfile
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Generic, Self

from paribus import __version__
from paribus.config.groups.execution import RayEngineConfig
from paribus.engine import Item, Result
from paribus.engine.processes import THREADS
from paribus.errors import ConfigurationError, InfrastructureError, OutOfMemoryError
from paribus.store.provenance import loaded_code, pin_code

_SECONDS_BETWEEN_LOOKS = 1.0
_OF_MEMORY = "low on memory"
"""Ray's words for a worker that its memory monitor killed; for other deaths it lists every possible cause."""
_MAX_FAILED_STARTS = 4
"""Workers that may die before they begin, one after the other, until their node is left out."""
_ENVIRONMENT = dict.fromkeys(THREADS, "1") | {"TOKENIZERS_PARALLELISM": "false", "CUDA_VISIBLE_DEVICES": ""}
"""A worker has one core and no GPU, whatever its node has: results must not depend on where a shard is computed."""
_SECONDS_UNTIL_SEEN = 60.0
"""Time for which a network file system may hide a new file."""
_LONGEST_DIRECTORY = 30
"""Characters of a temporary directory below which the names of Ray's sockets still fit."""
_LOOPBACK_ONLY = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Variable that binds Ray to the loopback interface alone, as on machines where it offers no clusters."""
_NO_USAGE_STATS = {"RAY_USAGE_STATS_ENABLED": "0"}


class RayEngine:
    """Workers on the nodes of a cluster; joined, or started on this machine, at the first map.

    A worker or node that dies costs the shards it had in hand: they are handed to others, up to `config.retries` times
    each; then InfrastructureError. `shared` is a directory that every node must see: ConfigurationError names one
    that does not, or that has other versions of the packages.
    """

    shares_memory = False

    def __init__(self, config: RayEngineConfig, shared: Path) -> None:
        self.config, self._shared = config, shared
        self._directory: Path | None = None
        self._ray: Any = None

    @property
    def workers(self) -> int:
        """Cores of the cluster, or as many of them as the configuration allows."""
        return sum(self.shares(self.nodes()).values())

    def map(
        self, function: Callable[[Item], Result], items: Iterable[Item], *, releases_gil: bool = False
    ) -> Iterator[Result]:
        """Results in item order, as `Engine` says.

        Each worker has one core and a function of its own, which stays loaded until the map ends; of a function that
        `releases_gil`, each node has one, called by as many threads as it has cores.
        """
        with (
            _requirements(self._shared) as requirements,
            Workers(self, function, requirements, threads=releases_gil) as workers,
        ):
            yield from ShardMap[Item, Result](workers, self.config.retries, self.config.patience).results(items)

    @property
    def ray(self) -> Any:
        """The module, connected when it is first asked for. InfrastructureError where no cluster answers."""
        if self._ray is None:
            # Ray reads some of these when it is imported.
            os.environ.update(_NO_USAGE_STATS if self.config.address else _NO_USAGE_STATS | _LOOPBACK_ONLY)
            import ray

            if self.config.address:
                self._join(ray)
            else:
                self._start(ray)
            self._ray = ray
        return self._ray

    def nodes(self) -> dict[str, int]:
        """Cores of each living node by its id; nodes without are left out."""
        living = [node for node in self.ray.nodes() if node["Alive"]]
        cores = {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in living}
        return {node: count for node, count in cores.items() if count}

    def shares(self, nodes: dict[str, int]) -> dict[str, int]:
        """Number of cores to use on each node, given the number that it has."""
        unused = self.config.workers or sum(nodes.values())
        shares = {}
        for node, cores in sorted(nodes.items()):
            shares[node] = min(cores, unused)
            unused -= shares[node]
        return shares

    def _join(self, ray: Any) -> None:
        address = self.config.address
        try:
            ray.init(address=address)
        except (ConnectionError, OSError, ValueError, RuntimeError) as error:
            raise InfrastructureError(
                f"engine.address={address}: no Ray cluster can be reached ({error}); start one on this machine with "
                "`ray start`, or leave engine.address at null"
            ) from error

    def _start(self, ray: Any) -> None:
        base = tempfile.gettempdir()
        short = base if len(base) <= _LONGEST_DIRECTORY else "/tmp"
        self._directory = Path(tempfile.mkdtemp(prefix="paribus-ray-", dir=short))
        cores = self.config.workers or os.cpu_count() or 1
        try:
            ray.init("local", num_cpus=cores, include_dashboard=False, _temp_dir=str(self._directory))
        except Exception as error:  # Ray has no class of its own for a start that took too long
            ray.shutdown()
            self._forget_directory()
            raise InfrastructureError(f"engine=ray: Ray does not start on this machine: {error}") from error

    def _forget_directory(self) -> None:
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the cluster; what was started here is stopped and its files are removed."""
        if self._ray is not None:
            self._ray.shutdown()
            self._ray = None
        self._forget_directory()


@dataclass(eq=False)
class Shard:
    """An item, how many workers died with it in hand, and what came of it."""

    item: Any
    deaths: int = 0
    done: bool = False
    result: Any = None
    error: BaseException | None = None


@dataclass(eq=False)
class WorkerActor:
    """An actor: its node, how many shards it computes at once, and the references to those."""

    node: str
    actor: Any
    threads: int
    starting: Any
    """Reference that is ready when the actor is; None from then on."""
    busy: set[Any] = field(default_factory=set)

    @property
    def free(self) -> int:
        """Number of further shards that it can compute now."""
        return 0 if self.starting is not None else self.threads - len(self.busy)


@dataclass(frozen=True)
class Requirements:
    """Versions that a node must have, and a file that it must see."""

    versions: dict[str, str]
    probe: Path

    def check(self) -> None:
        """ConfigurationError where this process' node lacks something."""
        here = _versions()
        differing = [name for name, version in self.versions.items() if here.get(name) != version]
        if differing:
            present = ", ".join(f"{name} {here.get(name)}" for name in differing)
            required = ", ".join(f"{name} {self.versions[name]}" for name in differing)
            raise ConfigurationError(
                f"engine.address: node {socket.gethostname()} has {present}, and this machine {required}; "
                "all nodes must have one environment"
            )
        if not _appears(self.probe):
            raise ConfigurationError(
                f"engine.address: node {socket.gethostname()} does not see {self.probe.parent}; the output root must "
                "lie on a file system that all nodes share"
            )


@contextmanager
def _requirements(shared: Path) -> Iterator[Requirements]:
    """Yield the versions of this process, and a file in directory `shared` that is there until the block ends."""
    probe = shared / f".seen-by-all-nodes-{uuid.uuid4().hex}"
    probe.touch()
    try:
        yield Requirements(_versions(), probe)
    finally:
        probe.unlink(missing_ok=True)


class Workers:
    """The workers of one map; a context manager that stops them when it ends, whatever they are doing.

    Nodes may come and go: every living node has its workers, one that was lost is replaced, and a node where workers
    keep dying before they begin is left out.

    With `threads`, a node has one process whose threads share one function; otherwise a process and a function a core.
    """

    def __init__(
        self, engine: RayEngine, function: Callable[[Any], Any], requirements: Requirements, *, threads: bool
    ) -> None:
        self._engine, self._requirements, self._threads = engine, requirements, threads
        self.ray = engine.ray
        self._function = self.ray.put(function)
        self._failures: Counter[str] = Counter()
        self._last_failure = ""
        self.actors: list[WorkerActor] = []

    @property
    def capacity(self) -> int:
        """Shards that can be computed at once."""
        return sum(worker.threads for worker in self.actors)

    def fill(self) -> None:
        """Give every living node the workers it lacks. InfrastructureError where they die on all of them."""
        nodes = self._engine.nodes()
        healthy = {node: cores for node, cores in nodes.items() if self._failures[node] < _MAX_FAILED_STARTS}
        if nodes and not healthy:
            raise InfrastructureError(f"engine=ray: workers die before they begin: {self._last_failure}")
        present: Counter[str] = Counter()
        for worker in self.actors:
            present[worker.node] += worker.threads
        for node, cores in self._engine.shares(healthy).items():
            lacking = cores - present[node]
            if self._threads and lacking == cores > 0:
                self._start(node, cores)
            elif not self._threads:
                for _ in range(lacking):
                    self._start(node, 1)

    def began(self, worker: WorkerActor) -> None:
        """Note that a worker is ready."""
        worker.starting = None
        self._failures[worker.node] = 0

    def lost(self, worker: WorkerActor, reason: str) -> None:
        """Remove a worker that died or cannot be reached, and kill its actor; count a failed start on a living node."""
        if worker in self.actors:
            self.actors.remove(worker)
            self.ray.kill(worker.actor, no_restart=True)
            if worker.starting is not None and worker.node in self._engine.nodes():
                self._failures[worker.node] += 1
                self._last_failure = reason

    def _start(self, node: str, threads: int) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        actor_class = self.ray.remote(
            num_cpus=threads,
            max_concurrency=threads,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        )(Worker)
        actor = actor_class.remote()
        # In a list, so that Ray hands over the reference: the node is checked before it loads anything.
        starting = actor.prepare.remote([self._function], self._requirements)
        self.actors.append(WorkerActor(node, actor, threads, starting))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.actors:
            self.ray.kill(worker.actor, no_restart=True)
        self.actors.clear()


class ShardMap(Generic[Item, Result]):
    """Hands out shards: at most two a worker are computed, or wait for their results to be taken."""

    def __init__(self, workers: Workers, retries: int, patience: float) -> None:
        self._workers, self._retries, self._patience = workers, retries, patience
        self._ray = workers.ray
        self._waiting: deque[Shard] = deque()
        """Shards in item order whose results are not yet taken."""
        self._queue: deque[Shard] = deque()
        """Waiting shards that no worker has; those that a dead worker had come first."""
        self._running: dict[Any, tuple[WorkerActor, Shard]] = {}
        self._looked = self._alive = time.monotonic()

    def results(self, items: Iterable[Item]) -> Iterator[Result]:
        """Results in item order; an item's exception is raised in its place, and ends the map."""
        source = iter(items)
        while self._take(source):
            self._maintain_workers()
            self._hand_out()
            self._collect()
            if self._waiting[0].done:
                shard = self._waiting.popleft()
                if shard.error is not None:
                    raise shard.error
                yield shard.result

    def _take(self, source: Iterator[Item]) -> bool:
        """Take items up to the limit; True if results are still to come."""
        room = 2 * max(1, self._workers.capacity) - len(self._waiting)
        taken = [Shard(item) for item in islice(source, max(0, room))]
        self._waiting += taken
        self._queue += taken
        return bool(self._waiting)

    def _maintain_workers(self) -> None:
        now = time.monotonic()
        if any(worker.starting is None for worker in self._workers.actors):
            self._alive = now
        elif now - self._alive > self._patience:
            raise InfrastructureError(
                f"engine.patience={self._patience:g}: no worker of the Ray cluster began in that time; see `ray status`"
            )
        if not self._workers.actors or now - self._looked > _SECONDS_BETWEEN_LOOKS:
            self._looked = now
            self._workers.fill()

    def _hand_out(self) -> None:
        free = [worker for worker in self._workers.actors if worker.free > 0]
        while self._queue and free:
            worker, shard = free[0], self._queue.popleft()
            reference = worker.actor.call.remote(shard.item)
            worker.busy.add(reference)
            self._running[reference] = (worker, shard)
            # In turn, so that all nodes have something before one has all it can take.
            free = free[1:] + free[:1] if worker.free else free[1:]

    def _collect(self) -> None:
        """Take in what is ready; wait for it where the next result is not done."""
        starting = {worker.starting: worker for worker in self._workers.actors if worker.starting is not None}
        references = [*starting, *self._running]
        if not references:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            return
        wait = 0.0 if self._waiting[0].done else _SECONDS_BETWEEN_LOOKS
        ready, _ = self._ray.wait(references, num_returns=1, timeout=wait, fetch_local=False)
        if ready:
            ready, _ = self._ray.wait(references, num_returns=len(references), timeout=0, fetch_local=False)
        for reference in ready:
            if reference in starting:
                self._begin(starting[reference])
            elif reference in self._running:
                self._finish(reference)

    def _begin(self, worker: WorkerActor) -> None:
        try:
            self._ray.get(worker.starting)
        except self._ray.exceptions.RayTaskError as error:
            raise _original(error) from error
        except self._ray.exceptions.RayError as error:
            self._workers.lost(worker, str(error))
        else:
            self._workers.began(worker)

    def _finish(self, reference: Any) -> None:
        worker, shard = self._running.pop(reference)
        worker.busy.discard(reference)
        try:
            shard.result = self._ray.get(reference)
            shard.done = True
        except self._ray.exceptions.RayTaskError as error:
            shard.error = _original(error)
            shard.error.__cause__ = error
            shard.done = True
        except self._ray.exceptions.RayError as error:
            self._retry(shard, error)
            if isinstance(error, self._ray.exceptions.RayActorError):
                for lost in worker.busy:
                    self._retry(self._running.pop(lost)[1], error)
                worker.busy.clear()
                self._workers.lost(worker, str(error))

    def _retry(self, shard: Shard, error: Exception) -> None:
        """Hand a shard out again whose worker died, unless that happened too often."""
        shard.deaths += 1
        if shard.deaths <= self._retries:
            self._queue.appendleft(shard)
            return
        failure = OutOfMemoryError if _OF_MEMORY in str(error) else InfrastructureError
        shard.error = failure(
            f"engine.retries={self._retries}: {shard.deaths} workers died computing the shard {_short(shard.item)}; "
            f"the last: {_short(error)}"
        )
        shard.done = True


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 300 else f"{text[:300]} ..."


def _original(error: Any) -> BaseException:
    """Exception that the function raised; Ray's own error where it has none."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, BaseException) else error


class Worker:
    """The actor of a node: what its function loads at the first call stays loaded for the next one."""

    def __init__(self) -> None:
        self._function: Any = None

    def prepare(self, function: list[Any], requirements: Requirements) -> None:
        """Check the requirements, then get the function behind the one reference in `function`."""
        import ray
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        os.environ.update(_ENVIRONMENT)
        requirements.check()
        pin_code(loaded_code())
        threadpool_limits(1)
        self._function = ray.get(function[0])

    def call(self, item: Any) -> Any:
        return self._function(item)


def _versions() -> dict[str, str]:
    code = loaded_code()
    version = f"{__version__} (files {code.digest[:12]})"
    return {"paribus": version, "python": platform.python_version(), **code.packages}


def _appears(path: Path) -> bool:
    end = time.monotonic() + _SECONDS_UNTIL_SEEN
    while not path.exists():
        if time.monotonic() > end:
            return False
        time.sleep(0.5)
    return True
