"""Names that would lead out of the store, or mean something to a shell: refused by their path, or only a name."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.config.compose import Composition, Job
from paribus.config.identity import to_plain
from paribus.config.validate import build_run
from paribus.errors import ConfigurationError, ParibusError
from paribus.pipeline.prepare import describe_sweep, prepare_runs
from paribus.pipeline.recorder import RunRecord
from paribus.pipeline.root import OutputRoot
from paribus.pipeline.standings import write_stages

HOSTILE = (
    "../x", "../../x", "a;touch x", "a\0b", "x" * 300, "😀", "$(touch x)", "`touch x`", "a\nb", "-rf", "--help", "nul",
    "..", ".", "", " ", "~nobody/x", "/dev/null/x", "\udcff", "a/../../x", "x\x1b[2J",
)  # fmt: skip
FIELDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("root", {}),
    ("tracking.experiment", {}),
    ("tracking.uri", {}),
    ("experiment.name", {"experiment": {"name": "", "title": "A title"}}),
    ("corpus.paths[0]", {}),
    ("corpus.name", {"corpus": {"kind": "huggingface", "name": "", "heldout": 0.2}}),
    ("evaluation.tasks[0]", {}),
    ("start.run", {"start": {"kind": "checkpoint", "run": ""}}),
    ("sweep.id", {"sweep": {"id": "", "name": "a", "invocation": "b", "jobs": 1}}),
)
WORDS = ("tracking.uri",)
"""Fields of which any text may be meant; only what is no text is refused."""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    config = compose_command(parse(["scale=tiny", "corpus=files", "corpus.paths=[texts.txt]"])).jobs[0].config
    return dict(to_plain(config))


@pytest.fixture(autouse=True)
def roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """A working directory beside which, and in which outside the output roots, nothing may appear."""
    (tmp_path / "below" / "here").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "below" / "here")
    Path("texts.txt").write_text("some text", encoding="utf-8")
    before = everything_below(tmp_path)
    allowed = [tmp_path / "below" / "here" / "paribus_runs"]
    yield allowed
    appeared = everything_below(tmp_path) - before
    assert not [path for path in appeared if not any(path.is_relative_to(root) for root in allowed)]


def everything_below(directory: Path) -> set[Path]:
    return set(directory.rglob("*"))


def with_value(configuration: dict[str, Any], path: str, groups: dict[str, Any], value: str) -> dict[str, Any]:
    """The configuration with one value at a path such as `corpus.paths[0]`."""
    changed = {**configuration, **{name: block for name, block in groups.items() if name in configuration}}
    *parents, last = path.split(".")
    for name in parents:
        changed[name] = dict(changed[name])
    block = changed[parents[0]] if parents else changed
    block[last.removesuffix("[0]")] = [value] if last.endswith("[0]") else value
    return changed


NO_DIRECTORY = re.compile(r"root: '.*' is no directory( and lies below a file)?; name the output root with root=\.\.\.")


@pytest.mark.parametrize(("path", "groups"), FIELDS, ids=[path for path, _ in FIELDS])
def test_a_hostile_name_is_refused_by_its_path_or_stays_below_the_root(
    configuration: dict[str, Any], path: str, groups: dict[str, Any], roots: list[Path]
) -> None:
    refused = 0
    for value in HOSTILE:
        try:
            config = build_run(with_value(configuration, path, groups, value))
            runs = prepare_runs(Composition((Job((), config),), (), False))
        except ParibusError as error:
            no_directory = path == "root" and NO_DIRECTORY.fullmatch(str(error))
            field = re.compile(rf"{path.partition('.')[0]}(\.\w+)*(\[\d+\])?[:=]")
            assert no_directory or all(field.match(str(problem)) for problem in error.problems)
            refused += 1
            continue
        layout = OutputRoot.of(config)
        try:
            layout.require_writable()
        except ConfigurationError as error:
            assert path == "root" and str(error).startswith(f"root: '{layout.path}' cannot hold an output root (")
            continue
        if path == "root":
            roots.append(layout.path)
        assert layout.path in roots
        write_stages(layout, describe_sweep(Composition((Job((), config),), (), False), runs), runs)
        RunRecord(config, runs[0].nodes, layout).finish(None)
    assert refused >= (1 if path in WORDS else 4), "an empty name, NUL and a line break name nothing"
