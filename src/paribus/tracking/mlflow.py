"""Replay of event logs to MLflow; the only importer of mlflow, which it imports late."""

import fcntl
import hashlib
import json
import logging
import os
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from paribus.errors import ConfigurationError, InfrastructureError
from paribus.store.files import read_object_if_any, replacing, write_json
from paribus.tracking.destination import Destination, sqlite_uri
from paribus.tracking.events import FILE_NAME, SCHEDULED, Event, EventReader, complete_size

_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_ENABLE_ASYNC_LOGGING": "false",
}
_PATIENCE = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
}
# An inherited run, experiment or store would silently replace the ones named here.
_FOREIGN = ("MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_TRACKING_URI")
_LOG_TAG, _RUN_TAG, _SWEEP_TAG, _PARENT_TAG = "paribus.log", "paribus.run_id", "paribus.sweep_id", "mlflow.parentRunId"
_KIND_TAGS = {"mlflow.experimentKind": "custom_model_development"}
"""Kind of an experiment, for the versions of MLflow 3 that ask it and not the address."""
_REFUSALS = ("INVALID_PARAMETER_VALUE", "BAD_REQUEST", "INVALID_STATE")
MAX_ENTITIES, MAX_PARAMETERS, MAX_CHARACTERS = 1000, 100, 400_000
MAX_PARAMETER_LENGTH, MAX_TAG_LENGTH, MAX_NAME_LENGTH = 6000, 8000, 250
_ENTITIES = ("metric", "parameter", "tag")


# Every operation may be repeated without effect: a run is found by its log's identity before it is created, a metric
# carries its event's own time and so meets the store's primary key, parameters never change, artifacts are overwritten.
# Together with the cursor of `replay`, a sync that is killed, repeated or run twice at once leaves each event once.
class TrackingError(InfrastructureError):
    """MLflow did not answer, or not as it should; the event file still holds everything.

    `unreachable` says that not even the experiment could be opened, so another run need not be tried.
    """

    def __init__(self, message: str, *, unreachable: bool = False) -> None:
        super().__init__(message)
        self.unreachable = unreachable


# The cursor is saved after every batch, so at most one batch is sent twice, and the sink makes that harmless.
@dataclass
class Sent:
    """Result of one replay: number of events by kind, and what could not be shown and why."""

    events: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


class Replay:
    """Reader and cursor of one run; `pending` are the events that the destination still lacks."""

    def __init__(self, run_directory: Path, destination: Destination) -> None:
        self.run_directory = run_directory
        self.mlflow_run_id: str | None = None
        self.verified = False
        self.pending: list[Event] = []
        self.start: Event | None = None
        self._destination = destination
        self._saved = 0
        self.cursor = cursor_path(run_directory, destination)
        self.reader = EventReader(run_directory / FILE_NAME)

    def refresh(self) -> None:
        """Read what was logged here and what other processes have sent since the last call."""
        events = self.reader.poll()
        self.start = self.start or next((event for event in events if event.event == "start"), None)
        cursor = read_object_if_any(self.cursor)
        offset = int(cursor.get("offset", 0))
        if self.start is None or cursor.get("log") != self.start.fields["log"]:
            cursor, offset = {}, 0
        self._saved = offset
        self.mlflow_run_id = cursor.get("mlflow_run_id")
        self.pending = [event for event in [*self.pending, *events] if event.position > offset]

    def restart(self) -> None:
        """Send everything again, as the destination does not know the run (any more)."""
        self.cursor.unlink(missing_ok=True)
        self.mlflow_run_id = None
        self.start = None
        self.reader = EventReader(self.reader.path)
        self.pending = []
        self.refresh()

    def advance(self, count: int) -> None:
        """Save that the first `count` pending events have arrived."""
        offset = self.pending[count - 1].position
        self.pending = self.pending[count:]
        self._save(offset)

    def finish(self) -> None:
        """Save that everything read so far has arrived, also the lines that are no events of their own."""
        if self.reader.offset != self._saved:
            self._save(self.reader.offset)

    def _save(self, offset: int) -> None:
        assert self.start is not None
        cursor: dict[str, Any] = {
            "uri": self._destination.shown,
            "experiment": self._destination.experiment,
            "log": self.start.fields["log"],
            "mlflow_run_id": self.mlflow_run_id,
            "offset": offset,
        }
        write_json(self.cursor, cursor)
        self._saved = offset


