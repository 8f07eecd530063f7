"""Processes of a training that wait for one of them, each here a process of its own."""

import os
import socket
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.training import TrainingConfig
from paribus.errors import ConfigurationError
from paribus.evaluation import evaluate, tune
from paribus.stage import StageContext
from paribus.training.distributed import STOP, PendingRequests, Requests, beside
from support.forked import Forked
from support.run_config import run_config

WAIT = """
import time
from datetime import timedelta
from paribus.config.groups.training import TrainingConfig
from paribus.training import parallel
from paribus.training.distributed import join_host

parallel.COLLECTIVE = timedelta(seconds=2)
accelerator, _ = parallel.make_accelerator(TrainingConfig(device="cpu"), 2)
host = join_host(accelerator)

if host.main:
    time.sleep(4)  # as it takes to verify a checkpoint
host.wait()
print(host.agreed([host.main, not host.main, False]))
"""


def run_two(directory: Path) -> list[tuple[int, str, str]]:
    """Exit status, output and errors of two processes that wait for the first."""
    program = directory / "wait.py"
    program.write_text(WAIT, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2", "ACCELERATE_USE_CPU": "true"}
    ranks = [{"RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"} for rank in range(2)]
    processes = [Forked([str(program)], env=os.environ | group | rank) for rank in ranks]
    said = [process.communicate(timeout=120) for process in processes]
    return [(process.wait(), *texts) for process, texts in zip(processes, said, strict=True)]


def test_a_checkpoint_takes_longer_to_verify_than_a_collective_may_last(tmp_path: Path) -> None:
    for status, output, errors in run_two(tmp_path):
        assert status == 0, errors
        assert output.splitlines() == ["[True, True, False]"]


# How a training stops where a signal asks for it: nothing that was promised is lost.


def test_a_signal_that_comes_while_requests_are_read_is_kept() -> None:
    class Late(Requests):
        def _read(self) -> bytes:
            if not self.came:
                self._received.extend(STOP)
            self.came = True
            return b""

    requests = Late()
    requests.came = False  # type: ignore[attr-defined]
    assert [requests.take(), requests.take(), requests.take()] == [
        PendingRequests(save=False, stop=False),
        PendingRequests(save=False, stop=True),
        PendingRequests(save=False, stop=False),
    ]


# How many processes score and fine-tune, and on which GPU each of them.

SCORES = "evaluation.processes"


@pytest.fixture
def four_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)


@pytest.mark.usefixtures("four_gpus")
@pytest.mark.parametrize(
    ("asked", "device", "trained", "found"),
    [
        (None, "auto", 1, 1),
        (None, "auto", 2, 2),
        (None, "cuda", 0, 4),
        (None, "cuda", 8, 4),
        (0, "auto", 1, 4),
        (3, "auto", 1, 3),
        (None, "cuda:1", 4, 1),
        (0, "cuda:1", 4, 1),
        (None, "cpu", 4, 1),
        (2, "cpu", 4, 2),
    ],
)
def test_as_many_as_train_or_as_asked_on_gpus_and_one_on_a_cpu(
    asked: int | None, device: str, trained: int, found: int
) -> None:
    processes = beside(asked, device, TrainingConfig(processes=trained), SCORES)
    assert (processes.a_node, processes.nodes) == (found, 1)


@pytest.mark.usefixtures("four_gpus")
@pytest.mark.parametrize(("asked", "device"), [(5, "cuda"), (2, "cuda:1")])
def test_more_than_there_are_gpus_is_refused(asked: int, device: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^evaluation\.processes is {asked}, and \d CUDA devices are"):
        beside(asked, device, TrainingConfig(), SCORES)


@pytest.mark.usefixtures("four_gpus")
def test_each_process_that_scores_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    seen: list[Any] = []
    monkeypatch.setenv("LOCAL_RANK", "3")
    monkeypatch.setattr(evaluate, "joined_by_gloo", lambda: nullcontext("host"))
    monkeypatch.setattr(evaluate, "score_checkpoints", lambda context, host: seen.append((context, host)) or {})
    evaluate.score_worker(_context(tmp_path, "auto"), 4, Requests())
    ((context, host),) = seen
    assert (context.config.evaluation.device, host) == ("cuda:3", "host")


@pytest.mark.usefixtures("four_gpus")
def test_each_process_that_fine_tunes_has_a_gpu_and_knows_of_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    seen: list[StageContext] = []

    def begin(context: StageContext, requests: Requests) -> Any:
        seen.append(context)
        return context, None

    for name, value in (("RANK", "2"), ("LOCAL_RANK", "2"), ("WORLD_SIZE", "4")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tune, "begin", begin)
    monkeypatch.setattr(tune, "pending_tasks", lambda context: [])
    assert tune.finetune_worker(_context(tmp_path, "cuda"), 4, Requests()) == {}
    assert (seen[0].config.training.device, seen[0].config.evaluation.device) == ("cuda:2", "cuda:2")
    import os

    assert not {"RANK", "LOCAL_RANK", "WORLD_SIZE"} & os.environ.keys()


def _context(root: Any, device: str, evaluation: str | None = None) -> Any:
    from support.stages import context_at

    scoring_on = EvaluationConfig(device=evaluation or device)
    config = run_config(training=TrainingConfig(device=device), evaluation=scoring_on)
    return context_at(root / "output", root / "work", config, {})
