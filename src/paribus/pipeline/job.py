"""What Hydra's launcher calls once a run, in whatever process it puts it."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field

from rich.markup import escape

from paribus.config.schema import RunConfig
from paribus.engine.processes import interrupt, on_stop
from paribus.errors import classify, is_full_disk
from paribus.pipeline.invocation import leave_note, stop
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.run import perform
from paribus.pipeline.show.display import Display, open_console
from paribus.pipeline.show.streams import guard_streams
from paribus.store.provenance import Code

JOBLIB = "joblib"
"""Launcher that kills all of its processes as soon as one of them, or the command, raises or dies."""


@dataclass(frozen=True)
class JobFunction:
    """Performs a run. It records failures and never raises them, so one run stops no other.

    Launchers send it to other processes, so it holds only plain data of the one that made it.
    """

    code: Code
    command: int = field(default_factory=os.getpid)
    """Process of the command."""

    def __call__(self, config: RunConfig) -> None:
        """Run one configuration; KeyboardInterrupt when the user stopped it, which stops the sweep."""
        # With n_jobs=1 joblib runs jobs in the process of the command.
        pooled = config.sweep and config.sweep.launcher == JOBLIB and os.getpid() != self.command
        with _in_a_pool() if pooled else nullcontext():
            self._perform(config)

    def _perform(self, config: RunConfig) -> None:
        guard_streams()
        sweep = config.sweep
        # Jobs that run at once share a terminal: each line says whose it is.
        display = Display(open_console(), str(sweep.number) if sweep and sweep.launcher != "basic" else "")
        try:
            failure = perform(config, display, self.code)
            if failure is not None and failure.failure_class == "interrupted":
                raise KeyboardInterrupt
            if failure is not None and sweep and config.on_failure == "stop":
                stop(OutputRoot.of(config), sweep, "another run has failed, and on_failure=stop")
        except Exception as error:
            told = classify(error)
            display.message(f"  [red]{told['class']}[/red]: {escape(told['message'])}")
            leave_note(config, {**told, "full_disk": is_full_disk(error)})


@contextmanager
def _in_a_pool() -> Iterator[None]:
    """Let SIGTERM end the job in the block without raising; ignore the other signals, which the command passes on."""
    on_stop(lambda number, frame: None)
    with suppress(KeyboardInterrupt):
        try:
            signal.signal(signal.SIGTERM, interrupt)
            yield
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
