"""Map over shards, the same wherever it runs: in this process, in others (`local`) or on a Ray cluster (`ray`).

In come a function and items, out come its results in the order of the items, so that no artefact depends on the number
of workers. An exception of an item ends the map and comes back as it was; a worker that is killed is replaced by the
engine that can do so, and ends the map with an InfrastructureError or OutOfMemoryError in the others."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, Self, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """A way to compute shards; a context manager that gives back what it took."""

    @property
    def workers(self) -> int:
        """Shards that are computed at once."""

    @property
    def shares_memory(self) -> bool:
        """True if all workers are on this machine, so that threads of this process can do what a map would."""

    def map(
        self, function: Callable[[Item], Result], items: Iterable[Item], *, releases_gil: bool = False
    ) -> Iterator[Result]:
        """Results in item order. `function` must be importable (module level); its exceptions propagate.

        At most two items a worker are handed out before their results are taken. A function may be called twice for
        one item where a worker died, so what it writes must appear in one step. What it loads at its first call may
        stay loaded. `releases_gil` is for a function that is thread-safe and releases the global interpreter lock for
        most of its time: threads call it, and share what it carries.
        """

    def __enter__(self) -> Self:
        """The engine itself."""

    def __exit__(self, *_: object) -> None:
        """Give back what it took."""
