"""The code of a command, processes that find another on the disk, and changes that git has not recorded."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from paribus.engine.local import LocalEngine
from paribus.errors import ConfigurationError
from paribus.pipeline.execute import RUN_STAGE
from paribus.store import provenance as codes
from paribus.store.provenance import Code, git_state, loaded_code, pin_code

BEGAN = Code({"a.py": "1", "b.py": "2"}, {"torch": "2.13.0"})


def package(directory: Path) -> Path:
    """A package with two modules."""
    directory.mkdir()
    (directory / "first.py").write_text("x = 1", encoding="utf-8")
    (directory / "second.py").write_text("y = 1", encoding="utf-8")
    return directory


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (Code({"a.py": "1", "b.py": "3"}, {"torch": "2.13.0"}), "b.py"),
        (Code({"a.py": "1"}, {"torch": "2.13.0"}), "b.py"),
        (Code({"a.py": "1", "b.py": "2", "c.py": "4"}, {"torch": "2.13.0"}), "c.py"),
        (Code({"a.py": "1", "b.py": "2"}, {"torch": "2.14.0"}), "torch"),
        (Code({"a.py": "1", "b.py": "2"}, {}), "torch"),
    ],
)
def test_other_files_and_other_versions_are_refused_by_name(other: Code, named: str) -> None:
    BEGAN.require(Code(**json.loads(json.dumps(vars(BEGAN)))))
    with pytest.raises(ConfigurationError, match=rf"the code changed while the command ran \({named}\)"):
        BEGAN.require(other)
    assert BEGAN.digest != other.digest


def test_every_file_that_is_imported_or_read_counts(tmp_path: Path) -> None:
    directory = package(tmp_path / "package")
    before = Code.read(directory)
    assert set(before.files) == {"first.py", "second.py"}
    (directory / "second.py").write_text("y = 2", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"second\.py"):
        before.require(Code.read(directory))


def test_a_module_is_checked_once_when_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = package(tmp_path / "late_package")
    began = Code.read(directory)
    monkeypatch.setattr(codes, "PACKAGE", directory)
    monkeypatch.setattr(codes, "loaded_code", lambda: began)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    pin_code(began)
    pin_code(began)
    assert len([finder for finder in sys.meta_path if type(finder).__module__ == codes.__name__]) == 1
    importlib.import_module("late_package.first")
    for name in ("first", "second"):
        (directory / f"{name}.py").write_text("x = 2", encoding="utf-8")
    assert importlib.import_module("late_package.first").x == 1
    with pytest.raises(ConfigurationError, match=r"the code changed while the command ran \(second\.py\)"):
        importlib.import_module("late_package.second")
    assert "late_package.second" not in sys.modules
    importlib.import_module("colorsys")


def test_a_process_that_finds_other_code_than_its_command_began_with_refuses_the_job(tmp_path: Path) -> None:
    began = loaded_code()
    other = Code({**began.files, "ordering/arrays.py": "another"}, began.packages)
    claim = {"path": str(tmp_path / "claim"), "token": "t", "lease": 30.0}
    reading, writing = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-c", RUN_STAGE, str(writing)],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=[writing],
    )
    os.close(writing)
    child.communicate(json.dumps({"stage": "corpus", "claim": claim, "code": vars(other)}).encode())
    with os.fdopen(reading, encoding="utf-8") as channel:
        answer = json.loads(channel.read())
    assert answer["class"] == "configuration"
    assert "the code changed while the command ran (ordering/arrays.py)" in answer["message"]
    assert child.returncode == 1


def double(number: int) -> int:
    return 2 * number


def test_a_worker_that_began_with_other_code_refuses_its_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(LocalEngine(2).map(double, [1, 2])) == [2, 4]
    monkeypatch.setattr("paribus.engine.local.loaded_code", lambda: BEGAN)
    with pytest.raises(ConfigurationError, match="the code changed"):
        list(LocalEngine(2).map(double, [1, 2]))


def test_the_recorded_difference_restores_the_working_tree_whatever_git_is_configured_to_do(tmp_path: Path) -> None:
    def git(*arguments: str, at: Path = tmp_path / "work") -> str:
        command = ["git", "-C", str(at), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    git("init", "-q")
    (work / "src/code.py").write_text("one\n\n\n", encoding="utf-8")
    (work / "src/picture.bin").write_bytes(bytes(range(256)))
    git("add", ".")
    git("commit", "-qm", "x")
    for name, value in {"diff.noprefix": "true", "color.ui": "always", "diff.relative": "true"}.items():
        git("config", name, value)
    (work / "src/code.py").write_text("two\n\n\n", encoding="utf-8")
    (work / "src/picture.bin").write_bytes(bytes(range(255, -1, -1)))
    (work / "forgotten.py").write_text("", encoding="utf-8")
    state = git_state(work / "src/code.py")
    assert state is not None
    assert state["untracked"] == ["forgotten.py"]
    git("clone", "-q", str(work), str(tmp_path / "clone"), at=tmp_path)
    (tmp_path / "recorded.diff").write_text(state["diff"], encoding="utf-8")
    git("apply", str(tmp_path / "recorded.diff"), at=tmp_path / "clone")
    for name in ("code.py", "picture.bin"):
        assert (tmp_path / "clone/src" / name).read_bytes() == (work / "src" / name).read_bytes()
