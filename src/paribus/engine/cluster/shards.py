"""One map on a cluster: shards are handed to workers, results come back in order, what a dead worker had goes on."""

import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic

from paribus.engine.cluster.workers import Crew, Workers
from paribus.engine.engine import Item, Result
from paribus.errors import InfrastructureError, OutOfMemoryError

_SECONDS_BETWEEN_LOOKS = 1.0
"""How often nodes that came or went are looked for."""
_OF_MEMORY = "low on memory"
"""What Ray says of a worker that its own monitor of memory killed; of others it lists all that might have been."""


@dataclass(eq=False)
class Shard:
    """An item, how many workers died with it in hand, and what came of it."""

    item: Any
    deaths: int = 0
    done: bool = False
    result: Any = None
    error: BaseException | None = None


class ShardMap(Generic[Item, Result]):
    """Hands out shards; no more than two a worker wait for a result, or for somebody to take theirs."""

    def __init__(self, workers: Workers, retries: int, patience: float) -> None:
        self._workers, self._retries, self._patience = workers, retries, patience
        self._ray = workers.ray
        self._waiting: deque[Shard] = deque()
        """Shards in item order that nobody has taken the result of."""
        self._queue: deque[Shard] = deque()
        """Those of them that no worker has; what a dead worker had comes first."""
        self._in_hand: dict[Any, tuple[Crew, Shard]] = {}
        self._looked = self._alive = time.monotonic()

    def results(self, items: Iterable[Item]) -> Iterator[Result]:
        """Results in item order; an item's exception is raised in its place, and ends the map."""
        source = iter(items)
        while self._take(source):
            self._look_after_workers()
            self._hand_out()
            self._listen()
            if self._waiting[0].done:
                shard = self._waiting.popleft()
                if shard.error is not None:
                    raise shard.error
                yield shard.result

    def _take(self, source: Iterator[Item]) -> bool:
        """Take items up to the limit; whether there is anything left to wait for."""
        room = 2 * max(1, self._workers.capacity) - len(self._waiting)
        taken = [Shard(item) for item in islice(source, max(0, room))]
        self._waiting += taken
        self._queue += taken
        return bool(self._waiting)

    def _look_after_workers(self) -> None:
        now = time.monotonic()
        if any(crew.beginning is None for crew in self._workers.crews):
            self._alive = now
        elif now - self._alive > self._patience:
            raise InfrastructureError(
                f"engine.patience={self._patience:g}: no worker of the Ray cluster began in that time; see `ray status`"
            )
        if not self._workers.crews or now - self._looked > _SECONDS_BETWEEN_LOOKS:
            self._looked = now
            self._workers.fill()

    def _hand_out(self) -> None:
        free = [crew for crew in self._workers.crews if crew.free > 0]
        while self._queue and free:
            crew, shard = free[0], self._queue.popleft()
            reference = crew.actor.call.remote(shard.item)
            crew.busy.add(reference)
            self._in_hand[reference] = (crew, shard)
            # In turn, so that all nodes have something before one has all it can take.
            free = free[1:] + free[:1] if crew.free else free[1:]

    def _listen(self) -> None:
        """Note what is finished; wait for something where the next result is not there."""
        beginning = {crew.beginning: crew for crew in self._workers.crews if crew.beginning is not None}
        references = [*beginning, *self._in_hand]
        if not references:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            return
        wait = 0.0 if self._waiting[0].done else _SECONDS_BETWEEN_LOOKS
        ready, _ = self._ray.wait(references, num_returns=1, timeout=wait, fetch_local=False)
        if ready:
            ready, _ = self._ray.wait(references, num_returns=len(references), timeout=0, fetch_local=False)
        for reference in ready:
            if reference in beginning:
                self._begin(beginning[reference])
            elif reference in self._in_hand:
                self._finish(reference)

    def _begin(self, crew: Crew) -> None:
        try:
            self._ray.get(crew.beginning)
        except self._ray.exceptions.RayTaskError as error:
            raise _original(error) from error
        except self._ray.exceptions.RayError as error:
            self._workers.lost(crew, str(error))
        else:
            self._workers.began(crew)

    def _finish(self, reference: Any) -> None:
        crew, shard = self._in_hand.pop(reference)
        crew.busy.discard(reference)
        try:
            shard.result = self._ray.get(reference)
            shard.done = True
        except self._ray.exceptions.RayTaskError as error:
            shard.error = _original(error)
            shard.error.__cause__ = error
            shard.done = True
        except self._ray.exceptions.RayError as error:
            self._again(shard, error)
            if isinstance(error, self._ray.exceptions.RayActorError):
                self._lose(crew, error)

    def _lose(self, crew: Crew, error: Exception) -> None:
        for reference in crew.busy:
            self._again(self._in_hand.pop(reference)[1], error)
        crew.busy.clear()
        self._workers.lost(crew, str(error))

    def _again(self, shard: Shard, error: Exception) -> None:
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
    """What the function raised, as it was; Ray's own error where that cannot be had."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, BaseException) else error
