"""Signals that ask a training for a checkpoint, in real processes."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from paribus.errors import InterruptedRunError
from paribus.evaluation import tune
from paribus.training.distributed import STEPPING, PendingRequests, Requests, passed_on
from support.stages import context_at, files
from support.training_inputs import config, write_inputs
from support.training_processes import STEPS_BEFORE, begin, finish, send_in_a_step


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("requests")
    write_inputs(directory)
    return directory


def saved(root: Path, name: str) -> list[int]:
    return sorted(int(path.name[5:]) for path in (root / name / "work").glob("step_*"))


@pytest.mark.parametrize("straight", ["alone", "long"])
def test_a_training_that_is_asked_to_end_saves_its_step_and_goes_on_to_the_same_bytes(
    root: Path, straight: str
) -> None:
    """In one process, and in two of which the agent alone gets the signal."""
    name = f"{straight}_asked"
    process = begin(root, name)
    send_in_a_step(process, signal.SIGTERM, root / name / "work" / "metrics.jsonl")
    said = finish(process)
    (step,) = saved(root, name)
    assert step >= STEPS_BEFORE
    assert f"InterruptedRunError: stopped by a signal after step {step}, whose checkpoint is written" in said
    assert not list((root / name / "output").iterdir())
    # PendingRequests for a checkpoint this time, it saves one more and goes on.
    again = begin(root, name)
    while (root / name / "work" / "metrics.jsonl").read_bytes().count(b"\n") <= step:
        assert again.poll() is None, again.communicate()
        time.sleep(0.005)
    again.send_signal(signal.SIGUSR1)
    assert finish(again) == ""
    between, last = saved(root, name)
    assert step < between < last == 120
    assert finish(begin(root, straight)) == ""
    assert files(root / name / "output") == files(root / straight / "output")


def test_what_an_agent_is_asked_reaches_the_processes_that_it_started(tmp_path: Path) -> None:
    file = tmp_path / "requests_0"
    with passed_on(file):
        with pytest.raises(InterruptedRunError, match="while no step was taken"):
            os.kill(os.getpid(), signal.SIGTERM)
        (tmp_path / f"{STEPPING}of_another").touch()
        requests = Requests(file)
        assert requests.take() == PendingRequests(save=False, stop=False)
        os.kill(os.getpid(), signal.SIGUSR1)
        assert requests.take() == PendingRequests(save=True, stop=False)
        assert requests.take() == PendingRequests(save=False, stop=False)
        os.kill(os.getpid(), signal.SIGTERM)
        assert requests.take() == PendingRequests(save=False, stop=True)


def test_a_signal_between_two_looks_is_kept(tmp_path: Path) -> None:
    requests = Requests(tmp_path / "requests_0")
    before = signal.getsignal(signal.SIGTERM)
    with requests.heeded():
        os.kill(os.getpid(), signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGTERM)
        assert requests.take() == PendingRequests(save=True, stop=True)
        assert list(tmp_path.glob(f"{STEPPING}*"))
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_agent_whose_processes_take_no_more_steps_ends_them_by_itself(tmp_path: Path) -> None:
    """Answers that a fine-tuned model writes for minutes are no steps, and nobody would look at the request."""
    file = tmp_path / "requests_0"
    one, other = Requests(file), Requests(file)
    with passed_on(file):
        with one.heeded():
            with other.heeded():
                pass
            with passed_on(file):  # as in the agent: the handler in this process is that of `heeded` otherwise
                os.kill(os.getpid(), signal.SIGTERM)
            assert one.take() == PendingRequests(save=False, stop=True)
        with pytest.raises(InterruptedRunError, match="while no step was taken"):
            os.kill(os.getpid(), signal.SIGTERM)


def test_a_process_that_fine_tuned_and_was_asked_to_end_waits_for_the_checkpoints_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each trains by itself, and the end of one has the agent end all, half a minute later by force."""
    file = tmp_path / "work" / "group" / "requests_0"
    file.parent.mkdir(parents=True)
    other = file.with_name(f"{STEPPING}of_another")

    def finish(*_: object) -> None:
        other.touch()
        threading.Timer(0.5, other.unlink).start()
        raise InterruptedRunError("stopped by a signal after step 7, whose checkpoint is written")

    monkeypatch.setattr(tune, "begin", lambda context, requests: (context, None))
    monkeypatch.setattr(tune, "pending_tasks", lambda context: ["qasper"])
    monkeypatch.setattr(tune, "finish", finish)
    for name in tune.GROUP_VARIABLES:
        monkeypatch.setenv(name, "0")
    context = context_at(tmp_path / "output", tmp_path / "work", config(), {})
    with pytest.raises(InterruptedRunError, match="after step 7"):
        tune.finetune_worker(context, 2, Requests(file))
    assert not other.exists()
