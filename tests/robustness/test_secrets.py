"""Secrets of the environment and passwords of trackers are in no file that runs and reports leave."""

import secrets
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pyarrow.parquet
import pytest
import zstandard

from support.artefacts import SMALL
from support.command_line import command, write_text_files

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


def told_by(directory: Path, arguments: tuple[str, ...], expected: int) -> str:
    """Output of a command that ends with the expected exit status."""
    done = subprocess.run(command(arguments), cwd=directory, capture_output=True, check=False)
    printed = (done.stdout + done.stderr).decode()
    assert done.returncode == expected, printed
    return printed


@pytest.mark.slow
def test_no_secret_is_in_any_file_of_a_run_or_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_text_files(tmp_path)
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
    said = [told_by(tmp_path, arguments, expected) for arguments, expected in commands]
    root = tmp_path / "runs; $(touch x) '🦀'"
    written = contents(tmp_path)
    assert (root / "mlflow.db").is_file()
    assert len(list(root.glob("runs/*/run.json"))) == 2 and b"paribus.artifact.evaluation" in written
    for secret in (*canaries.values(), password):
        assert secret.encode() not in written
        assert not any(secret in text for text in said)
    assert {path.name for path in tmp_path.iterdir()} == {"texts", root.name}
