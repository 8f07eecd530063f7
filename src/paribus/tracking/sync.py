"""Sending of runs to MLflow while they run, and afterwards by `paribus sync`."""

import dataclasses
import faulthandler
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from paribus.config.arguments import HELP_FLAGS, read_options
from paribus.config.fields import proper_name, proper_path
from paribus.config.groups.execution import TrackingConfig
from paribus.errors import ConfigurationError, ParibusError
from paribus.store.claims import Process, acquire, is_gone, is_of_another_boot, read_holder, run_claim, this_process
from paribus.store.files import RUN_RECORD, read_object_if_any, write_json
from paribus.tracking.destination import Destination
from paribus.tracking.events import FAILURE_TAG, FILE_NAME, EventLog, EventReader, end_stopped
from paribus.tracking.mlflow import MlflowSink, TrackingError, is_delivered, is_locked, locked

KINDS_OF_LOGS = ("runs", "sweeps", "reports")
HELP = """usage: paribus sync [root=paribus_runs] [tracking.uri=URI] [tracking.experiment=NAME]
                    [tracking.patience=SECONDS]

Send to MLflow whatever it lacks of the runs, sweeps and reports below ROOT; what arrived before is not sent again. Each
goes where its own configuration wanted it, unless a URI is named.

exit status: 0 all was sent or wants no tracker; 1 some failed, a line each says why; 2 refused

examples:
  paribus sync
  paribus sync root=/data/paribus_runs
  paribus sync tracking.uri=http://mlflow.example:5000 tracking.patience=60
"""
MAX_STARTS, CHECK_SECONDS, FOLLOW_SECONDS = 3, 0.5, 0.05
INTERVAL_SECONDS, LINGER_SECONDS, HANG_SECONDS, POLL_SECONDS = 10.0, 20.0, 120.0, 0.1
STATE, LOCK = "state.json", "service.lock"
LEASE_SECONDS = 30.0
"""Seconds for which this process may be silent while it closes a log; the claim of a run states its own."""
_REASON = "infrastructure: the process of this run ended without a word, killed from outside or with its node"


def _positive(text: str) -> float:
    with suppress(ValueError):
        if (value := float(text)) > 0:
            return value
    raise ValueError(f"{text!r} is no positive number of seconds")


_OPTIONS: Mapping[str, Callable[[str], Any]] = {
    "root": proper_path,
    "tracking.uri": str,
    "tracking.experiment": proper_name,
    "tracking.patience": _positive,
}


@dataclass(frozen=True)
class RunSync:
    """Outcome for one run: how many events of each kind were sent now, or why not."""

    run_id: str
    events: Counter[str] = field(default_factory=Counter)
    problems: tuple[str, ...] = ()
    error: str | None = None
    skipped: bool = False

    @property
    def failed(self) -> bool:
        """False also for a run whose configuration wants no tracker."""
        return self.error is not None and not self.skipped

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.run_id}: {'skipped' if self.skipped else 'failed'}: {self.error}"
        counts = ", ".join(f"{number} {kind}" for kind, number in sorted(self.events.items()))
        total = f"{self.run_id}: {self.events.total()} events sent" + f" ({counts})" * bool(counts)
        return "; ".join([total, *self.problems])


def sync(root: Path, changes: Mapping[str, Any], tell: Callable[[RunSync], None] = lambda run: None) -> list[RunSync]:
    """Send what is missing of all runs below `root`, and `tell` of each; what arrived before is not sent again.

    A run goes where its own configuration wanted it, with these `changes` of its fields. An MLflow that fails is
    reported, not raised; ConfigurationError for a URI that MLflow cannot open.
    """
    sinks: dict[Destination, MlflowSink] = {}
    unreachable: dict[Destination, str] = {}
    runs: list[RunSync] = []
    logs = (log for kind in KINDS_OF_LOGS for log in (root.resolve() / kind).glob(f"*/{FILE_NAME}"))
    for directory in sorted(log.parent for log in logs):
        tracking = dataclasses.replace(_recorded_tracking(directory), **changes)
        destination = None if tracking.kind == "none" else Destination.resolve(tracking, root)
        if destination is None:
            reason = "its tracking.kind is none; name a tracking.uri to send it"
            runs.append(RunSync(directory.name, error=reason, skipped=True))
        elif destination in unreachable:
            runs.append(RunSync(directory.name, error=unreachable[destination]))
        else:
            close_abandoned(directory, root)
            sink = sinks.setdefault(destination, MlflowSink(destination))
            try:
                sent = sink.send(directory)
                runs.append(RunSync(directory.name, sent.events, tuple(sent.problems)))
            except (TrackingError, TimeoutError, OSError) as error:
                if isinstance(error, TrackingError) and error.unreachable:
                    unreachable[destination] = str(error)
                runs.append(RunSync(directory.name, error=str(error)))
            sink.forget(directory)
        tell(runs[-1])
    return runs


