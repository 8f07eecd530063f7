"""Compiled kernels in the user's cache: damaged files are never loaded."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from paribus.errors import ConfigurationError
from paribus.native import loader
from paribus.native.registry import SHINGLES, TRAVERSAL
from paribus.stage import SilentListener, compile_kernels
from paribus.tokenization.train import training_kernels
from support.command_line import OVERRIDES, command, write_text_files


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: data[:40], lambda data: b"", lambda data: data[:-1] + b"?"]
)
def test_a_damaged_kernel_counts_as_missing(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    loader.kernel("grow_table")
    whole = loader.kernel_path("grow_table").read_bytes()
    copy = tmp_path / "kernel.o"
    copy.write_bytes(whole)
    assert loader.read(copy) is not None
    copy.write_bytes(damage(whole))
    assert loader.read(copy) is None


def test_kernels_are_compiled_anew_for_another_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    package, read, changed = Path(loader.__file__).parents[1], Path.read_bytes, set[Path]()
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"#" * (path in changed))
    fingerprint = loader.fingerprint.__wrapped__
    found = {fingerprint()}
    for module in ("tokenization/kernels/training_layout", "native/compiler", "native/registry", "ordering/kernels"):
        changed.add(package / f"{module}.py")
        found.add(fingerprint())
    assert len(found) == 5 and fingerprint() in found


def test_a_directory_that_others_can_write_to_holds_no_code(tmp_path: Path) -> None:
    private, shared = tmp_path / "private", tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert loader._is_private(private)
    assert not loader._is_private(shared)
    assert private.stat().st_mode & 0o077 == 0


def test_a_configured_directory_open_to_others_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARIBUS_CACHE", str(tmp_path))
    assert loader.cache_directory.__wrapped__() == tmp_path
    tmp_path.chmod(0o777)
    with pytest.raises(ConfigurationError, match=f"PARIBUS_CACHE: {tmp_path} must be a directory that this user owns"):
        loader.cache_directory.__wrapped__()


def test_the_first_private_one_of_the_usual_directories_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [
        tmp_path / "xdg" / "paribus",
        tmp_path / "home" / ".cache" / "paribus",
        tmp_path / f"paribus-{os.getuid()}",
    ]
    monkeypatch.delenv("PARIBUS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(loader.tempfile, "gettempdir", lambda: str(tmp_path))
    for place in places:
        assert loader.cache_directory.__wrapped__() == place
        place.chmod(0o777)
    with pytest.raises(ConfigurationError, match=" or ".join(map(str, places))):
        loader.cache_directory.__wrapped__()


class Heard(SilentListener):
    """Remembers progress."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[float, float, str, str]] = []

    def progress(self, done: float, total: float, *, unit: str, doing: str, detail: str = "") -> None:
        self.lines.append((done, total, unit, doing))


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("PARIBUS_CACHE", str(tmp_path))
    loader.cache_directory.cache_clear()
    yield
    loader.cache_directory.cache_clear()


def test_a_kernel_that_fails_is_told_and_the_others_are_kept(empty_cache: None, tmp_path: Path) -> None:
    command = [sys.executable, "-m", loader.PROGRAM, "grow_table", "fill_pairs", "no_such_kernel", "find_texts"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no_such_kernel" in done.stderr
    assert loader.missing_kernels(["grow_table", "fill_pairs", "find_texts"]) == []
    assert len(list((tmp_path / "kernels").iterdir())) == 3


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_compilation_that_is_stopped(empty_cache: None, number: signal.Signals) -> None:
    command = [sys.executable, "-m", loader.PROGRAM, *TRAVERSAL]
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL) as process:
        begun = psutil.Process(process.pid)
        while not begun.children():
            assert process.poll() is None
            time.sleep(0.02)
        os.kill(process.pid, number) if number == signal.SIGKILL else os.killpg(process.pid, number)
        process.wait()
    end = time.monotonic() + 60
    while is_there(process.pid):
        assert time.monotonic() < end
        time.sleep(0.1)


def is_there(group: int) -> bool:
    """True while a process of the group lives."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_kernels_are_compiled_once_and_announced(empty_cache: None) -> None:
    heard = Heard()
    compile_kernels(TRAVERSAL, heard)
    assert heard.lines[-1][:3] == (len(TRAVERSAL), len(TRAVERSAL), "kernels")
    assert {doing.removeprefix("compiling ") for *_, doing in heard.lines} <= set(TRAVERSAL)
    assert loader.missing_kernels(TRAVERSAL) == []
    assert loader.missing_kernels(["walk", "sum_spans"]) == ["sum_spans"]
    compile_kernels(TRAVERSAL, again := Heard())
    assert again.lines == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("until", "needed"),
    [
        ("corpus", set(SHINGLES)),
        pytest.param("vocabulary", set(SHINGLES) | set(training_kernels("bpe")), marks=pytest.mark.slow),
    ],
)
def test_the_first_run_compiles_what_its_stages_so_far_need(tmp_path: Path, until: str, needed: set[str]) -> None:
    (tmp_path / "cache").mkdir(mode=0o700)
    environment = os.environ | {"PARIBUS_CACHE": str(tmp_path / "cache")}
    write_text_files(tmp_path)
    subprocess.run(command(["run", *OVERRIDES, f"until={until}"]), cwd=tmp_path, env=environment, check=True)
    assert {path.name.rpartition("-")[0] for path in (tmp_path / "cache" / "kernels").iterdir()} == needed
