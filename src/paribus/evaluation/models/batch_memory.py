"""Batches of which as much is computed at once as there is memory for. Imports torch: import this module late."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

from paribus.errors import OutOfMemoryError

Item = TypeVar("Item")
Result = TypeVar("Result")


def computed(
    compute: Callable[[Sequence[Item]], Result], batch: Sequence[Item], doing: str
) -> Iterator[tuple[Sequence[Item], Result]]:
    """The parts of a batch with their results: all of it at once, or halves and halves of these where memory is short.

    OutOfMemoryError, which says what was being done, where it does not suffice for a single item.
    """
    short: str | None = None
    try:
        result = compute(batch)
    except (torch.OutOfMemoryError, MemoryError) as error:
        short = str(error)
    # Not within the handler: its error keeps alive the frames, and with them the tensors, of what did not fit.
    if short is None:
        yield batch, result
        return
    if len(batch) == 1:
        raise OutOfMemoryError(
            f"{doing} ran out of memory with a single one at a time; give it a device with more, or take a smaller "
            f"model.context_length ({short})"
        )
    middle = len(batch) // 2
    for part in (batch[:middle], batch[middle:]):
        yield from computed(compute, part, doing)