class MlflowSink:
    """Sends runs to one destination; `on_step` is called before every operation that could hang."""

    def __init__(self, destination: Destination, on_step: Callable[[], None] = lambda: None) -> None:
        self.destination = destination
        self._on_step = on_step
        self._replays: dict[Path, Replay] = {}
        self._parents: dict[str, str] = {}
        self._connected: tuple[Any, str] | None = None

    def send(self, run_directory: Path) -> Sent:
        """Send what the run's log has and MLflow lacks. TrackingError when MLflow fails; TimeoutError when busy."""
        replay = self._replays.setdefault(run_directory, Replay(run_directory, self.destination))
        with mlflow_environment(), locked(replay.cursor.with_suffix(".lock"), self.destination.patience):
            replay.refresh()
            sent = Sent(problems=list(replay.reader.problems))
            if replay.start is None:
                if replay.pending:
                    raise TrackingError(f"{run_directory}: the log has no start event, so it cannot be shown")
                return sent
            try:
                self._send(replay, sent)
            except (TrackingError, ConfigurationError, TimeoutError):
                raise
            except Exception as error:  # whatever a store, driver or server raises
                unreachable = self._connected is None
                replay.verified, self._connected = False, None
                self._parents.clear()
                raise TrackingError(
                    f"{self.destination.shown}: {self._reason(error)}", unreachable=unreachable
                ) from error
        return sent

    def forget(self, run_directory: Path) -> None:
        """Free the memory of a run that is not going to be sent again soon."""
        self._replays.pop(run_directory, None)

    def _send(self, replay: Replay, sent: Sent) -> None:
        client, _ = self._connect()
        run_id = self._run_id(replay)
        for batch in batches(replay.pending):
            self._on_step()
            sent.problems += self._send_batch(client, run_id, batch, replay)
            sent.events.update(event.event for event in batch)
            replay.advance(len(batch))
        replay.finish()

    def _send_batch(self, client: Any, run_id: str, batch: list[Event], replay: Replay) -> list[str]:
        if batch[0].event not in _ENTITIES:
            return self._send_single(client, run_id, batch[0], replay)
        try:
            _log_batch(client, run_id, batch)
        except Exception as error:
            if _error_code(error) not in _REFUSALS:
                raise
            _refuse_deleted(client.get_run(run_id))
            if len(batch) == 1:
                what = f"{batch[0].event} {batch[0].fields.get('name')!r}"
                return [f"MLflow refused {what}: {self._reason(error)}"]
            return [line for event in batch for line in self._send_batch(client, run_id, [event], replay)]
        return []

    def _send_single(self, client: Any, run_id: str, event: Event, replay: Replay) -> list[str]:
        """Send an event that takes a request of its own kind; return what could not be shown."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        fields = event.fields
        match event.event:
            case "start":
                status = None if _is_sweep(replay) else "RUNNING"
                client.update_run(run_id, status=status, name=fields["name"])
                self._update_parent(client, replay, event.time)
            case "end":
                client.set_terminated(run_id, status=fields["status"], end_time=event.time)
                self._update_parent(client, replay, event.time)
            case "dataset":
                name, digest, source = (str(fields[field]) for field in ("name", "digest", "source"))
                dataset = Dataset(name[:500], digest[:36], "local", source[:60000])
                client.log_inputs(run_id, [DatasetInput(dataset, [InputTag("paribus.digest", digest[:500])])])
            case "artifact":
                path, folder = (replay.run_directory / fields["path"]).resolve(), str(fields["folder"])
                if path.is_dir():
                    client.log_artifacts(run_id, str(path), "/".join(part for part in (folder, path.name) if part))
                elif path.is_file():
                    client.log_artifact(run_id, str(path), folder or None)
                else:
                    return [f"{path}: artifact is gone and not shown"]
        return []

    def _reason(self, error: Exception) -> str:
        """Reason of the system where there is one, else the first line of the error; without credentials."""
        text = self.destination.without_credentials(str(error).strip())
        reason = re.search(r"\[Errno -?\d+\] [^'\")]+", text)
        return reason.group() if reason else f"{type(error).__name__}: {text.partition(chr(10))[0][:300]}"

    def _connect(self) -> tuple[Any, str]:
        """The client and the number of the experiment, which is made where there is none."""
        if self._connected is None:
            self._on_step()
            ensure_store(self.destination)
            from mlflow import MlflowClient

            logging.getLogger("mlflow").setLevel(logging.WARNING)
            client, name = MlflowClient(self.destination.uri, self.destination.uri), self.destination.experiment
            with locked(self.destination.store_lock, self.destination.patience):
                experiment = client.get_experiment_by_name(name)
                if experiment is None:
                    number = client.create_experiment(name, self.destination.artifact_location, _KIND_TAGS)
                elif experiment.lifecycle_stage == "active":
                    number = experiment.experiment_id
                else:
                    deleted = f"tracking.experiment: {name!r} was deleted in MLflow"
                    raise TrackingError(f"{deleted}; restore it or name another")
            self._connected = client, str(number)
        return self._connected

    def _run_id(self, replay: Replay) -> str:
        """The MLflow run of this log, looked up once, created where MLflow has none."""
        if replay.verified and replay.mlflow_run_id:
            return replay.mlflow_run_id
        if replay.mlflow_run_id is not None and not self._exists(replay.mlflow_run_id):
            replay.restart()
        if replay.mlflow_run_id is None:
            assert replay.start is not None
            fields, began = replay.start.fields, replay.start.time
            parent = self._parent(fields["sweep"], began) if fields["sweep"] else None
            tags = {_LOG_TAG: fields["log"], _RUN_TAG: fields["run_id"], **({_PARENT_TAG: parent} if parent else {})}
            sweep_run = parent if _is_sweep(replay) else None
            replay.mlflow_run_id = sweep_run or self._find_or_create_run(_LOG_TAG, tags, fields["name"], began)
        replay.verified = True
        return replay.mlflow_run_id

    def _exists(self, mlflow_run_id: str) -> bool:
        client, _ = self._connect()
        self._on_step()
        try:
            run = client.get_run(mlflow_run_id)
        except Exception as error:
            if _error_code(error) == "RESOURCE_DOES_NOT_EXIST":
                return False
            raise
        _refuse_deleted(run)
        return True

    def _parent(self, sweep: Mapping[str, Any], time: int) -> str:
        identifier = str(sweep["id"])
        if identifier not in self._parents:
            name = str(sweep.get("name") or identifier)
            self._parents[identifier] = self._find_or_create_run(_SWEEP_TAG, {_SWEEP_TAG: identifier}, name, time)
        return self._parents[identifier]

    def _find_or_create_run(self, key: str, tags: Mapping[str, str], name: str, time: int) -> str:
        from mlflow.entities import ViewType

        client, experiment = self._connect()
        self._on_step()
        with locked(self.destination.store_lock, self.destination.patience):
            runs = client.search_runs([experiment], f"tags.`{key}` = '{tags[key]}'", ViewType.ALL, max_results=1)
            if runs:
                _refuse_deleted(runs[0])
                return str(runs[0].info.run_id)
            return str(client.create_run(experiment, time, {"mlflow.source.name": "paribus", **tags}, name).info.run_id)

    def _update_parent(self, client: Any, replay: Replay, time: int) -> None:
        """A sweep runs while one of its runs does, has failed where one of them has, and is finished where all are."""
        sweep = replay.start.fields["sweep"] if replay.start is not None else None
        if not sweep or _is_sweep(replay):
            return
        parent = self._parent(sweep, time)
        if self._has_child(client, parent, "= 'RUNNING'"):
            client.update_run(parent, status="RUNNING")
            return
        status = "FINISHED"
        if self._has_child(client, parent, "!= 'FINISHED'"):
            failed = any(self._has_child(client, parent, f"= '{ended}'") for ended in ("FAILED", "KILLED"))
            status = "FAILED" if failed else SCHEDULED
        client.set_terminated(parent, status, end_time=time)

    def _has_child(self, client: Any, parent: str, status: str) -> bool:
        """True if a run of a sweep has such a status; one is looked for, so that large sweeps cost no more."""
        _, experiment = self._connect()
        self._on_step()
        condition = f"tags.`{_PARENT_TAG}` = '{parent}' AND attributes.status {status}"
        return bool(client.search_runs([experiment], condition, max_results=1))


def ensure_store(destination: Destination) -> None:
    """Make the destination's sqlite database where it is missing; other stores are the server's business.

    MLflow migrates an empty database when it first opens it, and processes that do so at once leave it broken. So it
    is made under a lock, in a file of its own, and renamed when it is whole. Until then nothing of it need reach the
    disk: MLflow's migrations are hundreds of transactions, and to wait for each takes seconds.
    """
    database = destination.database
    if database is None or _is_initialized(destination):
        return
    with locked(destination.store_lock, max(60.0, destination.patience)):
        if _is_initialized(destination):
            return
        if database.exists() and database.stat().st_size:
            _open(destination.uri, destination)
            return
        with replacing(database) as partial, _without_disk_syncs():
            # By itself SQLite makes a file that only its owner may write, whatever the umask.
            partial.touch()
            _open(sqlite_uri(partial), destination)


@contextmanager
def _without_disk_syncs() -> Iterator[None]:
    """Within it the system decides when writes to a newly opened SQLite database reach the disk."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    def stop_syncs(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA synchronous=OFF")

    event.listen(Engine, "connect", stop_syncs)
    try:
        yield
    finally:
        event.remove(Engine, "connect", stop_syncs)