def main(argv: Sequence[str]) -> int:
    """`paribus sync [root=...] [tracking.uri=...] [tracking.experiment=...]`: one line a run; 1 when a run failed."""
    if HELP_FLAGS & set(argv):
        sys.stdout.write(HELP)
        return 0
    changes: dict[str, Any] = {}
    for name, text in read_options(argv, tuple(_OPTIONS)).items():
        try:
            changes[name.removeprefix("tracking.")] = _OPTIONS[name](text)
        except ValueError as error:
            raise ConfigurationError(f"{name}: {error}") from error
    root = Path(changes.pop("root", "paribus_runs"))
    if not root.is_dir():
        raise ConfigurationError(f"root: {str(root)!r} is no directory; name the output root of the runs with root=...")
    if "uri" in changes:
        changes["kind"] = "mlflow"
    runs = sync(root, changes, _write_line)
    if not runs:
        _write_line(f"no runs below {root.resolve()}")
    return 1 if any(run.failed for run in runs) else 0


def _recorded_tracking(directory: Path) -> TrackingConfig:
    """Tracking that the run's own configuration asked for."""
    start = next((event for event in EventReader(directory / FILE_NAME).poll() if event.event == "start"), None)
    recorded: Mapping[str, Any] = start.fields["tracking"] if start is not None else {}
    names = {item.name for item in dataclasses.fields(TrackingConfig)}
    return TrackingConfig(**{name: value for name, value in recorded.items() if name in names})


