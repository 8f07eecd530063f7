"""Batches of which as much is computed at once as there is memory for. Imports torch: import this module late."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from paribus.errors import OutOfMemoryError, is_out_of_memory

Item = TypeVar("Item")
Result = TypeVar("Result")


class BatchMemory:
    """How many items there was memory for so far: what a batch was halved to, the following ones begin with."""

    def __init__(self, doing: str, smaller: str = "model.context_length") -> None:
        self._doing, self._smaller = doing, smaller
        """What is being done, and the field that makes it take less, for an error."""
        self._most: int | None = None

    def computed(
        self, compute: Callable[[Sequence[Item]], Result], batch: Sequence[Item]
    ) -> Iterator[tuple[Sequence[Item], Result]]:
        """The parts of a batch with their results: all of it at once, or halves and halves of these where memory is
        short.

        OutOfMemoryError, which says what was being done, where it does not suffice for a single item.
        """
        size = len(batch) if self._most is None else self._most
        for start in range(0, len(batch), max(1, size)):
            yield from self._halved(compute, batch[start : start + size])

    def _halved(
        self, compute: Callable[[Sequence[Item]], Result], batch: Sequence[Item]
    ) -> Iterator[tuple[Sequence[Item], Result]]:
        short: str | None = None
        try:
            result = compute(batch)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            short = str(error)
        # Not within the handler: its error keeps alive the frames, and with them the tensors, of what did not fit.
        if short is None:
            yield batch, result
            return
        if len(batch) == 1:
            raise OutOfMemoryError(
                f"{self._doing} ran out of memory with a single one at a time; give it a device with more, or take a "
                f"smaller {self._smaller} ({short})"
            )
        middle = len(batch) // 2
        self._most = max(1, middle)
        for part in (batch[:middle], batch[middle:]):
            yield from self._halved(compute, part)
