"""Processes that carry out a stage together: how many, and what signals ask of them."""

import os
import signal
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.training import TrainingConfig
from paribus.errors import ConfigurationError, InterruptedRunError
from paribus.evaluation import evaluate, tune
from paribus.stage import StageContext
from paribus.training.distributed import (
    STEPPING,
    STOP,
    PendingRequests,
    Processes,
    Requests,
    beside,
    passed_on,
    resolve_processes,
)
from support.run_config import run_config
from support.stages import context_at, files
from support.training_inputs import write_inputs
from support.training_processes import STEPS_BEFORE, begin, finish, send_after_steps


@pytest.fixture
def four_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)


@pytest.mark.usefixtures("four_gpus")
def test_processes_that_cannot_train_together_are_refused() -> None:
    for message, changes in {
        r"training\.global_batch is 4, which 3 processes cannot share evenly": {"processes": 3},
        r"training\.shard_processes is 3, of which no groups": {"processes": 4, "shard_processes": 3},
        r"training\.processes is 8, but 4 CUDA devices are visible": {"processes": 8, "device": "cuda"},
    }.items():
        with pytest.raises(ConfigurationError, match=message):
            resolve_processes(TrainingConfig(**({"global_batch": 4, "device": "cpu"} | changes)))  # type: ignore[arg-type]


NOTHING = PendingRequests(save=False, stop=False)
SAVE_ONLY, STOP_ONLY = PendingRequests(save=True, stop=False), PendingRequests(save=False, stop=True)


@pytest.mark.parametrize("straight", ["alone", pytest.param("long", marks=pytest.mark.slow)])
def test_training_asked_to_end_saves_its_step_and_goes_on_to_the_same_bytes(straight: str, tmp_path: Path) -> None:
    """In one process, and in two of which the agent alone gets the signal."""
    write_inputs(tmp_path)
    name = f"{straight}_asked"
    work, output = tmp_path / name / "work", tmp_path / name / "output"

    def saved() -> list[int]:
        return sorted(int(path.name[5:]) for path in work.glob("step_*"))

    process = begin(tmp_path, name)
    send_after_steps(process, signal.SIGTERM, work, STEPS_BEFORE)
    message = finish(process)
    (step,) = saved()
    assert step >= STEPS_BEFORE
    assert f"InterruptedRunError: stopped by a signal after step {step}, whose checkpoint is written" in message
    assert not list(output.iterdir())
    # Asked for a checkpoint this time, it saves one more and goes on.
    again = begin(tmp_path, name)
    send_after_steps(again, signal.SIGUSR1, work, step + 1)
    assert finish(again) == ""
    between, last = saved()
    assert step < between < last == 120
    assert finish(begin(tmp_path, straight)) == ""
    assert files(output) == files(tmp_path / straight / "output")


def test_signals_between_two_looks_and_during_one_are_kept(tmp_path: Path) -> None:
    class Late(Requests):
        received_late = False

        def _read(self) -> bytes:
            if not self.received_late:
                self._received.extend(STOP)
            self.received_late = True
            return b""

    late = Late()
    assert [late.take(), late.take(), late.take()] == [NOTHING, STOP_ONLY, NOTHING]
    requests, before = Requests(tmp_path / "requests_0"), signal.getsignal(signal.SIGTERM)
    with requests.heeded():
        os.kill(os.getpid(), signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGTERM)
        assert requests.take() == PendingRequests(save=True, stop=True)
        assert list(tmp_path.glob(f"{STEPPING}*"))
    assert signal.getsignal(signal.SIGTERM) is before


def test_request_to_an_agent_reaches_the_processes_that_it_started(tmp_path: Path) -> None:
    file = tmp_path / "requests_0"
    with passed_on(file):
        with pytest.raises(InterruptedRunError, match="while no step was taken"):
            os.kill(os.getpid(), signal.SIGTERM)
        (tmp_path / f"{STEPPING}of_another").touch()
        requests = Requests(file)
        assert requests.take() == NOTHING
        os.kill(os.getpid(), signal.SIGUSR1)
        assert [requests.take(), requests.take()] == [SAVE_ONLY, NOTHING]
        os.kill(os.getpid(), signal.SIGTERM)
        assert requests.take() == STOP_ONLY


@pytest.mark.usefixtures("four_gpus")
def test_as_many_score_as_train_or_as_asked_on_gpus_and_one_on_a_cpu() -> None:
    for asked, device, trained, expected in (
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
    ):
        processes = beside(asked, device, TrainingConfig(processes=trained), "evaluation.processes")
        assert processes == Processes(expected, 1), (asked, device, trained)
    for asked, device in ((5, "cuda"), (2, "cuda:1")):
        with pytest.raises(ConfigurationError, match=rf"^evaluation\.processes is {asked}, and \d CUDA devices are"):
            beside(asked, device, TrainingConfig(), "evaluation.processes")


def context_on(root: Path, device: str) -> StageContext:
    config = run_config(training=TrainingConfig(device=device), evaluation=EvaluationConfig(device=device))
    return context_at(root / "output", root / "work", config, {})


@pytest.mark.usefixtures("four_gpus")
def test_each_process_that_scores_or_fine_tunes_has_a_gpu_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    contexts: list[StageContext] = []
    for name in tune.GROUP_VARIABLES:
        monkeypatch.setenv(name, "2")
    monkeypatch.setattr(evaluate, "joined_by_gloo", nullcontext)
    monkeypatch.setattr(evaluate, "score_checkpoints", lambda context, host: contexts.append(context) or {})
    monkeypatch.setattr(tune, "begin", lambda context, requests: contexts.append(context) or (context, None))
    monkeypatch.setattr(tune, "pending_tasks", lambda context: [])
    assert evaluate.score_worker(context_on(tmp_path / "scoring", "auto"), 4, Requests()) == {}
    assert tune.finetune_worker(context_on(tmp_path / "tuning", "cuda"), 4, Requests()) == {}
    scoring, tuning = (context.config for context in contexts)
    assert scoring.evaluation.device == tuning.evaluation.device == tuning.training.device == "cuda:2"
    # What fine-tunes knows of no other process.
    assert not set(tune.GROUP_VARIABLES) & os.environ.keys()
