"""docker/rerun checks out what a record names; a small repository stands for paribus, a program for the engine."""

import hashlib
import json
import os
import shutil
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
import json, os, sys, numpy
from pathlib import Path
from paribus import value
found = {"value": value, "at": str(Path(__file__).parents[3]), "numpy": numpy.__version__}
found["kernel"] = os.environ.get("OPENBLAS_CORETYPE")
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
    (path / "constraints.txt").write_text("attrs==26.1.0\nlm_eval==0.4.12\nnumpy==1.0\n", encoding="utf-8")
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
    made_with["variables"] = {"OPENBLAS_CORETYPE": "Haswell"}
    source.write_text("value = 3\n", encoding="utf-8")
    git(repository, "commit", "-qam", "later")
    path = tmp_path / "output root"
    write_run(path, made_with)
    return path


def write_run(root: Path, made_with: Mapping[str, Any]) -> None:
    records = {
        root / "runs/abc/run.json": {"stages": {"corpus": {"key": "c"}, "evaluation": {"key": "k"}}},
        root / "artifacts/evaluation/k/record.json": {"provenance": made_with},
    }
    for path, record in records.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record), encoding="utf-8")


def recorded(root: Path) -> dict[str, Any]:
    path = root / "artifacts/evaluation/k/record.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))["provenance"])


def rerun(root: Path, repository: Path, *options: str, run: str = "abc", **environment: str) -> Any:
    command = [sys.executable, SCRIPT, run, "--root", root, "--repository", repository, *options]
    settings = {"PATH": os.environ["PATH"], "HOME": str(root), **environment}
    return subprocess.run(command, cwd=root, env=settings, capture_output=True, text=True, check=False)


def test_the_recorded_commit_and_changes_run_in_a_clean_clone(root: Path, repository: Path) -> None:
    done = rerun(root, repository, "--without-docker")
    assert done.returncode == 1, done.stderr
    printed = json.loads(done.stdout)
    assert printed["arguments"] == ["rerun", "abc", f"root={root}"]
    assert printed["value"] == 2
    assert (printed["numpy"], printed["kernel"]) == (np.__version__, "Haswell")
    assert not printed["at"].startswith(str(repository))
    assert not Path(printed["at"]).exists()
    assert "with uncommitted changes" in done.stderr
    assert "not recorded, since git did not know it: notes.txt" in done.stderr
    assert (repository / "src/paribus/__init__.py").read_text(encoding="utf-8") == "value = 3\n"


def test_an_image_is_built_of_the_clone_and_run_as_the_owner(root: Path, repository: Path, tmp_path: Path) -> None:
    made_with = recorded(root) | {
        "gpu": ["NVIDIA H200"],
        "packages": {"attrs": "26.1.0", "lm-eval": "0.4.13", "numpy": "2.4.0", "torch": "2.13.0+cu126"},
        "variables": {"OPENBLAS_CORETYPE": "Haswell"},
    }
    write_run(root, made_with)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "docker").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    (programs / "docker").chmod(0o755)
    assert rerun(root, repository, PATH=f"{programs}:{os.environ['PATH']}").returncode == 2
    (programs / "docker").write_text(ENGINE, encoding="utf-8")
    if os.geteuid() == 0:
        os.chown(root, 1234, 1234)
        (root / "reruns").mkdir()
        refused = rerun(root, repository, PATH=f"{programs}:{os.environ['PATH']}", KEPT=str(tmp_path))
        assert "does not belong to the owner of" in refused.stderr
        os.chown(root / "reruns", 1234, 1234)
    done = rerun(root, repository, PATH=f"{programs}:{os.environ['PATH']}", KEPT=str(tmp_path))
    assert done.returncode == 1, done.stderr
    context = tmp_path / "context"
    assert (context / "src/paribus/__init__.py").read_text(encoding="utf-8") == "value = 2\n"
    pinned = (context / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert pinned == ["attrs==26.1.0", "lm-eval==0.4.13", "numpy==2.4.0", "torch==2.13.0"]  # as before where they agree
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
    assert f"--mount=type=volume,source=paribus-cache-{owner.st_uid},target=/cache" in run
    assert "--build-arg TORCH_INDEX=https://download.pytorch.org/whl/cu126 " in build
    assert " --env=OPENBLAS_CORETYPE=Haswell " in run
    git_state = recorded(root)["git"]
    changes = hashlib.sha256(git_state["diff"].encode()).hexdigest()
    assert f"--build-arg PARIBUS_COMMIT={git_state['commit']}+{changes} " in build


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"git": None}, "made by an installed paribus"),
        ({"git": {"commit": "a" * 40, "diff": "", "diff_truncated": True}}, "more uncommitted changes than a record"),
        ({"git": {"commit": "a" * 40, "diff": "", "diff_truncated": False}}, "is not in"),
    ],
)
def test_a_run_of_absent_code_is_refused(root: Path, repository: Path, changed: dict[str, Any], message: str) -> None:
    write_run(root, recorded(root) | changed)
    done = rerun(root, repository, "--without-docker")
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A Python with paribus away from any checkout, as an image has it; what it was built from is not said yet."""
    prefix = tmp_path / "image"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
    (packages,) = prefix.glob("lib/python*/site-packages")
    shutil.copytree(SCRIPT.parents[1] / "src/paribus", packages / "paribus")
    return prefix


def build(image: Path, source: str) -> int:
    """The step of the Dockerfile that keeps what an image is built from; its exit status."""
    text = (SCRIPT.parent / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    (step,) = [line for line in text.splitlines() if line.startswith("RUN") and "PARIBUS_COMMIT" in line]
    script = step.removeprefix("RUN").replace("/opt/paribus", str(image))
    settings = {"PATH": os.environ["PATH"], "PARIBUS_COMMIT": source}
    return subprocess.run(["sh", "-c", script], env=settings, check=False).returncode


def recorded_by(image: Path) -> dict[str, Any]:
    """What a run in the image records."""
    code = "import json; from paribus.store.provenance import provenance; print(json.dumps(provenance()))"
    settings = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(np.__file__).parents[1])}
    done = subprocess.run(
        [image / "bin/python", "-P", "-c", code], cwd=image, env=settings, capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout)) | {"packages": {"numpy": np.__version__}}


def source_of(repository: Path) -> str:
    """What docker/commit in the repository would print."""
    code = "import sys; from pathlib import Path; from paribus.store.provenance import source_of\n"
    code += "print(source_of(Path(sys.argv[1])))"
    command = [sys.executable, "-c", code, repository / "src/paribus/__init__.py"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("change", ["of a file", "an unknown file"])
def test_uncommitted_changes_do_not_pass_for_a_commit(root: Path, repository: Path, image: Path, change: str) -> None:
    (repository / "notes.txt").unlink()
    commit = source_of(repository)
    changed = repository / ("src/paribus/__init__.py" if change == "of a file" else "src/paribus/other.py")
    changed.write_text("value = 4\n", encoding="utf-8")
    source = source_of(repository)
    assert source.startswith(f"{commit}+") and len(source) == 40 + 1 + 64
    changed.write_text("value = 5\n", encoding="utf-8")
    assert source_of(repository) != source
    assert build(image, source) == 0
    write_run(root, recorded_by(image))
    done = rerun(root, repository, "--without-docker")
    assert done.returncode == 2
    assert f"an image of commit {commit} with uncommitted changes" in done.stderr
