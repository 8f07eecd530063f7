"""Secrets of the environment and passwords of trackers are in no file that runs and reports leave."""

import io
import secrets
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path

import pyarrow.parquet
import pytest
import zstandard

from artefact_support import SMALL, in_this_process
from paribus.cli import main
from paribus.pipeline import runner

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "end_to_end"))
from command_line import command, write_corpus

NAMES = ("AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN", "A_NAME_OF_NO_NOTE")
ROOT = "root=\"runs; $(touch x) '🦀'\""
RUN = (*(setting for setting in SMALL if not setting.startswith("tracking")), "corpus.paths=[texts/*.jsonl]", ROOT)


def contents(directory: Path) -> bytes:
    """Everything that is written below a directory: names, bytes, and what is compressed in them."""
    parts = []
    for path in directory.rglob("*"):
        parts.append(str(path).encode())
        if path.is_file():
            parts.append(path.read_bytes())
        if path.suffix == ".parquet":
            table = pyarrow.parquet.read_table(path)
            parts.append(repr(table.to_pydict()).encode() + repr(table.schema.metadata).encode())
        if path.suffix == ".zst":
            parts.append(zstandard.ZstdDecompressor().stream_reader(path.open("rb")).read())
        if path.suffix == ".db":
            with closing(sqlite3.connect(path)) as connection:
                parts.append("\n".join(connection.iterdump()).encode())
    return b"\0".join(parts)


def typed(directory: Path, arguments: tuple[str, ...]) -> tuple[int, str]:
    """Exit status and output of a command in processes of its own."""
    done = subprocess.run(command(arguments), cwd=directory, capture_output=True, check=False)
    return done.returncode, (done.stdout + done.stderr).decode()


def called(directory: Path, arguments: tuple[str, ...]) -> tuple[int, str]:
    """The same in this process, without a tracker."""
    told = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(told), redirect_stderr(told):
        patch.setattr(runner, "execute", in_this_process)
        patch.chdir(directory)
        status = main([*arguments, "tracking.kind=none"])
    return status, told.getvalue()


@pytest.mark.stress
@pytest.mark.parametrize("paribus", [called, typed])
def test_no_secret_is_in_any_file_of_a_run_a_failed_run_or_a_report(
    paribus: Callable[[Path, tuple[str, ...]], tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_corpus(tmp_path)
    canaries = {name: f"canary{secrets.token_hex(12)}" for name in NAMES}
    for name, value in canaries.items():
        monkeypatch.setenv(name, value)
    password = f"canary{secrets.token_hex(12)}"
    failing = ("training.learning_rate=1e30", "training.gradient_clip=1e30")
    tracker = (f"tracking.uri=http://user:{password}@127.0.0.1:9", "tracking.patience=1")
    commands = [
        (("run", *RUN), 0),
        (("run", *RUN, *failing, *tracker), 1),
        (("report", *RUN), 0),
        (("run", *RUN, "tracking.experiment=${oc.env:A_NAME_OF_NO_NOTE}"), 2),
    ]
    said = []
    for arguments, expected in commands:
        status, told = paribus(tmp_path, arguments)
        assert status == expected, told
        said.append(told)
    root = tmp_path / "runs; $(touch x) '🦀'"
    written = contents(tmp_path)
    assert (root / "mlflow.db").is_file() is (paribus is typed)
    assert len(list(root.glob("runs/*/run.json"))) == 2 and b"paribus.artifact.scores" in written
    for secret in (*canaries.values(), password):
        assert secret.encode() not in written
        assert not any(secret in text for text in said)
    assert {path.name for path in tmp_path.iterdir()} == {"texts", root.name}
