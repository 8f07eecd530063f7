"""The rules of the house that a reader should not have to check by hand."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "paribus"
FILES = sorted(SOURCE.rglob("*.py"))
NAMED = re.compile(r'late\("([\w.]+):\w+"\)')
HEAVY = {"torch", "transformers", "mlflow", "lm_eval", "pandas", "sklearn", "scipy", "faiss", "datasets", "matplotlib"}


@cache
def statements(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Every import of a file, wherever it stands."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return tuple(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))


def imports(path: Path) -> Iterator[str]:
    for node in statements(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif node.module == "paribus":
            yield from (f"paribus.{alias.name}" for alias in node.names if not alias.name.startswith("__"))
        elif node.module:
            yield node.module
    yield from NAMED.findall(path.read_text(encoding="utf-8"))


def importers(package: str) -> set[str]:
    found = {path for path in FILES for name in imports(path) if name.split(".")[0] == package}
    return {path.relative_to(SOURCE).as_posix() for path in found}


def test_only_what_composes_imports_hydra_and_one_file_mlflow() -> None:
    assert importers("hydra") == importers("omegaconf") == {"config/compose.py", "config/hydra_session.py"}
    assert importers("mlflow") == {"tracking/mlflow.py"}


def test_pickle_is_imported_nowhere() -> None:
    assert importers("pickle") | importers("dill") | importers("cloudpickle") == set()


def trusted(node: ast.AST) -> Iterator[ast.expr | None]:
    """What is given for `trust_remote_code`, as an argument of a call or a value of a dictionary."""
    if isinstance(node, ast.Call):
        yield from (keyword.value for keyword in node.keywords if keyword.arg == "trust_remote_code")
    elif isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        yield from (value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "trust_remote_code")


def test_code_that_comes_with_a_model_is_trusted_nowhere() -> None:
    """Calls are looked at, and not text: a model card says that nothing needs it."""
    nodes = (node for path in FILES for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    given = [value for node in nodes for value in trusted(node)]
    assert given
    assert all(isinstance(value, ast.Constant) and value.value is False for value in given)
    files = [*(ROOT / "conf").rglob("*.yaml"), *(ROOT / "experiments").rglob("*.yaml")]
    assert [path for path in files if "trust_remote_code" in path.read_text(encoding="utf-8")] == []


def test_no_source_or_configuration_runs_foreign_code() -> None:
    texts = [*FILES, *(ROOT / "conf").rglob("*.yaml"), *(ROOT / "experiments").rglob("*.yaml")]
    for name in ("weights_only=False", "shell=True", "_target_:"):
        assert [path for path in texts if name in path.read_text(encoding="utf-8")] == [], name


ROOMS = (
    "errors", "native", "config", "store", "engine", "stage",
    "modeling", "corpus", "tokenization", "ordering", "training", "evaluation",
    "checks", "tracking", "reporting", "pipeline", "planning", "commands", "cli", "__main__", "__init__",
)  # fmt: skip
"""From the bottom to the top: a room knows those before it, as docs/design.md says."""


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_no_import_runs_upwards() -> None:
    upwards = {}
    for path in FILES:
        own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        known = ROOMS[: ROOMS.index(own) + 1]
        names = {name for name in imports(path) if name.startswith("paribus.") and room(name) not in known}
        upwards |= {path: names} if names else {}
    assert upwards == {}


@pytest.mark.parametrize(
    ("modules", "heavy"),
    [
        ("paribus", {*HEAVY, "numpy", "pyarrow"}),
        ("paribus.cli", HEAVY),
        ("paribus.commands.verbs", HEAVY),
        ("paribus.pipeline.fork_server", HEAVY),
        ("paribus.pipeline.prepare, paribus.planning.show", {*HEAVY, "numpy", "pyarrow"}),
    ],
)
def test_the_command_line_starts_without_anything_heavy(modules: str, heavy: set[str]) -> None:
    code = f"import sys, {modules}; print(' '.join({{name.split('.')[0] for name in sys.modules}}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) & heavy == set()
