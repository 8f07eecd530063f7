"""Run a recorded run again from nothing and compare every artefact, byte for byte."""

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from paribus.config.names import proper_path, proper_run_id
from paribus.config.schema import RunConfig
from paribus.config.validate import build_run
from paribus.errors import ConfigurationError, DataError
from paribus.pipeline.graph import Node, build_graph
from paribus.pipeline.job import JobFunction
from paribus.pipeline.layout import Layout
from paribus.pipeline.recorder import UNREADABLE, read_record

EXIT_DIFFERS = 1


def rerun_command(arguments: Sequence[str], console: Console) -> int:
    """`paribus rerun RUN [root=...]`: 0 when all artefacts came out the same, else 1."""
    run_id, root = _parse(arguments)
    record = read_record(root / "runs" / run_id)
    if record is None:
        raise ConfigurationError(f"no run {run_id!r} below {root / 'runs'}; paribus status lists the runs of a command")
    if record["status"] == UNREADABLE:
        raise DataError(record["failure"]["message"])
    original = build_run(_moved(record["config"], root) | {"sweep": None})
    _refuse_changed(record, original)
    (root / "reruns").mkdir(exist_ok=True)
    fresh = tempfile.mkdtemp(prefix=f"{run_id}-", dir=root / "reruns")
    untracked = dataclasses.replace(original.tracking, kind="none")
    again = dataclasses.replace(original, root=fresh, tracking=untracked, experiment=None)
    JobFunction()(again)
    return _compare(original, again, console)


def _parse(arguments: Sequence[str]) -> tuple[str, Path]:
    runs = [argument for argument in arguments if "=" not in argument]
    options = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    if len(runs) != 1 or set(options) - {"root"}:
        raise ConfigurationError("rerun takes one run id and, where it is not paribus_runs, root=...")
    try:
        return proper_run_id(runs[0]), Path(proper_path(options.get("root", "paribus_runs"))).resolve()
    except ValueError as error:
        raise ConfigurationError(f"rerun: {error}") from error


def _moved(config: dict[str, Any], root: Path) -> dict[str, Any]:
    """The configuration with its output root where it is now; a run that it starts from is there too, or in its own."""
    start = config["start"]
    moved = {"root": str(root)} if start.get("root") == config["root"] else {}
    return config | {"root": str(root), "start": start | moved}


def _refuse_changed(record: dict[str, Any], config: RunConfig) -> None:
    """What this code and these files would make must have the keys that the record has."""
    nodes = build_graph(config, Layout.of(config).cache)
    changed = [name for name, stage in record["stages"].items() if nodes[name].key != stage["key"]]
    if changed:
        raise ConfigurationError(
            f"this would not be the same run: {', '.join(changed)} changed since (source files, package versions or "
            "code versions); take the commit and the versions of its record"
        )


def _compare(original: RunConfig, again: RunConfig, console: Console) -> int:
    nodes = build_graph(again, Layout.of(again).cache)
    table = Table(title="Artefacts made again", title_justify="left")
    for heading in ("stage", "result", "files that differ"):
        table.add_column(heading, overflow="fold")
    results = [_differing(node, original, again) for node in nodes.values()]
    for node, differing in zip(nodes.values(), results, strict=True):
        style, word = ("green", "identical") if not differing else ("red", "differs")
        table.add_row(node.name, Text(word, style), Text(", ".join(differing)))
    console.print(table)
    return EXIT_DIFFERS if any(results) else 0


def _differing(node: Node, original: RunConfig, again: RunConfig) -> list[str]:
    """Names of the files of an artefact that are not the same in both roots."""
    found = [Layout.of(config).store.find(node.name, node.key) for config in (original, again)]
    if None in found:
        return ["not made" if found[1] is None else "the original is gone"]
    before, after = (artifact.record()["files"] for artifact in found if artifact is not None)
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
