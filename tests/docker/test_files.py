"""What can be held of the images and the compose file without an engine."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
DIGEST = r"@sha256:[0-9a-f]{64}"
SERVICES = ("database", "tracker", "runner", "runner-gpu")


def instructions(name: str = "Dockerfile") -> list[tuple[str, str]]:
    """Instructions and their arguments, continued lines joined, comments left out."""
    text = (DOCKER / name).read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DOCKER / "compose.yaml").read_text(encoding="utf-8")))


def arguments_of(kind: str) -> list[str]:
    return [arguments for name, arguments in instructions() if name == kind]


def test_every_image_starts_from_a_pinned_digest(compose: dict[str, Any]) -> None:
    (base,) = [argument for argument in arguments_of("ARG") if argument.startswith("PYTHON_IMAGE=")]
    assert re.fullmatch(rf"PYTHON_IMAGE=python:3\.11\.\d+-slim-bookworm{DIGEST}", base)
    assert arguments_of("FROM") == ["${PYTHON_IMAGE}"]
    assert re.fullmatch(rf"postgres:[\d.]+-bookworm{DIGEST}", compose["services"]["database"]["image"])


def test_all_that_is_copied_exists_and_gets_past_dockerignore() -> None:
    allowed = {
        line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")
    }
    copied = {source for argument in arguments_of("COPY") for source in shlex.split(argument)[:-1]}
    assert copied == allowed
    assert all((ROOT / path).exists() for path in copied)
    assert "\n*\n" in (ROOT / ".dockerignore").read_text(encoding="utf-8")


def test_no_password_is_written_anywhere_but_in_files_of_secrets(compose: dict[str, Any]) -> None:
    assert set(compose["secrets"]) == {"postgres_password", "mlflow_admin_password"}
    assert all(set(secret) == {"file"} for secret in compose["secrets"].values())
    for name in SERVICES:
        service = compose["services"][name]
        for variable, value in service["environment"].items():
            if "PASSWORD" in variable:
                assert variable.endswith("_FILE")
                assert Path(value).name in service["secrets"]
                assert Path(value).parent == Path("/run/secrets")
        assert not re.search(r"://[^/]*:[^/@]*@", str(service))
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert "/docker/secrets/" in ignored


def test_only_the_tracker_has_a_port_and_it_is_on_loopback(compose: dict[str, Any]) -> None:
    ports = {name: compose["services"][name].get("ports", []) for name in SERVICES}
    assert [name for name, found in ports.items() if found] == ["tracker"]
    assert all(port.startswith("127.0.0.1:") for port in ports["tracker"])
    assert compose["services"]["database"]["networks"] == ["storage"]
    assert compose["networks"]["storage"] == {"internal": True}


def test_the_runner_gives_its_arguments_to_paribus_and_the_password_of_a_file_to_mlflow(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    shown = 'printf "%s|" "$@" "$MLFLOW_TRACKING_USERNAME" "$MLFLOW_TRACKING_PASSWORD"'
    (programs / "paribus").write_text(f"#!/bin/sh\n{shown}\n", encoding="utf-8")
    (programs / "paribus").chmod(0o755)
    secret = tmp_path / "password"
    secret.write_text("0123456789 abcdef\n", encoding="utf-8")
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "MLFLOW_TRACKING_PASSWORD_FILE": str(secret)}
    arguments = ["run", "corpus.paths=[a b/*.jsonl]", "x=$HOME"]
    command = [DOCKER / "runner", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "|".join([*arguments, "admin", "0123456789 abcdef", ""])
    secret.write_text("", encoding="utf-8")
    refused = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "MLFLOW_TRACKING_PASSWORD_FILE: the password in" in refused.stderr
    assert refused.stdout == ""
