"""Batches of what a model computes, and the processes that share them. Imports torch: import this module late.

Batches are laid out alike in every process, and a whole batch is computed by one of them: so numbers are those of one
process to the last bit. A process that halves a batch for want of memory moves the last bits of that batch.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from paribus.errors import InfrastructureError
from paribus.evaluation.progress import Progress
from paribus.evaluation.prompts.pairs import Ids
from paribus.modeling.device import BatchMemory
from paribus.training.distributed import Host

Item = TypeVar("Item")
Result = TypeVar("Result")


def computed(  # noqa: PLR0917 (who computes what of which, and who is told)
    host: Host,
    doing: str,
    parts: Sequence[Sequence[Item]],
    compute: Callable[[Sequence[Item]], Result],
    ids: Callable[[Item], Iterable[Ids]],
    progress: Progress = lambda items: None,
) -> Iterator[tuple[Sequence[Item], Result]]:
    """The batches `parts`, or what they were halved to, with the results of all processes; all must ask.

    `progress` is told the number of items just finished. OutOfMemoryError, which says what was `doing`, where a single
    item does not fit; InfrastructureError where another process has other items, by their `ids`.
    """
    memory = BatchMemory(doing)
    if not parts:
        return
    if host.size == 1:
        for part in parts:
            for some, result in memory.computed(compute, part):
                yield some, result
                progress(len(some))
        return
    _agree(host, parts, ids)
    left, own = sum(map(len, parts)), []
    for number in range(host.rank, len(parts), host.size):
        start = 0
        for some, result in memory.computed(compute, parts[number]):
            own.append((number, start, len(some), result))
            start += len(some)
        # The other processes are as far, about.
        told = min(left, len(parts[number]) * host.size)
        left -= told
        progress(told)
    for number, start, size, result in sorted(
        (one for found in host.gathered(own) for one in found), key=lambda one: one[:2]
    ):
        yield parts[number][start : start + size], result
    progress(left)


def _agree(host: Host, parts: Sequence[Sequence[Item]], ids: Callable[[Item], Iterable[Ids]]) -> None:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)};".encode())
        for item in part:
            for row in ids(item):
                digest.update(np.asarray(row, np.int64).tobytes() + b";")
    if len(set(host.gathered(digest.hexdigest()))) > 1:
        raise InfrastructureError("the processes of an evaluation have different items to score; run it in one process")
