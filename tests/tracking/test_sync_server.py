"""Many runs at once into one MLflow, whose server is killed meanwhile; and a server with a password."""

import os
import pwd
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from paribus.config.groups.execution import TrackingConfig
from paribus.tracking.sync import Follower, main, sync
from support import logged_run
from support.logged_run import METRICS, PARAMETERS, TAGS, value
from support.tracking_runs import steps_shown, write_run

QUIET = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
SETTINGS = {"fsync": "off", "listen_addresses": "127.0.0.1", "password_encryption": "scram-sha-256"}


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class PostgreSQL:
    """A database of its own; the password is in `passfile` and in no URI."""

    port: int
    password: str
    passfile: Path

    @property
    def uri(self) -> str:
        return f"postgresql+psycopg2://mlflow@127.0.0.1:{self.port}/postgres?passfile={self.passfile}"

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        import psycopg2

        connection = psycopg2.connect(
            host="127.0.0.1", port=self.port, dbname="postgres", user="mlflow", password=self.password
        )
        with closing(connection), connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())


@contextmanager
def postgresql() -> Iterator[PostgreSQL]:
    """PostgreSQL with scram on a free port; it refuses to run as root, so then it runs as another user."""
    pytest.importorskip("psycopg2", reason="needs psycopg2, of the extra `server`")
    programs = _postgresql_programs()
    user = _unprivileged() if os.geteuid() == 0 else None
    home = Path(tempfile.mkdtemp(prefix="paribus-postgresql-"))
    password, port = secrets.token_hex(16), free_port()
    given, passfile = home / "password", home / "passfile"
    given.write_text(password, encoding="utf-8")
    passfile.write_text(f"127.0.0.1:{port}:postgres:mlflow:{password}\n", encoding="utf-8")
    passfile.chmod(0o600)
    if user is not None:
        for path in (home, given):
            os.chown(path, user, -1)
    data = home / "data"
    create = [programs / "initdb", "-D", data, "-U", "mlflow", "--pwfile", given, "-A", "scram-sha-256", "-E", "UTF8"]
    subprocess.run([*create, "--no-sync"], user=user, cwd=home, check=True, stdout=subprocess.DEVNULL)
    options = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
    command = [programs / "postgres", "-D", data, "-p", str(port), "-k", home, *options]
    with (home / "log").open("wb") as log:
        server = subprocess.Popen(command, user=user, cwd=home, stdout=log, stderr=log, start_new_session=True)
    database = PostgreSQL(port, password, passfile)
    try:
        _await(database, server)
        yield database
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)
        shutil.rmtree(home)


def _postgresql_programs() -> Path:
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found = shutil.which("initdb") or (installed[-1] if installed else None)
    if found is None:
        pytest.skip("needs PostgreSQL's initdb and postgres")
    return Path(found).parent


def _unprivileged() -> int:
    known = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
    return known.get("postgres", known.get("nobody", 65534))


def _await(database: PostgreSQL, server: subprocess.Popen[bytes]) -> None:
    import psycopg2

    deadline = time.monotonic() + 240
    while True:
        try:
            database.rows("SELECT 1")
            return
        except psycopg2.OperationalError:
            assert server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)


@dataclass
class MlflowServer:
    """MLflow's server in `directory`, which can be killed and started again on the same port."""

    store: str
    directory: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def artifacts(self) -> Path:
        return self.directory / "served"

    def start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", self.store, "--workers", "1"]
        command += ["--artifacts-destination", str(self.artifacts), "--host", "127.0.0.1", "--port", str(self.port)]
        with (self.directory / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self.directory, env=os.environ | QUIET, stdout=log, stderr=log, start_new_session=True
            )
        wait_for(f"{self.uri}/health", self.process)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it with all its processes; SIGKILL leaves them no time to finish anything."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, how)
            self.process.wait(30)


def wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 240
    while True:
        try:
            with urllib.request.urlopen(url, timeout=2) as response:
                response.read()
            return
        except (urllib.error.URLError, OSError):
            assert server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)


Query = Callable[[str], list[tuple[Any, ...]]]


