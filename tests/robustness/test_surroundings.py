"""Runs amid what a user's directory, terminal and pipes may be."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import OVERRIDES, write_corpus


def test_no_process_imports_a_file_of_the_user_that_is_named_like_a_module(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    for name in ("numbers", "tokenize"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the file of the user')")
    command = [sys.executable, "-P", "-m", "paribus", "run", *OVERRIDES, "until=vocabulary", "engine.workers=2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 of 1 run done up to vocabulary" in done.stdout


@pytest.mark.parametrize(
    ("launcher", "output", "status"),
    [("joblib", "pipe", 0), ("basic", "/dev/full", 1), ("basic", "log", 0)],
)
def test_a_closed_or_full_output_does_not_decide_how_a_run_ends(
    launcher: str, output: str, status: int, tmp_path: Path
) -> None:
    write_corpus(tmp_path)
    if output == "pipe":
        reading, writing = os.pipe()
        os.close(reading)
    else:
        writing = os.open(tmp_path / output, os.O_WRONLY | os.O_CREAT)
    command = [sys.executable, "-m", "paribus", "run", *OVERRIDES, "until=corpus", f"hydra/launcher={launcher}"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, env=environment, check=False)
    os.close(writing)
    (record,) = tmp_path.glob("paribus_runs/runs/*/run.json")
    assert json.loads(record.read_text("utf-8"))["status"] == "stopped"
    assert done.returncode == status
    assert b"Traceback" not in done.stderr
    if output == "log":
        assert r"KiB \xb7 76 held out" in (tmp_path / output).read_text("ascii")
