"""The process that sends the runs of one output root on one machine to MLflow.

It is apart from every run, so that an MLflow that hangs, crashes or costs time harms nobody but itself, and one
import of MLflow serves a sweep. Runs ask for it by a request file; the first starts it, and it leaves when nobody needs
it. An operation that hangs for two minutes ends the process; what it did not send stays in the event files.
"""

import faulthandler
import json
import os
import sys
import time
from pathlib import Path
from typing import IO

from paribus.config.groups.execution import TrackingConfig
from paribus.errors import ParibusError
from paribus.store.claims import is_of_another_boot, read_holder, run_claim, this_process
from paribus.store.files import read_object_if_any, write_json
from paribus.tracking.abandoned import close_abandoned
from paribus.tracking.destination import Destination
from paribus.tracking.locks import locked
from paribus.tracking.mlflow_sink import MlflowSink
from paribus.tracking.replay import is_delivered
from paribus.tracking.requests import LOCK, STATE, TrackingRequest, requests, take_over

INTERVAL_SECONDS, LINGER_SECONDS, HANG_SECONDS, TICK_SECONDS = 10.0, 20.0, 120.0, 0.1


class Service:
    """The loop: send what is new every few seconds, answer those who wait, leave when there is nothing to do."""

    def __init__(self, destination: Destination, spawner: int, log: IO[str]) -> None:
        self._directory = destination.service_directory
        self._destination = destination
        self._spawner = spawner
        self._log = log
        self._sink = MlflowSink(destination, on_step=self._watch)
        self._failures = 0
        self._retry_at = 0.0

    def run(self) -> None:
        """Serve until nobody has asked for anything for a while, or the process that started this one is gone."""
        idle_since = time.monotonic()
        while True:
            before = _fingerprint(self._directory)
            waiting = list(requests(self._directory))
            for request in waiting:
                self._serve(request)
            if waiting:
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since > LINGER_SECONDS or os.getppid() != self._spawner:
                return
            self._pause(before)

    def _serve(self, request: TrackingRequest) -> None:
        answered = read_object_if_any(request.answer).get("finishing", False)
        if request.finishing and answered and not request.abandoned:
            return
        due = request.finishing or time.monotonic() >= self._retry_at
        if due and not (is_delivered(request.run_directory, self._destination) and not request.finishing):
            self._attempt(request)
        if request.abandoned:
            if close_abandoned(request.run_directory, self._destination.root):
                self._attempt(request)
            elif self._claimed_before_boot(request.run_directory):
                return  # that claim ends with its lease
            request.path.unlink(missing_ok=True)
            request.answer.unlink(missing_ok=True)
            self._sink.forget(request.run_directory)

    def _claimed_before_boot(self, run_directory: Path) -> bool:
        """Whether the run is still in the hands of a process of an earlier boot."""
        return is_of_another_boot(read_holder(run_claim(self._destination.root, run_directory.name)) or {})

    def _attempt(self, request: TrackingRequest) -> None:
        self._watch()
        try:
            problems, error = self._sink.send(request.run_directory).problems, None
            self._failures = 0
        except (ParibusError, TimeoutError, OSError) as caught:
            problems, error = [], str(caught)
            self._failures += 1
            self._retry_at = time.monotonic() + min(60.0, 2.0**self._failures)
        faulthandler.cancel_dump_traceback_later()
        self._state(busy=False)
        self._log.writelines(
            f"{time.strftime('%F %T')} {request.run_directory.name}: {line}\n" for line in [*problems, error] if line
        )
        self._log.flush()
        write_json(request.answer, {"error": error, "problems": problems, "finishing": request.finishing})

    def _watch(self) -> None:
        self._state(busy=True)
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True, file=self._log)

    def _state(self, *, busy: bool) -> None:
        write_json(self._directory / STATE, {**this_process(), "busy_since": time.time() if busy else None})

    def _pause(self, before: list[tuple[str, int]]) -> None:
        """Wait for the next round, or less when a request has appeared or changed since `before`."""
        end = time.monotonic() + INTERVAL_SECONDS
        while time.monotonic() < end and _fingerprint(self._directory) == before:
            time.sleep(TICK_SECONDS)


def _fingerprint(directory: Path) -> list[tuple[str, int]]:
    with os.scandir(directory) as entries:
        return sorted((entry.name, entry.inode()) for entry in entries if entry.name.endswith(".request"))


def main() -> None:
    """Read `root`, `uri`, `experiment`, `patience` and `spawner` as JSON from standard input and serve."""
    options = json.loads(sys.stdin.read())
    os.nice(5)
    tracking = TrackingConfig(
        kind="mlflow", uri=options["uri"], experiment=options["experiment"], patience=options["patience"]
    )
    destination = Destination.resolve(tracking, Path(options["root"]))
    directory = destination.service_directory
    os.chdir(directory)
    try:
        with locked(directory / LOCK, 0.5), Path("service.log").open("a") as log:
            take_over(destination)
            Service(destination, options["spawner"], log).run()
    except TimeoutError:
        sys.exit(0)  # another service does the work


if __name__ == "__main__":
    main()
