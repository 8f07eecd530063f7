"""What the wheel and the sdist contain: the sdist is built from this checkout, and the wheel from it."""

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from paribus import __version__

ROOT = Path(__file__).resolve().parents[1]
pytest.importorskip("hatchling", reason="the extra `dev` has it")


@pytest.fixture(scope="module", name="sdist")
def _sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked sdist."""
    directory = tmp_path_factory.mktemp("sdist")
    build(ROOT, "sdist", directory)
    (archive,) = directory.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(directory, filter="data")
    return directory / f"paribus-{__version__}"


@pytest.fixture(scope="module", name="wheel")
def _wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    directory = tmp_path_factory.mktemp("wheel")
    build(sdist, "wheel", directory)
    (archive,) = directory.glob("*.whl")
    return zipfile.ZipFile(archive)


def build(source: Path, target: str, directory: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(directory)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def tracked(*below: str) -> set[str]:
    """Files of the checkout below directories, links followed, but for what is made by the way."""
    return {
        path.relative_to(ROOT).as_posix()
        for directory in below
        for path in (ROOT / directory).rglob("*")
        if path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts
    }


@pytest.mark.parametrize("directory", ["src", "conf", "experiments", "tests", "docs", "benchmarks", "docker"])
def test_the_sdist_has_every_file_below(directory: str, sdist: Path) -> None:
    wanted = tracked(directory)
    assert wanted
    assert {name for name in wanted if not (sdist / name).is_file()} == set()
    experiments = {path.relative_to(sdist / "experiments") for path in (sdist / "experiments").rglob("*.yaml")}
    assert experiments == {path.relative_to(ROOT / "experiments") for path in (ROOT / "experiments").rglob("*.yaml")}


def test_the_wheel_has_the_code_the_groups_and_the_experiments_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    code = {name.removeprefix("src/") for name in tracked("src")}
    groups = {f"paribus/{name}" for name in tracked("conf") if not name.startswith("conf/experiment/")}
    experiments = {f"paribus/conf/{name.replace('experiments', 'experiment', 1)}" for name in tracked("experiments")}
    assert names == code | groups | experiments


def test_the_version_is_the_same_wherever_it_is_written() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == __version__
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
