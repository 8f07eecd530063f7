"""PostgreSQL, MLflow's server and a runner by Compose: access, and recovery from kills and stops."""

import json
import secrets
import socket
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from docker_engine import POSTGRES, ROOT, Engine

from support.command_line import OVERRIDES, write_text_files
from support.waiting import wait_until

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1800)]
STEPS = 1000
TRAINING = (
    "run",
    *(word for word in OVERRIDES if not word.startswith(("tracking", "corpus.paths"))),
    "corpus.paths=[/data/texts/*.jsonl]",
    "evaluation=heldout",
    "budget=equal_steps",
    f"budget.steps={STEPS}",
    "training.checkpoint_every=200",
    "training.log_every=1",
    "tracking.uri=http://tracker:5000",
)


@dataclass(frozen=True)
class Services:
    """The services of the compose file, of images that are here."""

    engine: Engine
    directory: Path
    port: int

    @property
    def runs(self) -> Path:
        """Directory of runs in the volume."""
        return self.engine.directory / "data/volumes/paribus_runs/_data/paribus_runs/runs"

    def compose(self, *words: str, expect: int = 0) -> str:
        """Run a command of Compose and return its output."""
        files = ("-f", ROOT / "docker/compose.yaml", "-f", self.directory / "images.yaml")
        return self.engine.docker("compose", *files, *words, expect=expect)

    def start_tracker(self) -> None:
        """Start the tracker and wait until it is healthy."""
        self.compose("up", "--detach", "--no-build", "--wait", "tracker")

    def start_runner(self, name: str) -> None:
        """Start or resume the training in a container of that name."""
        self.compose("run", "--detach", "--name", name, "runner", *TRAINING)

    def steps(self) -> int:
        """Count the steps that the training has logged."""
        logs = list(self.runs.glob("*/events.jsonl"))
        return logs[0].read_bytes().count(b'"train/loss"') if logs else 0

    def wait_for_steps(self, steps: int) -> None:
        """Wait until the training has logged that many steps."""
        wait_until(lambda: self.steps() >= steps, seconds=300)

    def status(self, password: str | None = None, host: str | None = None) -> int:
        """Return the HTTP status of a search for experiments."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/2.0/mlflow/experiments/search?max_results=1"
        )
        if password is not None:
            request.add_header("Authorization", "Basic " + b64encode(f"admin:{password}".encode()).decode())
        if host is not None:
            request.add_header("Host", host)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code


@pytest.fixture(scope="module")
def services(engine: Engine, image: str) -> Iterator[Services]:
    if not engine.has("compose"):
        pytest.skip("Docker's client has no Compose here")
    directory = engine.directory / "services"
    directory.mkdir()
    for name in ("postgres_password", "mlflow_admin_password"):
        (directory / name).write_text(secrets.token_hex(24), encoding="utf-8")
    write_text_files(directory)
    (directory / "images.yaml").write_text(
        json.dumps({"services": {"database": {"image": POSTGRES}}}), encoding="utf-8"
    )
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = int(free.getsockname()[1])
    engine.variables.update(PARIBUS_SECRETS=str(directory), PARIBUS_DATA=str(directory), PARIBUS_TRACKER_PORT=str(port))
    started = Services(engine, directory, port)
    started.start_tracker()
    yield started
    started.compose("--profile=cpu", "down", "--volumes", "--remove-orphans")


def test_the_tracker_requires_its_password_and_an_allowed_host(services: Services) -> None:
    password = (services.directory / "mlflow_admin_password").read_text(encoding="utf-8")
    assert services.status() == 401
    assert services.status("password1234") == 401
    assert services.status(password) == 200
    assert services.status(password, host="elsewhere.example") == 403


def test_a_training_survives_kills_of_its_tracker_and_itself_and_a_stop(services: Services) -> None:
    engine = services.engine
    services.start_runner("first")
    services.wait_for_steps(50)
    engine.docker("kill", "paribus-tracker-1")
    services.wait_for_steps(250)
    engine.docker("kill", "first")
    services.start_tracker()
    services.start_runner("second")
    services.wait_for_steps(450)
    stopped_at = time.monotonic()
    engine.docker("stop", "second")
    assert time.monotonic() - stopped_at < 60
    assert engine.docker("wait", "second").strip() == "130"
    assert engine.docker("inspect", "--format={{.Config.StopTimeout}}", "second").strip() == "600"
    (log,) = services.runs.glob("*/logs/training.log")
    assert "whose checkpoint is written" in log.read_text(encoding="utf-8")
    output = services.compose("run", "--rm", "runner", *TRAINING)
    assert "1 of 1 run done" in output
    database = ("exec", "--no-TTY", "database", "psql", "--username=mlflow", "--tuples-only", "--no-align", "mlflow")
    count = "SELECT count(*), count(DISTINCT step) FROM metrics WHERE key = 'train/loss'"
    assert services.compose(*database, "--command", count).strip() == f"{STEPS}|{STEPS}"
