"""Kill -9 before each write of a stage, in its work and in its publication, twice, and then the same again undisturbed.

Stages run in forks of this process, so that the imports are paid for once. The fork is killed before it opens a file
for writing, makes, renames or removes one. `make test-slow` does this with every stage, `make test` with one.
"""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from paribus.pipeline.clean import remove_leftovers
from paribus.pipeline.graph import STAGES
from support.artefacts import Maker, small_maker
from support.forked import in_fork

WRITES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.truncate", "os.symlink")
QUICK_STAGE, EXHAUSTIVE_STAGES = "vocabulary", ("training",)
QUICK_WRITES, SAMPLED_WRITES = 3, 12
"""Writes tried of a stage in `make test` and in `make test-slow`; of `EXHAUSTIVE_STAGES`, all."""


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Maker]:
    with small_maker(tmp_path_factory.mktemp("writes")) as made:
        yield made


def before_write(root: Path, number: int, act: Callable[[int], None]) -> None:
    """From now on, call `act` with the number of each write below `root` from `number` on, before it happens."""
    lock, count = threading.Lock(), iter(range(1, 1_000_000))

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        writes = event in WRITES or (event == "open" and isinstance(arguments[2], int) and bool(arguments[2] & 0b11))
        if writes and str(arguments[0]).startswith(str(root)) and not str(arguments[0]).endswith((".lock", ".clock")):
            with lock:
                current = next(count)
            if current >= number:
                act(current)

    sys.addaudithook(hook)


def writes_of(maker: Maker, stage: str) -> int:
    """How often an undisturbed making of the artefact writes."""
    noted = maker.layout.path / "writes"

    def counted() -> None:
        numbers: list[int] = []
        before_write(maker.layout.store.root, 1, numbers.append)
        maker.ensure(maker.nodes[stage])
        noted.write_text(str(len(numbers)), encoding="utf-8")

    assert in_fork(counted) == 0
    return int(noted.read_text(encoding="utf-8"))


def kill(number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed_at(maker: Maker, stage: str, number: int) -> int:
    def disturbed() -> None:
        before_write(maker.layout.store.root, number, kill)
        maker.ensure(maker.nodes[stage])

    return in_fork(disturbed)


def killed_everywhere(maker: Maker, stage: str, most: int | None = None) -> int:
    """Kill the making of a stage at its writes; the number of kills."""
    node, store = maker.nodes[stage], maker.layout.store
    for name in maker.nodes[stage].inputs:
        ensure_with_inputs(maker, name)
    path = store.path(*node.place)
    shutil.rmtree(path, ignore_errors=True)
    total = writes_of(maker, stage)
    expected = store.require(*node.place).record()["files"]
    step = 1 if most is None else max(1, total // most)
    kills = 0
    for number in range(1, total + 1, step):
        shutil.rmtree(path)
        for _ in range(2):
            status = killed_at(maker, stage, number)
            assert status == 0 or os.WTERMSIG(status) == signal.SIGKILL
            kills += status != 0
            assert store.damage(*node.place) is None, "what is there is whole"
        assert in_fork(lambda: ensure_stage(maker, stage)) == 0
        assert store.require(*node.place).record()["files"] == expected, f"killed before write {number}"
        remove_leftovers(store)
        assert not list((store.root / "partial").glob(f"{node.place[0]}-*"))
    assert kills >= total // step, "a kill did not come"
    return kills


def ensure_stage(maker: Maker, stage: str) -> None:
    maker.ensure(maker.nodes[stage])


def ensure_with_inputs(maker: Maker, stage: str) -> None:
    """The artefact of a stage and of all that it needs, made in forks."""
    for name in maker.nodes[stage].inputs:
        ensure_with_inputs(maker, name)
    assert in_fork(lambda: ensure_stage(maker, stage)) == 0


def test_a_kill_before_any_write_of_a_stage_leaves_nothing_half_made(maker: Maker) -> None:
    assert killed_everywhere(maker, QUICK_STAGE, QUICK_WRITES) >= QUICK_WRITES


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("stage", STAGES)
def test_two_kills_before_each_write_of_every_stage_change_no_byte(
    maker: Maker, stage: str, record_property: Callable[[str, object], None]
) -> None:
    record_property("kills", killed_everywhere(maker, stage, None if stage in EXHAUSTIVE_STAGES else SAMPLED_WRITES))
