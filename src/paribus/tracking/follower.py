"""Have a run sent to MLflow while it runs, without ever waiting for MLflow in between.

A follower only writes small files and starts the process of `service`, unless one serves this output root already.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paribus.config.groups.execution import TrackingConfig
from paribus.store.claims import this_process
from paribus.store.files import read_object_if_any, write_json
from paribus.tracking.destination import Destination
from paribus.tracking.events import FILE_NAME
from paribus.tracking.locks import is_locked
from paribus.tracking.replay import is_delivered
from paribus.tracking.requests import LOCK, STATE, TrackingRequest

MAX_STARTS, CHECK_SECONDS, TICK_SECONDS = 3, 0.5, 0.05


class Follower:
    """Follows the event file of one run; ConfigurationError when `tracking.uri` is none that MLflow opens.

    Any other trouble, such as a machine that starts no process, is told by `finish`.
    """

    def __init__(self, run_directory: Path, tracking: TrackingConfig, root: Path) -> None:
        self.run_directory = Path(run_directory).resolve()
        self._destination = Destination.resolve(tracking, root) if tracking.kind == "mlflow" else None
        self._child: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self._trouble: str | None = None
        if self._destination is not None:
            try:
                self._request(self._destination, finishing=False)
                self._ensure_service(self._destination)
            except OSError as error:
                self._trouble = str(error)

    def finish(self, patience: float) -> str:
        """Wait at most `patience` seconds for the rest to arrive and say what happened; sync sends what is missing."""
        if self._destination is None:
            return f"tracking.kind is none: the run is recorded in {self.run_directory / FILE_NAME} only"
        try:
            answer = self._await_answer(self._destination, patience)
        except OSError as error:
            answer = {"error": str(error)}
        shown, log = self._destination.shown, self.run_directory / FILE_NAME
        reason = answer.get("error", self._trouble or f"no answer within {patience:g} s")
        if reason is not None:
            return (
                f"MLflow at {shown} lacks a part of this run ({reason}); all of it is in {log}, "
                f"and `paribus sync root={self._destination.root}` sends the rest"
            )
        return "; ".join([f"in {self._destination.named}", *answer.get("problems", [])])

    def _await_answer(self, destination: Destination, patience: float) -> dict[str, Any]:
        begin = time.monotonic()
        request = self._request(destination, finishing=True)
        checked = 0.0
        answer: dict[str, Any] = {}
        while not answer.get("finishing") and time.monotonic() - begin < patience:
            if time.monotonic() - checked > CHECK_SECONDS:
                checked = time.monotonic()
                if not self._ensure_service(destination) or self._is_hanging(destination, patience):
                    break
            time.sleep(TICK_SECONDS)
            answer = read_object_if_any(request.answer)
        request.path.unlink(missing_ok=True)
        request.answer.unlink(missing_ok=True)
        return answer if answer.get("finishing") else {}

    def _request(self, destination: Destination, *, finishing: bool) -> TrackingRequest:
        path = destination.service_directory / f"{self.run_directory.name}.{os.getpid()}.request"
        request = TrackingRequest(path, self.run_directory, this_process(), finishing)
        path.parent.mkdir(parents=True, exist_ok=True)
        request.answer.unlink(missing_ok=True)
        fields = {"run_directory": str(request.run_directory), "process": request.process, "finishing": finishing}
        write_json(path, fields)
        return request

    def _ensure_service(self, destination: Destination) -> bool:
        """Start the service where none runs; False when it has come to nothing several times."""
        if (self._child is not None and self._child.poll() is None) or is_locked(_service_lock(destination)):
            return True
        if self._starts == MAX_STARTS:
            self._trouble = f"the process that talks to MLflow ended; see {destination.service_directory}/service.log"
            return False
        self._starts += 1
        self._child = _start_service(destination)
        return True

    def _is_hanging(self, destination: Destination, patience: float) -> bool:
        """Whether MLflow has not answered the service for longer than anybody here is willing to wait."""
        busy_since = read_object_if_any(destination.service_directory / STATE).get("busy_since")
        silence = 0.0 if busy_since is None else time.time() - float(busy_since)
        if silence <= patience or not is_locked(_service_lock(destination)):
            return False
        self._trouble = f"no answer for {silence:.0f} s"
        return True


def finish_all(directories: Sequence[Path], tracking: TrackingConfig, root: Path) -> str | None:
    """Send what MLflow lacks of ended runs, as after an outage; return a message if it still lacks some."""
    if tracking.kind != "mlflow":
        return None
    destination = Destination.resolve(tracking, root)
    lacking = [directory for directory in directories if not is_delivered(directory, destination)]
    while lacking:
        Follower(lacking[0], tracking, root).finish(tracking.patience)
        if not is_delivered(lacking[0], destination):
            names = ", ".join(directory.name for directory in lacking)
            missing = f"MLflow at {destination.shown} lacks a part of {len(lacking)} of {len(directories)}: {names}"
            return f"{missing}; `paribus sync root={destination.root}` sends the rest"
        del lacking[0]
    return None


def _service_lock(destination: Destination) -> Path:
    return destination.service_directory / LOCK


def _start_service(destination: Destination) -> subprocess.Popen[bytes]:
    """The URI goes through standard input, because a password in it must not show in the list of processes."""
    options = {
        "root": str(destination.root),
        "uri": destination.uri,
        "experiment": destination.experiment,
        "patience": destination.patience,
        "spawner": os.getpid(),
    }
    with (destination.service_directory / "service.log").open("ab") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "paribus.tracking.service"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
    assert child.stdin is not None
    with child.stdin as stream:
        stream.write(json.dumps(options).encode())
    return child
