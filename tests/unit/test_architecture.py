"""The rules of the house that a reader should not have to check by hand."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "paribus"
FILES = sorted(SOURCE.rglob("*.py"))
HEAVY = {"torch", "transformers", "mlflow", "lm_eval", "pandas", "sklearn", "scipy", "faiss", "datasets", "matplotlib"}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def importers(package: str) -> set[str]:
    found = {path for path in FILES for name in imports(path) if name.split(".")[0] == package}
    return {path.relative_to(SOURCE).as_posix() for path in found}


def test_hydra_and_mlflow_are_each_imported_in_one_place() -> None:
    assert importers("hydra") == {"config/compose.py"}
    assert importers("mlflow") == {"tracking/mlflow_sink.py"}


def test_pickle_is_imported_nowhere() -> None:
    assert importers("pickle") | importers("dill") | importers("cloudpickle") == set()


@pytest.mark.parametrize("name", ["trust_remote_code=True", "weights_only=False", "shell=True", "_target_:"])
def test_what_would_run_foreign_code_appears_nowhere(name: str) -> None:
    texts = [*FILES, *(ROOT / "conf").rglob("*.yaml"), *(ROOT / "experiments").rglob("*.yaml")]
    assert [path for path in texts if name in path.read_text(encoding="utf-8")] == []


STAGES = ("corpus", "tokenization", "ordering", "modeling", "training", "evaluation", "finetuning")


@pytest.mark.parametrize("layer", STAGES)
def test_a_stage_package_knows_nothing_of_the_pipeline_but_its_contract(layer: str) -> None:
    found = {name for path in (SOURCE / layer).rglob("*.py") for name in imports(path)}
    assert {name for name in found if name.startswith("paribus.pipeline")} <= {"paribus.pipeline.context"}
    assert not {name for name in found if name.startswith(("paribus.tracking", "paribus.reporting", "paribus.cli"))}


@pytest.mark.parametrize("layer", ["reporting", "tracking"])
def test_reporting_and_tracking_know_no_stage(layer: str) -> None:
    stages = (*STAGES, "pipeline")
    found = {name for path in (SOURCE / layer).rglob("*.py") for name in imports(path)}
    assert not {name for name in found if name.startswith(tuple(f"paribus.{stage}" for stage in stages))}


def test_no_file_is_longer_than_500_lines() -> None:
    assert {path.name for path in FILES if len(path.read_text(encoding="utf-8").splitlines()) > 500} == set()


@pytest.mark.parametrize("module", ["paribus.cli", "paribus.pipeline.commands", "paribus.pipeline.child"])
def test_the_command_line_starts_without_anything_heavy(module: str) -> None:
    code = f"import sys, {module}; print(' '.join({{name.split('.')[0] for name in sys.modules}}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) & HEAVY == set()
