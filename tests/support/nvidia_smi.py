"""A machine whose driver lists GPUs, as `nvidia-smi` tells of them."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from paribus.engine.gpus import VISIBLE, Gpu

VERSION = "580.65.06"


def list_gpus(gpus: Sequence[Gpu], directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put an `nvidia-smi` in front of PATH that lists `gpus`, and hide none of them."""
    programs = directory / "programs"
    programs.mkdir()
    listed = "".join(f"{gpu.name}, {gpu.uuid}\n" for gpu in gpus)
    script = f"#!/bin/sh\ncase $1 in\n  *driver_version*) echo {VERSION};;\n  *) cat <<END\n{listed}END\nesac\n"
    (programs / "nvidia-smi").write_text(script, encoding="utf-8")
    (programs / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.delenv(VISIBLE, raising=False)
