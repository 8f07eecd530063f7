"""Kill -9 in every stage: nothing half-made is left, and the same command ends with the same bytes."""

import fnmatch
import json
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from paribus.pipeline.graph import STAGES, place_of
from support.command_line import OVERRIDES, command, paribus, write_meetings, write_text_files

FINETUNING = (
    "finetuning=scrolls",
    "finetuning.tasks=[qmsum]",
    "finetuning.answer_characters=32",
    "finetuning.global_batch=2",
    "evaluation.data=benchmarks",
)
COMMANDS = {
    "in_context": ("run", *OVERRIDES, "ordering=in_context", "duplicates=embedding"),
    "lexical": ("run", *OVERRIDES, "ordering=lexical", "duplicates=minhash"),
    "finetuning": ("run", *OVERRIDES, *FINETUNING),
    "continued": ("run", *OVERRIDES, "start=continued", "start.tokens=8K"),
    "statistics": ("orders", *OVERRIDES, "ordering=standard"),
    "tokens": ("tokens", "statistics", *OVERRIDES),
}
FINETUNED = ("finetuning_data", "finetuning")
OTHERS = ("lexical_neighbours", "context_statistics", "token_statistics", "first_training", *FINETUNED)
"""Stages that a run of `in_context` has no need of."""
KILLED = [
    *(("in_context", stage) for stage in STAGES if stage not in OTHERS),
    *(("finetuning", stage) for stage in FINETUNED),
    *(("continued", stage) for stage in ("first_training", "training")),
    ("lexical", "lexical_neighbours"),
    ("lexical", "duplicates"),
    ("statistics", "context_statistics"),
    ("tokens", "token_statistics"),
]
DELAYS = (pytest.param(0.0, marks=pytest.mark.core), 0.5, 2.0)

pytestmark = pytest.mark.slow


def artifacts(directory: Path) -> dict[str, dict[str, Any]]:
    """Artefact -> digests of its files."""
    records = (directory / "paribus_runs/artifacts").glob("*/*/record.json")
    return {"-".join(path.parent.parts[-2:]): json.loads(path.read_text(encoding="utf-8"))["files"] for path in records}


def place(directory: Path, stage: str) -> str:
    """Stage and key that a run has the artefact by; of what no run is made for, any key."""
    for path in (directory / "paribus_runs/runs").glob("*/run.json"):
        found = json.loads(path.read_text(encoding="utf-8"))["stages"].get(stage)
        if found:
            return "-".join(place_of(stage, found["key"]))
    return f"{stage}-*"


@dataclass(frozen=True)
class Finished:
    """A command that nothing disturbed: what was typed and where it was done."""

    arguments: tuple[str, ...]
    directory: Path


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Finished]:
    """Runs a command by its name, once; a parametrized fixture would be made again for every stage."""

    @cache
    def finished(name: str) -> Finished:
        directory = tmp_path_factory.mktemp("undisturbed")
        write_text_files(directory)
        write_meetings(directory)
        paribus(directory, *COMMANDS[name])
        made = artifacts(directory)
        for stage in (stage for of, stage in KILLED if of == name):
            assert fnmatch.filter(made, place(directory, stage))
        return Finished(COMMANDS[name], directory)

    return finished


def test_every_stage_is_killed() -> None:
    assert {stage for _, stage in KILLED} == set(STAGES)


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize(("name", "stage"), KILLED)
def test_a_kill_in_any_stage_costs_nothing_but_time(
    undisturbed: Callable[[str], Finished], tmp_path: Path, name: str, stage: str, delay: float
) -> None:
    finished = undisturbed(name)
    shutil.copytree(finished.directory, tmp_path, dirs_exist_ok=True)
    store, names, killed = tmp_path / "paribus_runs/artifacts", list(STAGES), place(tmp_path, stage)
    for later in names[names.index(stage) :]:
        for path in store.glob(place(tmp_path, later).replace("-", "/", 1)):
            shutil.rmtree(path)
    process = subprocess.Popen(
        command(finished.arguments), cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True
    )
    while not list((store / "partial").glob(killed)) and process.poll() is None:
        time.sleep(0.01)
    time.sleep(delay)
    process.kill()
    process.wait()
    for path in store.glob("*/*/"):
        if path.parent.name not in ("claims", "partial"):
            assert (path / "record.json").is_file()
    paribus(tmp_path, *finished.arguments)
    assert artifacts(tmp_path) == artifacts(finished.directory)
    assert list((store / "partial").iterdir()) == []