def _write_line(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@dataclass(frozen=True)
class TrackingRequest:
    """Request of a process to follow a run; `finishing` asks for an answer at once."""

    path: Path
    run_directory: Path
    process: Process
    """The process that asks: of the PID namespace of the service, since each has its own, or of an earlier boot."""
    finishing: bool

    @property
    def answer(self) -> Path:
        """The outcome of the last attempt: `error` (null when all was sent), `problems` and `finishing`."""
        return self.path.with_suffix(".answer")

    @property
    def abandoned(self) -> bool:
        """True if its process has ended."""
        return is_gone(self.process) or is_of_another_boot(self.process)


class Follower:
    """Has a service send the event file of a run; ConfigurationError for a bad URI, other problems from `finish`."""

    def __init__(self, run_directory: Path, tracking: TrackingConfig, root: Path) -> None:
        self.run_directory = Path(run_directory).resolve()
        self._destination = Destination.resolve(tracking, root) if tracking.kind == "mlflow" else None
        self._child: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self._problem: str | None = None
        if self._destination is not None:
            try:
                self._request(self._destination, finishing=False)
                self._ensure_service(self._destination)
            except OSError as error:
                self._problem = str(error)

    def finish(self, patience: float) -> str:
        """Wait at most `patience` seconds until all has arrived; return a message about the outcome."""
        if self._destination is None:
            return f"tracking.kind is none: the run is recorded in {self.run_directory / FILE_NAME} only"
        try:
            answer = self._await_answer(self._destination, patience)
        except OSError as error:
            answer = {"error": str(error)}
        shown, log = self._destination.shown, self.run_directory / FILE_NAME
        reason = answer.get("error", self._problem or f"no answer within {patience:g} s")
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
            time.sleep(FOLLOW_SECONDS)
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
        """Start the service where none runs; False when all of `MAX_STARTS` starts have ended."""
        if (self._child is not None and self._child.poll() is None) or is_locked(_service_lock(destination)):
            return True
        if self._starts == MAX_STARTS:
            self._problem = f"the process that talks to MLflow ended; see {destination.service_directory}/service.log"
            return False
        self._starts += 1
        self._child = _start_service(destination)
        return True

    def _is_hanging(self, destination: Destination, patience: float) -> bool:
        """True if MLflow has not answered the service for more than `patience` seconds."""
        busy_since = read_object_if_any(destination.service_directory / STATE).get("busy_since")
        silence = 0.0 if busy_since is None else time.time() - float(busy_since)
        if silence <= patience or not is_locked(_service_lock(destination)):
            return False
        self._problem = f"no answer for {silence:.0f} s"
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
    """Start the service, the URI on standard input, because a password must not show in the list of processes."""
    options = {**vars(destination), "root": str(destination.root), "spawner": os.getpid()}
    with (destination.service_directory / "service.log").open("ab") as log:
        child = subprocess.Popen(
            [sys.executable, "-P", "-c", "from paribus.tracking.sync import serve; serve()"],
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


# The process that sends the runs of one output root on one machine to MLflow. It is apart from every run, so that an
# MLflow that hangs, crashes or costs time harms nobody but itself, and one import of MLflow serves a sweep. Runs ask
# for it by a request file; the first starts it, and it leaves when nobody needs it. An operation that hangs for two
# minutes ends the process; what it did not send stays in the event files.
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
            end = time.monotonic() + INTERVAL_SECONDS
            while time.monotonic() < end and _fingerprint(self._directory) == before:
                time.sleep(POLL_SECONDS)

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
            elif is_of_another_boot(read_holder(run_claim(self._destination.root, request.run_directory.name)) or {}):
                return  # the claim of that process of an earlier boot ends with its lease
            request.path.unlink(missing_ok=True)
            request.answer.unlink(missing_ok=True)
            self._sink.forget(request.run_directory)

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


def _fingerprint(directory: Path) -> list[tuple[str, int]]:
    with os.scandir(directory) as entries:
        return sorted((entry.name, entry.inode()) for entry in entries if entry.name.endswith(".request"))


def serve() -> None:
    """Read the fields of a destination, and `spawner`, as JSON from standard input and serve."""
    options = json.loads(sys.stdin.read())
    os.nice(5)
    spawner, root = options.pop("spawner"), Path(options.pop("root"))
    destination = Destination(root, **options)
    directory = destination.service_directory
    os.chdir(directory)
    try:
        with locked(directory / LOCK, 0.5), Path("service.log").open("a") as log:
            take_over(destination)
            Service(destination, spawner, log).run()
    except TimeoutError:
        sys.exit(0)  # another service does the work


def requests(directory: Path) -> Iterator[TrackingRequest]:
    """The requests in a service's directory."""
    for path in sorted(directory.glob("*.request")):
        if fields := read_object_if_any(path):
            yield TrackingRequest(path, Path(fields["run_directory"]), fields["process"], bool(fields["finishing"]))


def take_over(destination: Destination) -> None:
    """Move the requests of earlier boots of this host into the directory of this one's service, which serves them.

    A directory in which a service is at work is left alone, and so are requests of other PID namespaces of this boot,
    of which nothing is known here. A directory of an earlier boot that has none any more is removed.
    """
    target = destination.service_directory
    name = re.compile(re.escape(f"{destination.key}-{socket.gethostname()}-") + "[0-9a-f]{8}")
    for directory in sorted(target.parent.iterdir()):
        if name.fullmatch(directory.name) and directory != target:
            with suppress(OSError), locked(directory / LOCK, 0):  # OSError: another's, or a service is at work there
                _take_requests(directory, target)


def _take_requests(directory: Path, target: Path) -> None:
    waiting = list(requests(directory))
    earlier = [request for request in waiting if is_of_another_boot(request.process)]
    for request in earlier:
        request.answer.unlink(missing_ok=True)
        request.path.replace(target / request.path.name)
    if len(earlier) == len(waiting) and (earlier or is_of_another_boot(read_object_if_any(directory / STATE))):
        shutil.rmtree(directory)


def close_abandoned(run_directory: Path, root: Path) -> bool:
    """End the log of a run that has no end and no living process; True if it was such a run.

    The process of a run holds a claim on it, below the output root `root`, for as long as it lives. The run has failed,
    unless its record says that it was done by then, or stopped after the stage that was asked for.
    """
    if run_directory.parent.name != "runs" or not (run_directory / FILE_NAME).is_file():
        return False
    held = acquire(run_claim(root, run_directory.name), LEASE_SECONDS)
    if held is None:
        return False
    with held, EventLog(run_directory / FILE_NAME) as events:
        if not events.is_open:
            return False
        record = read_object_if_any(run_directory / RUN_RECORD)
        if record.get("status") == "done":
            events.tag(FAILURE_TAG, None)
            events.end("FINISHED")
        elif record.get("status") == "stopped":
            end_stopped(events, str(record.get("until")))
        else:
            events.tag(FAILURE_TAG, _REASON)
            events.end("FAILED")
    return True
