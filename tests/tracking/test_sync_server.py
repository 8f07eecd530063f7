"""Many runs at once into one MLflow, whose server is killed meanwhile; and a server with a password."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from paribus.config.groups.execution import TrackingConfig
from paribus.tracking.sync import main, sync
from support import logged_run
from support.logged_run import METRICS, PARAMETERS, TAGS, value
from support.tracking_servers import MlflowServer, PostgreSQL, free_port, mlflow_server, postgresql, wait_for

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
    with mlflow_server(database.uri, tmp_path / "server") as started:
        yield started


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
