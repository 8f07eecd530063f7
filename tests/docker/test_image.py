"""The image as users have it: built by any builder, run by any user, and a run of it made again."""

import json
import shutil
from pathlib import Path

import pytest
from docker_engine import BUILT_WITH, IMAGE, PYTHON, Engine

from support.command_line import OVERRIDES, write_corpus

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1800)]
SWEEP = ("run", "-m", *OVERRIDES, "evaluation=heldout", "encoder=merge_rank,longest_first")
HARDENED = ("--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--security-opt=no-new-privileges")


def write_texts(directory: Path) -> None:
    write_corpus(directory)
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


def test_without_arguments_it_says_what_there_is(engine: Engine, image: str) -> None:
    assert "usage: paribus VERB" in engine.docker("run", "--rm", image)
    size = int(engine.docker("image", "inspect", "--format={{.Size}}", image))
    base = int(engine.docker("image", "inspect", "--format={{.Size}}", PYTHON))
    print(f"image {size / 1e9:.2f} GB, of which the base {base / 1e9:.2f} GB")  # noqa: T201
    assert size < 4e9


@pytest.mark.parametrize("mode", ["", ":ro"])
def test_a_read_only_directory_is_refused_with_a_remedy(engine: Engine, image: str, directory: Path, mode: str) -> None:
    if not mode:
        shutil.chown(directory, 0, 0)
    mounted = ("run", "--rm", "--user=4321:4321", f"--volume={directory}:/runs{mode}")
    output = engine.docker(*mounted, image, "run", "experiment=demo", expect=73)
    assert "user 4321 may not write to /runs" in output
    assert "mkdir -p runs" in output


def test_a_run_is_made_again_with_identical_artefacts(engine: Engine, sweep_directory: Path, checkout: Path) -> None:
    run, *_ = sorted(path.parent.name for path in sweep_directory.glob("paribus_runs/runs/*/run.json"))
    given = [word for argument in BUILT_WITH for word in ("--build-arg", argument)]
    root = sweep_directory / "paribus_runs"
    output = engine.run(checkout / "docker/rerun", run, "--root", root, *given, cwd=sweep_directory)
    assert "8 of 8 artefacts identical" in output
    record = json.loads(next(root.glob("artifacts/evaluation/*/record.json")).read_text(encoding="utf-8"))
    assert record["provenance"]["git"]["commit"] == engine.run("git", "-C", checkout, "rev-parse", "HEAD").strip()


def test_the_image_says_which_commit_it_is_of(engine: Engine, image: str, checkout: Path) -> None:
    label = engine.docker(
        "image", "inspect", '--format={{index .Config.Labels "org.opencontainers.image.revision"}}', IMAGE
    )
    assert label == engine.run("git", "-C", checkout, "rev-parse", "HEAD")
