"""docker/rerun checks out what a record names; a small repository stands for paribus, a program for the engine."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.store.provenance import git_state, provenance

SCRIPT = Path(__file__).resolve().parents[2] / "docker" / "rerun"
SHOW = """
import json, sys, numpy
from pathlib import Path
from paribus import value
found = {"value": value, "at": str(Path(__file__).parents[2]), "numpy": numpy.__version__}
print(json.dumps({"arguments": sys.argv[1:], **found}))
sys.exit(1)
"""
ENGINE = """#!/bin/sh
# Keeps what the engine was asked for and, of a build, what is in its context.
printf '%s\\n' "$*" >>"$KEPT/commands"
if [ "$1" = build ]; then for last; do :; done; cp -r "$last" "$KEPT/context"; fi
[ "$1" = build ] || exit 1
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A checkout with an uncommitted change and, after it, a later commit."""
    path = tmp_path / "repository"
    (path / "src/paribus").mkdir(parents=True)
    (path / "src/paribus/__init__.py").write_text("value = 1\n", encoding="utf-8")
    (path / "src/paribus/__main__.py").write_text(SHOW, encoding="utf-8")
    (path / "constraints.txt").write_text("attrs==26.1.0\nnumpy==1.0\n", encoding="utf-8")
    git(path, "init", "-q")
    git(path, "add", ".")
    git(path, "commit", "-qm", "recorded")
    return path


def git(path: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", path, "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True)


@pytest.fixture
def root(tmp_path: Path, repository: Path) -> Path:
    """An output root with a run that was made with `value = 2`, uncommitted, since when the repository went on."""
    source = repository / "src/paribus/__init__.py"
    source.write_text("value = 2\n", encoding="utf-8")
    (repository / "notes.txt").write_text("", encoding="utf-8")
    made_with = provenance() | {"git": git_state(source), "packages": {"numpy": np.__version__}}
    source.write_text("value = 3\n", encoding="utf-8")
    git(repository, "commit", "-qam", "later")
    path = tmp_path / "output root"
    write_run(path, made_with)
    return path


def write_run(root: Path, made_with: Mapping[str, Any]) -> None:
    records = {
        root / "runs/abc/run.json": {"stages": {"corpus": {"key": "c"}, "scores": {"key": "k"}}},
        root / "artifacts/scores/k/record.json": {"provenance": made_with},
    }
    for path, record in records.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record), encoding="utf-8")


def recorded(root: Path) -> dict[str, Any]:
    path = root / "artifacts/scores/k/record.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))["provenance"])


def rerun(root: Path, repository: Path, *options: str, run: str = "abc", **environment: str) -> Any:
    command = [sys.executable, SCRIPT, run, "--root", root, "--repository", repository, *options]
    settings = {"PATH": os.environ["PATH"], "HOME": str(root), **environment}
    return subprocess.run(command, cwd=root, env=settings, capture_output=True, text=True, check=False)


def test_the_recorded_commit_and_changes_run_in_a_clean_clone_and_its_exit_status_is_passed_on(
    root: Path, repository: Path
) -> None:
    done = rerun(root, repository, "--without-docker")
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert told["arguments"] == ["rerun", "abc", f"root={root}"]
    assert told["value"] == 2
    assert told["numpy"] == np.__version__
    assert not told["at"].startswith(str(repository))
    assert not Path(told["at"]).exists()
    assert "with uncommitted changes" in done.stderr
    assert "not recorded, since git did not know it: notes.txt" in done.stderr
    assert (repository / "src/paribus/__init__.py").read_text(encoding="utf-8") == "value = 3\n"


def test_an_image_is_built_of_the_clone_with_the_recorded_versions_and_run_as_the_roots_owner(
    root: Path, repository: Path, tmp_path: Path
) -> None:
    made_with = recorded(root) | {"gpu": ["NVIDIA H200"], "packages": {"numpy": "2.4.0", "torch": "2.13.0+cpu"}}
    write_run(root, made_with)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "docker").write_text(ENGINE, encoding="utf-8")
    (programs / "docker").chmod(0o755)
    if os.geteuid() == 0:
        refused = rerun(root, repository, PATH=f"{programs}:{os.environ['PATH']}", KEPT=str(tmp_path))
        assert "belongs to root, and images of paribus do not run as root" in refused.stderr
        os.chown(root, 1234, 1234)
    done = rerun(root, repository, PATH=f"{programs}:{os.environ['PATH']}", KEPT=str(tmp_path))
    assert done.returncode == 1, done.stderr
    context = tmp_path / "context"
    assert (context / "src/paribus/__init__.py").read_text(encoding="utf-8") == "value = 2\n"
    pinned = (context / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert pinned == ["attrs==26.1.0", "numpy==2.4.0", "torch==2.13.0"]
    assert "numpy 2.4.0 recorded, 1.0 in the commit's constraints: taking the former" in done.stderr
    assert (context / "docker/Dockerfile").is_file()
    assert not (context / "docker/secrets").exists()
    build, run = (tmp_path / "commands").read_text(encoding="utf-8").splitlines()
    assert "--build-arg DEVICE=cuda" in build
    assert "--gpus all" in run
    assert f"--mount=type=bind,source={root},target={root}" in run
    assert run.endswith(f"rerun abc root={root}")
    owner = root.stat()
    assert f" --user {owner.st_uid}:{owner.st_gid} " in run
    assert f"--build-arg USER_ID={owner.st_uid} " in build


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"git": None}, "made by an installed paribus"),
        ({"git": {"commit": "a" * 40, "diff": "", "diff_truncated": True}}, "more uncommitted changes than a record"),
        ({"git": {"commit": "a" * 40, "diff": "", "diff_truncated": False}}, "is not in"),
    ],
)
def test_a_run_whose_code_is_not_to_be_had_is_refused(
    root: Path, repository: Path, changed: dict[str, Any], message: str
) -> None:
    write_run(root, recorded(root) | changed)
    done = rerun(root, repository, "--without-docker")
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_a_run_that_is_not_there_is_refused_with_where_it_was_looked_for(root: Path, repository: Path) -> None:
    done = rerun(root, repository, run="nothing")
    assert done.returncode == 2
    assert f"no run 'nothing' below {root / 'runs'}" in done.stderr