def start_runs(roots: list[Path], steps: int, gate: Path, uri: str) -> list[subprocess.Popen[str]]:
    """A process a run, `run-00` and so on, each below its root; half of what they log waits for `gate`."""
    program = str(Path(logged_run.__file__))
    options = [str(steps), str(gate), uri, "5"]
    return [
        subprocess.Popen(
            [sys.executable, program, str(root), f"run-{number:02d}", str(number), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, root in enumerate(roots)
    ]


def assert_everything_is_there_once(query: Query, runs: int, steps: int) -> None:
    """Every event of every run is in the tables of MLflow, with its value, and nothing is there twice."""
    expected = {
        (f"run-{number:02d}", f"metric/{metric}"): [value(number, metric, step) for step in range(steps)]
        for number in range(runs)
        for metric in range(METRICS)
    }
    points = query(
        "SELECT t.value, m.key, m.step, m.value FROM metrics m JOIN tags t ON t.run_uuid = m.run_uuid "
        "AND t.key = 'paribus.run_id' ORDER BY 1, 2, 3"
    )
    assert len(points) == runs * steps * METRICS
    by_name: dict[tuple[str, str], list[float]] = {}
    for run, key, step, number in points:
        series = by_name.setdefault((run, key), [])
        assert step == len(series)
        series.append(number)
    assert by_name == expected
    assert query("SELECT count(*) FROM metrics") == [(len(points),)]
    latest = query(
        "SELECT t.value, l.key, l.step, l.value FROM latest_metrics l JOIN tags t ON t.run_uuid = l.run_uuid "
        "AND t.key = 'paribus.run_id'"
    )
    assert sorted(latest) == sorted((*name, steps - 1, series[-1]) for name, series in expected.items())
    for text, result in (
        ("SELECT count(*) FROM params", [(runs * PARAMETERS,)]),
        (
            "SELECT value, count(*) FROM tags WHERE key = 'tag.0' GROUP BY value ORDER BY value",
            sorted((str(number), 1) for number in range(runs)),
        ),
        ("SELECT count(*) FROM tags WHERE key LIKE 'tag.%'", [(runs * TAGS,)]),
        ("SELECT status, count(*) FROM runs GROUP BY status", [("FINISHED", runs + 1)]),
        ("SELECT count(*) FROM tags WHERE key = 'paribus.sweep_id'", [(1,)]),
        ("SELECT count(*) FROM tags WHERE key = 'mlflow.parentRunId'", [(runs,)]),
        ("SELECT count(*) FROM inputs", [(runs,)]),
    ):
        assert query(text) == result, text


@pytest.fixture
def database() -> Iterator[PostgreSQL]:
    with postgresql() as started:
        yield started


@pytest.fixture
def server(database: PostgreSQL, tmp_path: Path) -> Iterator[MlflowServer]:
    started = MlflowServer(database.uri, tmp_path / "server")
    started.start()
    yield started
    started.stop()


def points_in(database: PostgreSQL) -> int:
    return int(database.rows("SELECT count(*) FROM metrics")[0][0])


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "points"), [pytest.param(4, 4_000, marks=pytest.mark.core), (16, 100_000)])
def test_a_server_killed_in_the_middle_has_every_event_once_after_sync(
    database: PostgreSQL, server: MlflowServer, tmp_path: Path, runs: int, points: int
) -> None:
    root, gate, steps = tmp_path / "root", tmp_path / "gate", points // runs // METRICS
    processes = start_runs([root] * runs, steps, gate, server.uri)
    while points_in(database) < points / 8:
        assert all(process.poll() is None for process in processes)
        time.sleep(0.2)
    server.stop(signal.SIGKILL)
    gate.touch()
    assert points_in(database) <= points / 2
    server.start()
    outputs = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0] * runs, outputs
    assert main([f"root={root}", f"tracking.uri={server.uri}"]) == 0
    assert_everything_is_there_once(database.rows, runs, steps)
    artifacts = sorted(path.read_text(encoding="utf-8") for path in server.artifacts.rglob("config.json"))
    assert artifacts == sorted(f'{{"run": {number}}}' for number in range(runs))
    for cursor in root.glob("runs/*/tracking-*.json"):
        cursor.unlink()
    tracking = TrackingConfig(kind="mlflow", uri=server.uri)
    assert sum(run.events.total() for run in sync(root, vars(tracking))) > points
    assert_everything_is_there_once(database.rows, runs, steps)
    password = database.password.encode()
    assert not [path for path in root.rglob("*") if path.is_file() and password in path.read_bytes()]


DOCKER = Path(__file__).resolve().parents[2] / "docker"
PASSWORD = "correct horse battery staple"