def _open(uri: str, destination: Destination) -> None:
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    SqlAlchemyStore(uri, (destination.root / "mlartifacts").as_uri()).engine.dispose()


def _is_initialized(destination: Destination) -> bool:
    database = destination.database
    if database is None or not database.exists() or not database.stat().st_size:
        return False
    with closing(sqlite3.connect(f"file:{quote(str(database))}?mode=ro", uri=True, timeout=10)) as connection:
        try:
            return connection.execute("SELECT version_num FROM alembic_version").fetchone() is not None
        except sqlite3.OperationalError:
            return False


@contextmanager
def mlflow_environment() -> Iterator[None]:
    """Within it MLflow is quiet, quick to give up and takes nothing from an enclosing MLflow run."""
    before = dict(os.environ)
    for name in _FOREIGN:
        os.environ.pop(name, None)
    os.environ.update(_ENVIRONMENT)
    for name, value in _PATIENCE.items():
        os.environ.setdefault(name, value)
    try:
        yield
    finally:
        for name in {*_FOREIGN, *_ENVIRONMENT, *_PATIENCE}:
            os.environ.pop(name, None)
            if name in before:
                os.environ[name] = before[name]


def _log_batch(client: Any, run_id: str, batch: list[Event]) -> None:
    """Log metrics, parameters and tags: of two parameters that become one the first, the last value of each tag."""
    from mlflow.entities import Metric, Param, RunTag

    def events_of(kind: str) -> list[Event]:
        return [event for event in batch if event.event == kind]

    metrics = [
        Metric(_name(event), float(event.fields["value"]), event.time, int(event.fields["step"]))
        for event in events_of("metric")
    ]
    parameters = {_name(event): _text(event, MAX_PARAMETER_LENGTH) for event in reversed(events_of("parameter"))}
    tags = {_name(event): event for event in events_of("tag")}
    removed = [name for name, event in tags.items() if event.fields["value"] is None]
    shown = [RunTag(name, _text(event, MAX_TAG_LENGTH)) for name, event in tags.items() if name not in removed]
    client.log_batch(run_id, metrics, [Param(*item) for item in parameters.items()], shown, synchronous=True)
    for name in removed:
        try:
            client.delete_tag(run_id, name)
        except Exception as error:
            if _error_code(error) != "RESOURCE_DOES_NOT_EXIST":
                raise


