"""PostgreSQL and MLflow's server, started by hand on loopback for a test; skips where one is not installed."""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

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
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
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
        environment = os.environ | QUIET | dict(self.environment)
        with (self.directory / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *self.options],
                cwd=self.directory,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_for(f"{self.uri}/health", self.process)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it with all its processes; SIGKILL leaves them no time to finish anything."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, how)
            self.process.wait(30)


@contextmanager
def mlflow_server(store: str, directory: Path, *options: str, **environment: str) -> Iterator[MlflowServer]:
    """A running server, ended at the end."""
    server = MlflowServer(store, directory, options, environment)
    server.start()
    try:
        yield server
    finally:
        server.stop()


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
