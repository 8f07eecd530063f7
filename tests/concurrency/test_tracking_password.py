"""The server as docker/tracker starts it, by hand: on loopback, or with a password, which stays secret."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paribus.config.groups.execution import TrackingConfig
from paribus.tracking.follower import Follower
from paribus.tracking.sync import sync
from support.tracking_runs import steps_shown, write_run
from support.tracking_servers import free_port, wait_for

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


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text(PASSWORD + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "0.0.0.0 is not loopback: MLFLOW_ADMIN_PASSWORD_FILE must name a file"),
        ({"MLFLOW_ADMIN_PASSWORD_FILE": "long"}, "MLFLOW_SERVER_ALLOWED_HOSTS must list the names"),
        ({"MLFLOW_ADMIN_PASSWORD_FILE": "long", "MLFLOW_SERVER_ALLOWED_HOSTS": "*"}, "without \\*"),
        ({"MLFLOW_ADMIN_PASSWORD_FILE": "short", "MLFLOW_SERVER_ALLOWED_HOSTS": "a:5000"}, "at least 16: openssl"),
    ],
)
def test_an_exposed_server_needs_a_password_and_names(settings: dict[str, str], reason: str, tmp_path: Path) -> None:
    for name, content in {"long": PASSWORD, "short": "password1234"}.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    environment = environment_of(tmp_path, MLFLOW_HOST="0.0.0.0", MLFLOW_PORT=str(free_port()), **settings)
    done = subprocess.run(
        [DOCKER / "tracker"], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=20
    )
    assert done.returncode in (64, 65, 66)
    assert reason.replace("\\", "") in done.stderr
    assert PASSWORD not in done.stderr
    assert not (tmp_path / "server.db").exists()


@pytest.fixture
def tracker(tmp_path: Path, password_file: Path) -> Iterator[str]:
    pytest.importorskip("flask_wtf", reason="needs mlflow[auth], of the extra `server`")
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
    (refused,) = sync(root, tracking).runs
    assert "401" in str(refused.error) or "authenticated" in str(refused.error)
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)
    follower = Follower(root / "runs" / "one", tracking, root)
    write_run(root, "one")
    assert follower.finish(60) == f"in MLflow at {tracker}, experiment 'paribus'"
    assert sync(root, tracking).sent == 1503
    assert steps_shown(tracker) == {"one": list(range(50)), "two": list(range(1500))}
    assert len(list((tmp_path / "served").rglob("config.json"))) == 2
    kept = [path for path in root.rglob("*") if path.is_file()]
    assert len(kept) > 8
    assert not [path for path in kept if PASSWORD.encode() in path.read_bytes()]