def _is_sweep(replay: Replay) -> bool:
    """True if the log describes a sweep itself; a sweep's status is that of its runs."""
    fields = replay.start.fields if replay.start is not None else {}
    return bool(fields.get("sweep")) and fields["sweep"]["id"] == fields["run_id"]


def _refuse_deleted(run: Any) -> None:
    if run.info.lifecycle_stage != "active":
        raise TrackingError(f"run {run.info.run_id} was deleted in MLflow and is left alone; restore it there to sync")


def _error_code(error: Exception) -> str:
    return str(getattr(error, "error_code", ""))


def cursor_path(run_directory: Path, destination: Destination) -> Path:
    """The file beside the log that says how far `destination` is."""
    return run_directory / f"tracking-{destination.key}.json"


def is_delivered(run_directory: Path, destination: Destination) -> bool:
    """True if every whole line of the run's log has been sent."""
    sent = int(read_object_if_any(cursor_path(run_directory, destination)).get("offset", 0))
    return sent >= complete_size(run_directory / FILE_NAME)


def batches(events: Iterable[Event]) -> Iterator[list[Event]]:
    """Split `events`, without changing their order, into what goes in one request; others than `_ENTITIES` go alone."""
    current: list[Event] = []
    counts: Counter[str] = Counter()
    for event in events:
        kind, size = event.event, len(str(event.fields))
        full = len(current) >= MAX_ENTITIES or (kind != "metric" and counts[kind] >= MAX_PARAMETERS)
        if current and (kind not in _ENTITIES or full or counts["characters"] + size > MAX_CHARACTERS):
            yield current
            current, counts = [], Counter()
        if kind not in _ENTITIES:
            yield [event]
            continue
        current.append(event)
        counts.update({kind: 1, "characters": size})
    if current:
        yield current


def _name(event: Event) -> str:
    """The name in the characters MLflow allows."""
    return re.sub(r"[^/\w.\- :]", "_", str(event.fields["name"]))[:MAX_NAME_LENGTH]


def _text(event: Event, limit: int) -> str:
    """The value as text; one that is too long ends in the digest of the whole."""
    value = event.fields["value"]
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) <= limit:
        return text
    ending = f"... sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    return text[: limit - len(ending)] + ending


@contextmanager
def locked(path: Path, patience: float) -> Iterator[None]:
    """Hold the lock file `path`; TimeoutError when another process still holds it after `patience` seconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise TimeoutError(f"another process has held {path} for {patience:g} s") from None
                time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """True if some process holds the lock file `path`."""
    try:
        with locked(path, 0):
            return False
    except TimeoutError:
        return True
