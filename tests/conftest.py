"""Fixtures every test may use."""

import gc
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hydra
import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from paribus.config.groups.execution import TrackingConfig
from paribus.tracking.destination import Destination
from paribus.tracking.mlflow import ensure_store, mlflow_environment
from support.command_line import finished_once
from support.compositions import COMPOSING, compose_once
from support.real_data import SHARED, RealData, real_data

# Property tests: as many examples as a change can wait for, the same each time; and many, for `make test-slow`.
PROFILE = {"deadline": None, "database": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}
settings.register_profile("fast", max_examples=25, derandomize=True, **PROFILE)
settings.register_profile("thorough", max_examples=300, **PROFILE)
LONG_FILE = 20.0
"""Seconds from which the summary names a file."""


class _FilesTogether(LoadFileScheduling):  # type: ignore[misc]
    """A file runs in one worker; the files of `COMPOSING` share one, since compositions are cached by process."""

    def _split_scope(self, nodeid: str) -> str:
        file = str(super()._split_scope(nodeid))
        return "compositions" if file.removeprefix("tests/") in COMPOSING else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return _FilesTogether(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Imported modules are never freed; looking for garbage among them takes a third of the collection."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    # Tests make many small objects and keep few.
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the seconds that each folder took, and the files that took long; of all processes together."""
    folders, files = Counter[str](), Counter[str]()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                file = report.nodeid.partition("::")[0]
                files[file] += report.duration  # type: ignore[assignment]
                folders[file.rpartition("/")[0]] += report.duration  # type: ignore[assignment]
    terminalreporter.section("seconds")
    for name, seconds in [*folders.most_common(), *(f for f in files.most_common() if f[1] > LONG_FILE)]:
        terminalreporter.write_line(f"{seconds:7.1f}  {name}")


@pytest.fixture(scope="module", autouse=True)
def _imports_are_no_garbage() -> None:
    """Keep imports out of the garbage collections that libraries start after a training."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _safe_path() -> Iterator[None]:
    """Remove PYTHONSAFEPATH, which `paribus.cli.main` sets: scripts of later tests import from their directory."""
    yield
    os.environ.pop("PYTHONSAFEPATH", None)


@pytest.fixture(scope="session", autouse=True)
def _compositions() -> Iterator[None]:
    """Cache compositions, and keep launchers from configuring logging, which would close pytest's files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hydra, "compose", compose_once)
        patch.setattr("hydra._internal.logging_config.configure_logging", lambda config: None)
        yield


@pytest.fixture(scope="session")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which `support.command_line.SWEEP` has run, for tests that read; all processes share it."""
    directory = tmp_path_factory.getbasetemp()
    return finished_once((directory.parent if "PYTEST_XDIST_WORKER" in os.environ else directory) / "sweep")


@pytest.fixture
def own_sweep(sweep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that directory for a test that changes something; commands run in it."""
    shutil.copytree(sweep, tmp_path / "sweep")
    monkeypatch.chdir(tmp_path / "sweep")
    return tmp_path / "sweep"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Larger corpora and benchmarks beside the checkout; a test of their known sizes skips where they are absent."""
    if not SHARED.is_dir():
        pytest.skip("needs the shared data directory beside the checkout")
    return SHARED


@pytest.fixture(scope="session", name="real_data")
def _real_data() -> RealData:
    """Real text of every kind, larger where the shared data directory is beside the checkout."""
    return real_data()


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow database without runs, to copy: making one takes seconds."""
    root = tmp_path_factory.mktemp("store")
    with mlflow_environment():
        ensure_store(Destination.resolve(TrackingConfig(kind="mlflow"), root))
    return root / "mlflow.db"


@pytest.fixture
def in_directory_with_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in a directory that has a text, `texts.txt`."""
    (tmp_path / "texts.txt").write_text("some text", encoding="utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports get empty pictures, for tests that check numbers and text alone."""
    from matplotlib.figure import Figure

    from paribus.reporting import plots

    class Unwritten(Figure):
        def savefig(self, file: Any, **named: Any) -> None:
            file.write(b'<svg viewBox="0 0 1 1"></svg>')

        def fold(self) -> None:
            """Leave the picture as it is."""

    monkeypatch.setattr(plots, "_Figure", Unwritten)
    monkeypatch.setattr(plots, "_lay_out", lambda figure: None)


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A disk of one megabyte, or of the `size` that a test gives as parameter; mounting one needs root."""
    mount = tmp_path / "disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={getattr(request, 'param', '1m')}", "tmpfs", str(mount)]
    if shutil.which("mount") is None or os.geteuid() != 0 or subprocess.run(command, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


@pytest.fixture
def read_only() -> Iterator[Callable[[Path], None]]:
    """Makes a directory one that may only be read; root, who ignores modes, needs a mount for that."""
    mounted: list[Path] = []

    def protect(directory: Path) -> None:
        if os.geteuid() != 0:
            for path in (*directory.rglob("*"), directory):
                path.chmod(0o555 if path.is_dir() else 0o444)
            return
        bind = ["mount", "--bind", str(directory), str(directory)]
        if shutil.which("mount") is None or subprocess.run(bind, check=False).returncode:
            pytest.skip("root needs mount to make a directory read only")
        mounted.append(directory)
        subprocess.run(["mount", "-o", "remount,ro,bind", str(directory)], check=True)

    yield protect
    for directory in mounted:
        subprocess.run(["umount", "-l", str(directory)], check=True)
