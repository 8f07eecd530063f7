"""Batches by tokens, and processes that compute a share of them."""

from collections.abc import Sequence
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pytest

from paribus.errors import InfrastructureError
from paribus.evaluation.scoring import computed
from paribus.modeling.device import batches
from paribus.training.distributed import ALONE


class Meeting:
    """Threads in the place of processes: what each tells is gathered when all have."""

    def __init__(self, size: int) -> None:
        self.told: list[list[Any]] = []
        self.barrier = Barrier(size, timeout=20)

    def gathered(self, rank: int, size: int, found: Any, turn: int) -> list[Any]:
        if rank == 0:
            self.told.append([None] * size)
        self.barrier.wait()
        self.told[turn][rank] = found
        self.barrier.wait()
        return self.told[turn]


class Member:
    """One of them, as `Host` is."""

    def __init__(self, meeting: Meeting, rank: int, size: int) -> None:
        self._meeting, self.rank, self.size, self._turn = meeting, rank, size, -1

    def gathered(self, found: Any) -> list[Any]:
        self._turn += 1
        return self._meeting.gathered(self.rank, self.size, found, self._turn)


def doubled(batch: Sequence[int]) -> list[int]:
    return [2 * item for item in batch]


def shared(parts_of: Sequence[Sequence[Sequence[int]]], compute: Any = doubled) -> list[Any]:
    """What each of so many processes with its `parts` finds, or raises, and what it tells of progress."""
    meeting, size = Meeting(len(parts_of)), len(parts_of)
    results: list[Any] = [None] * size

    def run(rank: int) -> None:
        counts: list[int] = []
        member: Any = Member(meeting, rank, size)
        try:
            ids = lambda item: (np.array([item]),)  # noqa: E731
            found = list(computed(member, "testing", parts_of[rank], compute, ids, counts.append))
            results[rank] = (found, counts)
        except InfrastructureError as error:
            results[rank] = error

    threads = [Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize(
    ("tokens", "sizes"), [(1, [1] * 5), (9, [1] * 5), (18, [2, 3]), (20, [2, 3]), (27, [3, 2]), (100, [5])]
)
def test_a_batch_has_so_many_tokens_when_it_is_padded_or_is_one_item(tokens: int, sizes: list[int]) -> None:
    lengths = [9, 7, 5, 5, 1]
    parts = batches(lengths, lambda length: length, tokens)
    assert [len(part) for part in parts] == sizes
    assert [length for part in parts for length in part] == lengths


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_all_processes_have_all_results_in_the_order_of_one(size: int) -> None:
    parts = [[1, 2, 3], [4, 5], [6], [7, 8, 9], [10]]
    alone = list(computed(ALONE, "testing", parts, doubled, lambda item: ()))
    for found, counts in shared([parts] * size):
        assert found == alone
        assert sum(counts) == 10


def test_a_batch_that_one_process_halves_comes_in_its_parts() -> None:
    def short(batch: Sequence[int]) -> list[int]:
        if len(batch) > 2:
            raise MemoryError("short")
        return doubled(batch)

    (found, _), (other, _) = shared([[[1, 2, 3, 4], [5, 6], [7, 8, 9]]] * 2, short)
    assert found == other
    assert [item for part, _ in found for item in part] == list(range(1, 10))
    assert [item for _, result in found for item in result] == [2 * item for item in range(1, 10)]


def test_processes_that_have_different_items_are_told_so_before_they_compute() -> None:
    for error in shared([[[1, 2], [3]], [[1, 2], [4]]]):
        assert isinstance(error, InfrastructureError)
        assert "different items" in str(error)