def environment_of(directory: Path, **settings: str) -> dict[str, str]:
    """What docker/tracker is given, and no more than a container has."""
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(directory),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "MLFLOW_BACKEND_STORE_URI": f"sqlite:///{directory}/server.db",
        "MLFLOW_ARTIFACTS_DESTINATION": str(directory / "served"),
        "MLFLOW_WORKERS": "1",
        **settings,
    }


def test_an_exposed_server_needs_a_password_and_names(tmp_path: Path) -> None:
    for name, content in {"long": PASSWORD, "short": "password1234"}.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    password, hosts = "MLFLOW_ADMIN_PASSWORD_FILE", "MLFLOW_SERVER_ALLOWED_HOSTS"
    for settings, reason in (
        ({}, "0.0.0.0 is not loopback: MLFLOW_ADMIN_PASSWORD_FILE must name a file"),
        ({password: "long"}, "MLFLOW_SERVER_ALLOWED_HOSTS must list the names"),
        ({password: "long", hosts: "*"}, "without *"),
        ({password: "short", hosts: "a:5000"}, "at least 16: openssl"),
    ):
        environment = environment_of(tmp_path, MLFLOW_HOST="0.0.0.0", MLFLOW_PORT=str(free_port()), **settings)
        done = subprocess.run(
            [DOCKER / "tracker"], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=20
        )
        assert done.returncode in (64, 65, 66), settings
        assert reason in done.stderr and PASSWORD not in done.stderr, settings
        assert not (tmp_path / "server.db").exists()


@pytest.mark.slow
def test_eight_processes_fill_an_sqlite_store_that_none_of_them_found(tmp_path: Path) -> None:
    runs, steps = 8, 2_500
    roots = [tmp_path / f"root-{number}" for number in range(runs)]
    database = tmp_path / "shared.db"
    (tmp_path / "gate").touch()
    processes = start_runs(roots, steps, tmp_path / "gate", f"sqlite:///{database}")
    outputs = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0] * runs, outputs
    for root in roots:
        assert main([f"root={root}", f"tracking.uri=sqlite:///{database}", "tracking.patience=300"]) == 0

    def query(text: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(database)) as connection:
            return list(connection.execute(text))

    assert query("PRAGMA integrity_check") == [("ok",)]
    assert_everything_is_there_once(query, runs, steps)


@pytest.fixture
def tracker(tmp_path: Path) -> Iterator[str]:
    pytest.importorskip("flask_wtf", reason="needs mlflow[auth], of the extra `server`")
    password_file = tmp_path / "password"
    password_file.write_text(PASSWORD + "\n", encoding="utf-8")
    port = str(free_port())
    environment = environment_of(tmp_path, MLFLOW_PORT=port, MLFLOW_ADMIN_PASSWORD_FILE=str(password_file))
    with (tmp_path / "server.log").open("wb") as log:
        server = subprocess.Popen([DOCKER / "tracker"], env=environment, cwd=tmp_path, stdout=log, stderr=log)
    try:
        wait_for(f"http://127.0.0.1:{port}/health", server)
        assert PASSWORD.encode() not in Path(f"/proc/{server.pid}/cmdline").read_bytes()
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)
    assert PASSWORD.encode() not in (tmp_path / "server.log").read_bytes()


@pytest.mark.slow
def test_runs_reach_a_server_with_a_password_once_and_the_password_is_kept_nowhere(
    tracker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracking, root = TrackingConfig(kind="mlflow", uri=tracker), tmp_path / "root"
    write_run(root, "two", steps=1500)
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "admin")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "another password than the right one")
    (refused,) = sync(root, vars(tracking))
    assert "401" in str(refused.error) or "authenticated" in str(refused.error)
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)
    follower = Follower(root / "runs" / "one", tracking, root)
    write_run(root, "one")
    assert follower.finish(60) == f"in MLflow at {tracker}, experiment 'paribus'"
    assert sum(run.events.total() for run in sync(root, vars(tracking))) == 1503
    assert steps_shown(tracker) == {"one": list(range(50)), "two": list(range(1500))}
    assert len(list((tmp_path / "served").rglob("config.json"))) == 2
    files = [path for path in root.rglob("*") if path.is_file()]
    assert len(files) > 8
    assert not [path for path in files if PASSWORD.encode() in path.read_bytes()]
