"""A Docker daemon, base images made of Debian's packages, and an image of this checkout's last commit."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker_engine import (
    CERTIFICATES,
    DEBIAN,
    HERE,
    IMAGE,
    IN_DEBIAN,
    POSTGRES,
    PYTHON,
    ROOT,
    Engine,
    build,
    skip_reason,
    started_engine,
)


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    if (reason := skip_reason()) is not None:
        pytest.skip(reason)
    with started_engine() as started:
        yield started


@pytest.fixture(scope="session")
def bases(engine: Engine) -> None:
    """Build the images that stand in for those of registries."""
    system = engine.directory / "debian"
    engine.run("debootstrap", "--variant=minbase", f"--include={IN_DEBIAN}", "bookworm", system)
    engine.run("tar", "--create", f"--file={system}.tar", f"--directory={system}", "--exclude=./var/cache/apt/*", ".")
    shutil.rmtree(system)
    engine.docker("import", f"{system}.tar", DEBIAN)
    Path(f"{system}.tar").unlink()
    context = engine.directory / "python"
    shutil.copytree(HERE / "python", context)
    shutil.copy(CERTIFICATES, context)
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    (torch,) = (line for line in constraints if line.startswith("torch=="))
    engine.run(sys.executable, "-m", "pip", "download", "--no-deps", "--dest", context, torch)
    engine.docker("build", "--quiet", "--tag", PYTHON, context)
    engine.docker("build", "--quiet", "--tag", POSTGRES, HERE / "postgres")


@pytest.fixture(scope="session")
def checkout(engine: Engine) -> Path:
    """Clone of the last commit, from which `docker/rerun` rebuilds the image."""
    clone = engine.directory / "checkout"
    engine.run("git", "clone", "--quiet", ROOT, clone)
    return clone


@pytest.fixture(scope="session")
def image(engine: Engine, bases: None, checkout: Path) -> str:
    """Build the image for CPUs, by BuildKit where the client has it."""
    buildkit = "1" if engine.has("buildx") else "0"
    build(engine, checkout, "docker", "build", f"--tag={IMAGE}", DOCKER_BUILDKIT=buildkit)
    return IMAGE


@pytest.fixture
def directory(engine: Engine) -> Iterator[Path]:
    """A directory that the user 4321 of containers may write to, at a path that does not lie in memory."""
    with tempfile.TemporaryDirectory(dir=engine.directory) as path:
        os.chown(path, 4321, 4321)
        Path(path).chmod(0o755)
        yield Path(path)
