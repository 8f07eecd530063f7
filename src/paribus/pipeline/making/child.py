"""The child process of one stage: read a job, run the stage function, answer on a pipe.

`run_stage` is started with the number of a file descriptor as argument and the job as JSON on standard input; messages
are JSON lines on the file descriptor. Standard output and error belong to libraries and go to the stage's log.
"""

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from paribus.config.validate import build_run
from paribus.engine.local import open_engine
from paribus.engine.processes import die_before_starter, die_with_parent, ignore_requests
from paribus.errors import classify, is_full_disk, told_in_log
from paribus.pipeline.stages import STAGES
from paribus.stage import StageContext
from paribus.store.claims import Claim
from paribus.store.files import naming
from paribus.store.provenance import Code, hold_to, loaded_code

SECONDS_BETWEEN_PROGRESS = 0.2


class PipeReporter:
    """A reporter whose messages go to the parent; progress at most five times a second."""

    def __init__(self, channel: TextIO) -> None:
        self._channel, self._last = channel, 0.0

    def send(self, message: dict[str, Any]) -> None:
        """Write one message."""
        self._channel.write(json.dumps(message) + "\n")
        self._channel.flush()

    def progress(self, done: float, total: float, *, unit: str, doing: str, detail: str = "") -> None:
        """Forward progress unless the last one was a moment ago and this is not the end."""
        now = time.monotonic()
        if now - self._last >= SECONDS_BETWEEN_PROGRESS or done >= total:
            self._last = now
            where = {"done": done, "total": total, "unit": unit, "doing": doing, "detail": detail}
            self.send({"type": "progress", **where})

    def metric(self, name: str, value: float, *, step: int) -> None:
        """Forward a number of the run; JSON has no NaN, so it travels as text."""
        self.send({"type": "metric", "name": name, "value": repr(float(value)), "step": step})

    def message(self, text: str) -> None:
        """Forward a line for the terminal; standard error is the stage's log."""
        with suppress(OSError):
            print(text, file=sys.stderr, flush=True)  # noqa: T201
        self.send({"type": "message", "text": text})


def run_stage() -> int:
    """Run the job on standard input; 0 when the stage function returned."""
    die_with_parent()
    die_before_starter()
    ignore_requests()
    return serve(json.load(sys.stdin), int(sys.argv[1]))


def serve(job: dict[str, Any], descriptor: int) -> int:
    """Run a job in this process, which has no other, and answer on a file descriptor; 0 when the stage returned."""
    with os.fdopen(descriptor, "w", encoding="utf-8") as channel:
        reporter = PipeReporter(channel)
        try:
            reporter.send({"type": "done", "result": _run(job, reporter)})
        except BaseException as error:
            # Told first: on a full disk the log takes nothing.
            reporter.send({"type": "failed", **classify(error), "full_disk": is_full_disk(error)})
            with suppress(OSError):
                print(told_in_log(error), end="", file=sys.stderr, flush=True)  # noqa: T201
            return 1
    return 0


def _run(job: dict[str, Any], reporter: PipeReporter) -> Any:
    claim = job["claim"]
    # The parent may be stopped (Ctrl-Z) while this goes on: then nobody else may take the work for abandoned.
    Claim(Path(claim["path"]), claim["token"], claim["lease"], _stop_at_once).beat()
    code = Code.from_json(job["code"])
    code.require(loaded_code())
    hold_to(code)
    config = build_run(job["config"])
    with open_engine(config.engine, Path(job["work"])) as engine:
        context = StageContext(
            config=config,
            inputs={name: Path(path) for name, path in job["inputs"].items()},
            output=Path(job["output"]),
            work=Path(job["work"]),
            report=reporter,
            engine=engine,
        )
        with naming(context.output.parent):
            return STAGES[job["stage"]].build(context)


def _stop_at_once() -> None:
    """Die with all workers: somebody else makes the artefact, and goes on with the same resumable work."""
    os.killpg(os.getpgrp(), signal.SIGKILL)
