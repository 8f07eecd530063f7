"""A training on two nodes of a Ray cluster, each of which is a container, as docs/gpu_nodes.md starts them."""

import secrets
import shutil
from pathlib import Path

import pytest
from docker_engine import IMAGE, Engine

from support.command_line import OVERRIDES, write_text_files

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1800)]
TRAINING = ("run", *OVERRIDES, "evaluation=heldout", "training.device=cpu", "until=training")


def start_node(engine: Engine, directory: Path, name: str, *words: str) -> None:
    engine.docker(
        *("run", "--detach", f"--name={name}", f"--hostname={name}", "--network=nodes", "--user=4321:4321"),
        *("--shm-size=1g", "--env=RAY_USAGE_STATS_ENABLED=0"),
        *("--env=RAY_AUTH_MODE=token", "--env=RAY_AUTH_TOKEN_PATH=/runs/token"),
        *(f"--volume={directory}:/runs", "--volume=paribus-cache-4321:/cache"),
        *("--entrypoint=ray", IMAGE, "start", *words, "--block"),
    )


def training_files(directory: Path, root: str) -> dict[str, bytes]:
    """Read the files of the training below an output root, except its record (dates and machine)."""
    (record,) = directory.glob(f"{root}/artifacts/training/*/record.json")
    files = [path for path in record.parent.rglob("*") if path.is_file() and path != record]
    return {str(path.relative_to(record.parent)): path.read_bytes() for path in files}


def test_two_containers_give_the_same_bytes_as_two_processes(engine: Engine, image: str, directory: Path) -> None:
    write_text_files(directory)
    (directory / "token").write_text(secrets.token_hex(32), encoding="utf-8")
    shutil.chown(directory / "token", 4321, 4321)
    (directory / "token").chmod(0o400)
    engine.docker("network", "create", "nodes")
    start_node(engine, directory, "head", "--head", "--port=6379", "--include-dashboard=false")
    start_node(engine, directory, "worker", "--address=head:6379")
    both_nodes = 'until [ "$(ray status 2>/dev/null | grep -c " node_")" = 2 ]; do sleep 1; done'
    engine.docker("exec", "head", "timeout", "180", "sh", "-c", both_nodes)
    two = ("root=two", "training.processes=1", "training.nodes=2", "training.nodes_by=ray")
    output = engine.docker("exec", "head", "runner", *TRAINING, *two)
    assert "1 of 1 run done" in output
    stranger = ("run", "--rm", "--network=nodes", "--entrypoint=ray", IMAGE, "status", "--address=head:6379")
    assert "token is missing or incorrect" in engine.docker(*stranger, expect=1)
    engine.docker("rm", "--force", "head", "worker")
    engine.paribus(directory, *TRAINING, "root=one", "training.processes=2", options=("--shm-size=1g",))
    assert training_files(directory, "two") == training_files(directory, "one")
