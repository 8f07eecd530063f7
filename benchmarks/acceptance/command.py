"""The command `paribus` as its users have it, on a text of the repository and the step's device."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acceptance.given import Given

CONFIGURATION = (
    "scale=tiny",
    "corpus=pydocs_small",
    "evaluation=heldout",
    "tracking=none",
    "training.checkpoint_every=20",
)


def started(
    given: Given, root: Path, *overrides: str, log: Path, variables: Mapping[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    """`paribus run` into `root`, with further variables in its environment; what it says is in `log`."""
    devices = [f"{field}.device={given.device}" for field in ("training", "evaluation")]
    # Of the step alone: runs of another one, made at the same time, are not to be waited for.
    locks = f"engine.gpu_locks={given.work / 'gpu_locks'}"
    command = [sys.executable, "-m", "paribus", "run", *CONFIGURATION, f"root={root}", locks, *devices, *overrides]
    with log.open("wb") as said:
        return subprocess.Popen(command, stdout=said, stderr=said, env=os.environ | dict(variables or {}))


def ran(given: Given, root: Path, *overrides: str, log: Path, variables: Mapping[str, str] | None = None) -> int:
    """The exit status of `paribus run`."""
    return started(given, root, *overrides, log=log, variables=variables).wait()


def artefact(root: Path, stage: str) -> Path:
    """The one artefact of a stage."""
    (found,) = (root / "artifacts" / stage).iterdir()
    return found


def result(directory: Path) -> dict[str, Any]:
    """What the record of an artefact says of it beside its files."""
    found: dict[str, Any] = json.loads((directory / "record.json").read_text(encoding="utf-8"))["result"]
    return found


def last_line(log: Path) -> Any:
    """What a command said last."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "nothing"
