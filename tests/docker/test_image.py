"""The image as users have it: built by any builder, run by any user, and a run of it made again."""

import json
import shutil
from pathlib import Path

import pytest
from docker_engine import BUILT_WITH, Engine

from support.command_line import OVERRIDES, write_text_files

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1800)]
SWEEP = ("run", "-m", *OVERRIDES, "evaluation=heldout", "encoder=merge_rank,longest_first")
HARDENED = ("--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--security-opt=no-new-privileges")


def write_texts(directory: Path) -> None:
    write_text_files(directory)
    (directory / "texts").chmod(0o755)


@pytest.fixture(scope="module")
def sweep_directory(engine: Engine, image: str) -> Path:
    """Directory in which an unknown user, read-only and without capabilities, has run a sweep."""
    directory = engine.directory / "sweep"
    directory.mkdir(mode=0o777)
    shutil.chown(directory, 4321, 4321)
    write_texts(directory)
    output = engine.paribus(directory, *SWEEP, options=HARDENED)
    assert "2 of 2 runs done" in output
    assert "Comparison by encoder" in output
    return directory


def test_a_run_is_made_again_with_identical_artefacts(engine: Engine, sweep_directory: Path, checkout: Path) -> None:
    run, *_ = sorted(path.parent.name for path in sweep_directory.glob("paribus_runs/runs/*/run.json"))
    given = [word for argument in BUILT_WITH for word in ("--build-arg", argument)]
    root = sweep_directory / "paribus_runs"
    output = engine.run(checkout / "docker/rerun", run, "--root", root, *given, cwd=sweep_directory)
    assert "8 of 8 artefacts identical" in output
    record = json.loads(next(root.glob("artifacts/evaluation/*/record.json")).read_text(encoding="utf-8"))
    assert record["provenance"]["git"]["commit"] == engine.run("git", "-C", checkout, "rev-parse", "HEAD").strip()
