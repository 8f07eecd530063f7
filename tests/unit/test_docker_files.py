"""What can be held of the images and the compose file without an engine."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
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


def test_the_image_ends_as_a_user_without_rights_whoever_that_is() -> None:
    kinds = [name for name, _ in instructions()]
    assert kinds[-1] == "USER" and arguments_of("USER") == ["1000"]
    assert not any("USER_ID" in arguments for _, arguments in instructions())
    assert "install --directory --mode=1777 /runs /cache" in arguments_of("RUN")[0]
    assert not {"ADD", "HEALTHCHECK", "SHELL"} & set(kinds)


def test_any_builder_can_build_it() -> None:
    """That of engines without BuildKit fetches no front end; images of OCI know no SHELL but POSIX's."""
    text = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
    assert not text.startswith("# syntax")
    assert not re.search(r"\[\[|=~|\bpipefail\b", text)


def test_sources_are_copied_after_all_that_is_installed_for_them() -> None:
    steps = [f"{name} {arguments}" for name, arguments in instructions()]
    sources = steps.index("COPY src src")
    installs = [place for place, step in enumerate(steps) if "pip install" in step and "--no-deps" not in step]
    assert max(installs) < sources
    assert "PIP_CONSTRAINT=/src/constraints.txt" in arguments_of("ENV")[0]
    assert steps.index("COPY constraints.txt docker/compile-smoke ./") < min(installs)
    installed, told = (step for step in steps[sources:] if step.startswith("RUN"))
    assert installed == "RUN pip install --no-deps ."
    assert "PARIBUS_COMMIT" in told


def test_every_build_is_told_what_it_is_of_and_only_then_so_that_a_commit_builds_no_layer_before(
    compose: dict[str, Any],
) -> None:
    steps = [f"{name} {arguments}" for name, arguments in instructions()]
    assert steps.index("ARG PARIBUS_COMMIT=") > steps.index("RUN pip install --no-deps .")
    assert 'LABEL org.opencontainers.image.revision="${PARIBUS_COMMIT}"' in steps
    for service in compose["services"].values():
        if "build" in service:
            assert service["build"]["args"]["PARIBUS_COMMIT"] == "${PARIBUS_COMMIT:-}"


def test_all_that_is_copied_exists_and_gets_past_dockerignore() -> None:
    allowed = {
        line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")
    }
    copied = {source for argument in arguments_of("COPY") for source in shlex.split(argument)[:-1]}
    assert copied == allowed
    assert all((ROOT / path).exists() for path in copied)
    assert "\n*\n" in (ROOT / ".dockerignore").read_text(encoding="utf-8")


def test_the_dependencies_that_are_installed_first_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (line,) = [argument for argument in arguments_of("RUN") if argument.startswith("python dependencies")]
    extras = shlex.split(line.partition(">")[0])[3:]
    command = [sys.executable, DOCKER / "dependencies", ROOT / "pyproject.toml", *extras]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    expected = project["dependencies"] + [need for name in extras for need in project["optional-dependencies"][name]]
    assert listed == expected
    assert any(need.startswith("mlflow[auth]") for need in listed)
    assert any(need.startswith("psycopg2") for need in listed)


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


def test_services_wait_for_those_they_need_to_be_healthy(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for name in SERVICES:
        for needed, how in services[name].get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}
            assert services[needed]["healthcheck"]["test"]
    assert set(services["runner"]["depends_on"]) == {"tracker"}
    assert set(services["tracker"]["depends_on"]) == {"database"}


def test_data_is_in_named_volumes_and_one_runner_has_gpus(compose: dict[str, Any]) -> None:
    for name, path in {"database": "/var/lib/postgresql/data", "tracker": "/var/lib/mlflow", "runner": "/runs"}.items():
        (volume,) = [one for one in compose["services"][name]["volumes"] if one.endswith(f":{path}")]
        assert volume.partition(":")[0] in compose["volumes"]
    (device,) = compose["services"]["runner-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    assert "deploy" not in compose["services"]["runner"]
    assert compose["services"]["runner-gpu"]["build"]["args"]["DEVICE"] == "cuda"
    assert [compose["services"][name].get("profiles") for name in SERVICES] == [None, None, ["cpu"], ["gpu"]]


def test_the_tracker_is_exposed_to_containers_with_a_password_and_by_name(compose: dict[str, Any]) -> None:
    environment = compose["services"]["tracker"]["environment"]
    assert environment["MLFLOW_HOST"] == "0.0.0.0"
    assert environment["MLFLOW_ADMIN_PASSWORD_FILE"] == "/run/secrets/mlflow_admin_password"
    names = environment["MLFLOW_SERVER_ALLOWED_HOSTS"].split(",")
    assert "tracker:5000" in names
    assert not [name for name in names if "*" in name]
    assert environment["MLFLOW_BACKEND_STORE_URI"].startswith("postgresql+psycopg2://mlflow@database:")


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


def test_the_runner_says_how_a_directory_becomes_writable(tmp_path: Path) -> None:
    (tmp_path / "paribus").write_text("#!/bin/sh\necho ran\n", encoding="utf-8")
    (tmp_path / "paribus").chmod(0o755)
    environment, where = {"PATH": f"{tmp_path}:/usr/bin:/bin"}, tmp_path / "runs"
    where.mkdir(mode=0o555)
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    for arguments, status in ((["run", "a=b"], 73), (["run", "root=/elsewhere"], 0), (["list"], 0)):
        command = [DOCKER / "runner", *arguments]
        done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == status
        assert (f"may not write to {where}" in done.stderr) == bool(status)


def test_the_image_for_gpus_has_what_compiled_layers_need_and_tries_it() -> None:
    _, compiler, torch, *_ = arguments_of("RUN")
    assert compiler.startswith('if [ "${DEVICE}" = cuda ]; then')
    assert re.search(r"install .*\bgcc libc6-dev libibverbs1\b", compiler)
    # What root compiles must not lie in the cache of other users; PyTorch's index lacks what the constraints name.
    assert torch.endswith("then TRITON_CACHE_DIR=/tmp/triton python compile-smoke && rm -r /tmp/triton; fi")
    assert "PIP_CONSTRAINT='' pip install --index-url" in torch and "grep '^torch==' constraints.txt" in torch


def test_the_image_for_gpus_compiles_a_kernel_in_its_build(tmp_path: Path) -> None:
    """Triton comes with PyTorch's CUDA build alone; where it is not, one stands in that compiles nothing."""
    for name, lines in {
        "__init__.py": "class Nothing:\n    asm = {'cubin': b''}\njit = compile = lambda *_, **__: Nothing",
        "language.py": "constexpr = None",
        "compiler.py": "def ASTSource(kernel, signature, constexprs): return kernel",
        "backends/__init__.py": "",
        "backends/compiler.py": "def GPUTarget(*of): return of",
    }.items():
        (tmp_path / "triton" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "triton" / name).write_text(lines + "\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(DOCKER / "compile-smoke")],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "AssertionError" in done.stderr
