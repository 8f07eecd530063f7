"""Maps over items: in order, whatever the workers; threads share what the function carries."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest

from paribus.engine import local
from paribus.engine.local import LocalEngine
from paribus.errors import InfrastructureError, OutOfMemoryError


def square(number: int) -> int:
    time.sleep(0.002 * (number % 3))
    return number * number


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("releases_gil", [True, False])
def test_results_come_in_the_order_of_the_items(workers: int, releases_gil: bool) -> None:
    assert list(LocalEngine(workers).map(square, range(30), releases_gil=releases_gil)) == [
        number**2 for number in range(30)
    ]


def test_threads_take_no_more_items_than_they_can_have_in_hand() -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for number in range(100):
            taken += 1
            yield number

    results = LocalEngine(2).map(square, items(), releases_gil=True)
    assert next(results) == 0
    assert taken <= 4
    assert list(results) == [number**2 for number in range(1, 100)]


def process(_: int) -> int:
    return os.getpid()


def test_one_item_runs_in_this_process_and_several_in_others() -> None:
    assert list(LocalEngine(2).map(process, iter([1]))) == [os.getpid()]
    assert list(LocalEngine(2).map(process, [])) == []
    assert os.getpid() not in LocalEngine(2).map(process, range(2))


def die(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize(
    ("kills", "raised"),
    [
        ((3, 4), pytest.raises(OutOfMemoryError, match=r"lower engine\.workers")),
        ((3, 3), pytest.raises(InfrastructureError, match="killed from outside")),
    ],
)
def test_a_worker_that_is_killed_ran_out_of_memory_only_where_the_kernel_counted_that(
    monkeypatch: pytest.MonkeyPatch, kills: tuple[int, int], raised: AbstractContextManager[object]
) -> None:
    counted = iter(kills)
    monkeypatch.setattr(local, "out_of_memory_kills", lambda: next(counted))
    with raised:
        list(LocalEngine(2).map(die, [1, 2]))


def test_an_error_ends_the_map_and_what_was_not_begun_is_left() -> None:
    begun: list[int] = []

    def fail(number: int) -> int:
        begun.append(number)
        if number == 3:
            raise ValueError("three")
        return number

    with pytest.raises(ValueError, match="three"):
        list(LocalEngine(2).map(fail, range(1000), releases_gil=True))
    assert len(begun) < 20
