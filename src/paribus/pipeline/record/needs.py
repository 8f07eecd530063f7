"""What of an output root runs still need: those that are not done, and those that read artefacts by their paths."""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.checks.command import checked_run
from paribus.errors import ParibusError
from paribus.pipeline.graph import build_graph
from paribus.pipeline.making.cache_overlay import overlay
from paribus.pipeline.record.inventory import DONE, Inventory, KeptRun
from paribus.pipeline.record.run_record import UNREADABLE, moved_config
from paribus.pipeline.stages import Place

ROOTS = ("root", "start.root")
"""Fields whose paths nothing is read from but what others name: the root of a rerun has the name of its run."""


@dataclass(frozen=True)
class Needs:
    """What must not go."""

    unfinished: Mapping[Place, Collection[str]]
    """Artefact -> the runs that are not done and would make or read it, the same command provided."""
    unknown: Mapping[str, Collection[str]]
    """Stages of such runs whose keys are not known, as files of theirs are away -> these runs."""
    named: Mapping[Place, str]
    """Artefact -> which run reads it from outside its graph, and how; whether that is done or not, as its keys have the
    digests of these files."""
    torn: str | None
    """Which run has a record that nobody can read, so that its needs are not known; None where there is none."""
    refused: Collection[str]
    """Such runs whose configuration this code refuses, so that of their needs only what they made is known."""

    @property
    def unclear(self) -> str | None:
        """Why it is not known what some run needs; None where all is known."""
        if self.torn or not self.refused:
            return self.torn
        return f"run {next(iter(self.refused))} is not done, and this code refuses its configuration"

    def reason(self, place: Place) -> str | None:
        """Why an artefact must stay as it is; None where nothing says so."""
        if place in self.unfinished:
            return f"run {min(self.unfinished[place])} is not done and needs it"
        return self.named.get(place)


def find_needs(inventory: Inventory) -> Needs:
    """The needs of all runs on record."""
    unfinished: dict[Place, set[str]] = {}
    unknown: dict[str, set[str]] = {}
    refused: list[str] = []
    torn = (run.run_id for run in inventory.runs.values() if run.state == UNREADABLE)
    with overlay(inventory.root.cache) as cache:
        for run in inventory.runs.values():
            if run.state != DONE:
                for place in run.artefacts:
                    unfinished.setdefault(place, set()).add(run.run_id)
                keys = _keys(run.record, inventory.root.path, cache)
                if keys is None and run.state != UNREADABLE:
                    refused.append(run.run_id)
                for place, known in keys or ():
                    unfinished.setdefault(place, set()).add(run.run_id)
                    if not known:
                        unknown.setdefault(place[0], set()).add(run.run_id)
    unreadable = next((f"the record of run {name} cannot be read" for name in torn), None)
    return Needs(unfinished, unknown, dict(_named(inventory)), unreadable, refused)


def _keys(record: Mapping[str, Any], root: Path, cache: Path) -> list[tuple[Place, bool]] | None:
    """The artefacts of a run as its configuration has them now, and whether their keys are known.

    None where this code refuses the configuration, which the code that the run was begun with may go on with.
    """
    try:
        config = checked_run(moved_config(record["config"], root) | {"sweep": None})
        nodes = build_graph(config, cache, tolerate_missing=True)
    except (ParibusError, KeyError, TypeError, AttributeError):
        return None
    return [(node.place, node.problem is None) for node in nodes.values()]


def _named(inventory: Inventory) -> Iterator[tuple[Place, str]]:
    """Artefacts of this root that runs read by the name of a run or by a path, and who does."""
    by_key: dict[str, set[Place]] = {}
    for place in inventory.artefacts:
        by_key.setdefault(place[1], set()).add(place)
    for run in inventory.runs.values():
        config = run.record.get("config") or {}
        begin = str((config.get("start") or {}).get("run") or "")
        for other in (other for other in inventory.runs.values() if begin and other.run_id.startswith(begin)):
            yield from ((place, f"run {run.run_id} starts from it") for place in _trainings(other))
        for field, parts in _paths(config):
            for part in parts:
                places = by_key.get(part, set()) | set(_trainings(inventory.runs.get(part)))
                yield from ((place, f"run {run.run_id} reads it as {field}") for place in places)


def _trainings(run: KeptRun | None) -> list[Place]:
    """What a path to the directory of a run leads to."""
    return [place for place in run.artefacts if place[0] == "training"] if run else []


def _paths(config: Any, field: str = "") -> Iterator[tuple[str, frozenset[str]]]:
    """Fields that may be paths, and the parts of each as it is written and where its links lead.

    However a root was called when the run was made, keys and identifiers are among the parts.
    """
    if isinstance(config, Mapping):
        for name, value in config.items():
            yield from _paths(value, f"{field}.{name}" if field else str(name))
    elif isinstance(config, list):
        for value in config:
            yield from _paths(value, field)
    elif isinstance(config, str) and "\0" not in config and field not in ROOTS:
        path = Path(config).expanduser() if config.startswith("~/") else Path(config)
        if os.sep in config or os.path.lexists(path):
            yield field, frozenset(path.parts) | frozenset(Path(os.path.realpath(path)).parts)
