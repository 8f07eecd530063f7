"""How a training stops where a signal asks for it: nothing that was promised is lost."""

from types import SimpleNamespace
from typing import Any

import pytest

from paribus.errors import InterruptedRunError, NumericalError
from paribus.pipeline.making import execute
from paribus.training import loop
from paribus.training.processes.host import ALONE, Host
from paribus.training.processes.requests import STOP, Asked, Requests
from paribus.training.state.spent import Spent


def test_processes_wait_for_the_checkpoint_of_the_main_one_before_they_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has ended has the elastic agent end the others, half a minute later by force."""
    done: list[str] = []
    stopped = loop._Loop.__new__(loop._Loop)
    stopped.meter = None
    stopped.writer = SimpleNamespace(finish=lambda: done.append("written"))  # type: ignore[assignment]
    stopped.run = SimpleNamespace(  # type: ignore[assignment]
        host=SimpleNamespace(wait=lambda: done.append("waited")), report=SimpleNamespace(message=done.append)
    )
    monkeypatch.setattr(stopped, "_asked", lambda: Asked(save=False, stop=True))
    monkeypatch.setattr(stopped, "_save", lambda step: done.append(f"saved {step}"))
    batch: Any = SimpleNamespace(step=6)
    with pytest.raises(InterruptedRunError, match="after step 7, whose checkpoint is written"):
        stopped._record(batch, 0.1, SimpleNamespace(problem=None))  # type: ignore[arg-type]
    assert done == ["saved 7", "written", "waited", "stopped by a signal after step 7, whose checkpoint is written"]


@pytest.mark.parametrize("how", ["save", "skip"])
def test_processes_wait_on_the_host_for_a_checkpoint_that_the_main_one_still_writes(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next step's collective would end the training after its timeout, and the end of a process all others."""
    done: list[str] = []
    going = loop._Loop.__new__(loop._Loop)
    going.before, going.began, going.skipped = Spent(), 0.0, 0
    going.prepared = SimpleNamespace(model=None, optimizer=None)  # type: ignore[assignment]
    going.writer = SimpleNamespace(  # type: ignore[assignment]
        finish=lambda: done.append("written"), write=lambda *_: done.append("handed over")
    )
    going.run = SimpleNamespace(  # type: ignore[assignment]
        host=SimpleNamespace(wait=lambda: done.append("waited")),
        main=True,
        training=SimpleNamespace(skip_bad_steps=0),
        accelerator=SimpleNamespace(num_processes=2),
    )

    def take_snapshot(*_: object, main: bool) -> str:
        done.append("copied")
        return "snapshot"

    monkeypatch.setattr(loop, "take_snapshot", take_snapshot)
    monkeypatch.setattr(loop, "describe_bad_step", lambda *_: "bad")
    if how == "save":
        going._save(3)
        assert done == ["written", "waited", "copied", "handed over"]
        return
    with pytest.raises(NumericalError, match="bad"):
        going._skip(None, 0.1, "the loss is nan")  # type: ignore[arg-type]
    assert done == ["written", "waited"]


@pytest.mark.parametrize(
    ("save", "said"), [(True, ["SIGUSR1: a checkpoint of this step is written, and training goes on"]), (False, [])]
)
def test_a_checkpoint_that_a_signal_asks_for_is_said_and_no_other(save: bool, said: list[str]) -> None:
    told: list[str] = []
    going = loop._Loop.__new__(loop._Loop)
    going.saved_at = 0.0
    going.run = SimpleNamespace(  # type: ignore[assignment]
        requests=SimpleNamespace(take=lambda: Asked(save=save, stop=False)),
        training=SimpleNamespace(checkpoint_minutes=0),
        report=SimpleNamespace(message=told.append),
        host=ALONE,
        main=True,
    )
    assert going._asked() == Asked(save=True, stop=False)
    assert told == said


def test_a_signal_that_comes_while_requests_are_read_is_kept() -> None:
    class Late(Requests):
        def _read(self) -> bytes:
            if not self.came:
                self._own.extend(STOP)
            self.came = True
            return b""

    requests = Late()
    requests.came = False  # type: ignore[attr-defined]
    assert [requests.take(), requests.take(), requests.take()] == [
        Asked(save=False, stop=False),
        Asked(save=False, stop=True),
        Asked(save=False, stop=False),
    ]


def test_requests_are_heeded_until_the_last_checkpoint_is_written_for_which_all_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import signal

    handled: list[bool] = []
    done: list[str] = []

    class Waiting(Host):
        def wait(self) -> None:
            done.append("waited")

    class Writer:
        def __init__(self, *_: object) -> None: ...

        def __enter__(self) -> "Writer":
            return self

        def __exit__(self, *_: object) -> None:
            handled.append(signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL)
            done.append("written")

    for name in ("prepare", "make_stepper", "first_micro_batch"):
        monkeypatch.setattr(loop, name, lambda *_: None)
    monkeypatch.setattr(loop, "CheckpointWriter", Writer)
    monkeypatch.setattr(loop, "_Loop", lambda *_: SimpleNamespace(run_steps=lambda: 1.0))
    run: Any = SimpleNamespace(
        main=False,
        training=SimpleNamespace(deterministic=False),
        accelerator=None,
        document_end=None,
        checkpoints=None,
        metrics=SimpleNamespace(close=lambda: None),
        requests=Requests(),
        host=Waiting(main=False, group=None),
    )
    assert loop.train(run, None, None) == 1.0
    assert handled == [True]
    # What comes next may be a collective of the GPUs, in which others would wait for the main process to write.
    assert done == ["written", "waited"]


def test_a_second_signal_at_once_is_no_further_interruption_and_a_lost_terminal_no_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A terminal that is closed sends two signals, and what is written to it fails from then on."""
    heard: list[str] = []

    class Gone:
        def progress(self, *_: object) -> None:
            raise OSError(5, "Input/output error")

        metric = message = progress

    def listen(channel: object, listener: Any, check: object) -> None:
        heard.append("listening")
        listener.message("a line")
        listener.progress(1, 2, "steps", "taking steps", "")
        listener.metric("loss", 1.0, 1)
        if len(heard) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(execute, "_listen", listen)
    monkeypatch.setattr(execute, "_signal", lambda child, number: None)
    execute._ask_to_end(None, None, Gone(), 5.0)  # type: ignore[arg-type]
    assert heard == ["listening", "listening"]
