"""What of an output root runs still need: those that are not done, and those that go on from another's checkpoint."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.checks.command import checked_run
from paribus.errors import ParibusError
from paribus.pipeline.graph import build_graph
from paribus.pipeline.making.cache_overlay import overlay
from paribus.pipeline.record.inventory import DONE, Inventory, Place
from paribus.pipeline.record.run_record import UNREADABLE, moved_config


@dataclass(frozen=True)
class Needs:
    """What must not go."""

    unfinished: Mapping[Place, Collection[str]]
    """Artefact -> the runs that are not done and would make or read it, the same command provided."""
    unknown: frozenset[str]
    """Stages of such runs whose keys are not known, as files of theirs are away."""
    starts: Mapping[str, str]
    """Key of a training -> a run that goes on from a checkpoint of it, whether it is done or not: its own keys have the
    digests of these files."""

    unreadable: str | None
    """A run whose record nobody can read, so that what it names is not known; None where there is none."""

    def reason(self, place: Place) -> str | None:
        """Why an artefact must stay as it is; None where nothing says so."""
        if place in self.unfinished:
            return f"run {min(self.unfinished[place])} is not done and needs it"
        if place[0] == "training" and place[1] in self.starts:
            return f"run {self.starts[place[1]]} starts from it"
        return None


def find_needs(inventory: Inventory) -> Needs:
    """The needs of all runs on record. Those whose configuration this code refuses cannot be gone on with."""
    unfinished: dict[Place, set[str]] = {}
    unknown: set[str] = set()
    with overlay(inventory.root.cache) as cache:
        for run in inventory.runs.values():
            if run.state != DONE:
                for place in run.artefacts:
                    unfinished.setdefault(place, set()).add(run.run_id)
                for place, known in _keys(run.record, inventory.root.path, cache):
                    unfinished.setdefault(place, set()).add(run.run_id)
                    unknown |= set() if known else {place[0]}
    unreadable = next((run.run_id for run in inventory.runs.values() if run.state == UNREADABLE), None)
    return Needs(unfinished, frozenset(unknown), dict(_starts(inventory)), unreadable)


def _keys(record: Mapping[str, Any], root: Path, cache: Path) -> Iterator[tuple[Place, bool]]:
    """The artefacts of a run as its configuration has them now, and whether their keys are known."""
    try:
        config = checked_run(moved_config(record["config"], root) | {"sweep": None})
        nodes = build_graph(config, cache, tolerate_missing=True)
    except (ParibusError, KeyError, TypeError):
        return
    yield from (((node.name, node.key), node.problem is None) for node in nodes.values())


def _starts(inventory: Inventory) -> Iterator[tuple[str, str]]:
    """Keys of trainings of this root that runs start from, named by run or by path."""
    for run in inventory.runs.values():
        start = (run.record.get("config") or {}).get("start") or {}
        begin = str(start.get("run") or "")
        for other in (other for other in inventory.runs.values() if begin and other.run_id.startswith(begin)):
            yield from ((key, run.run_id) for stage, key in other.artefacts if stage == "training")
        if start.get("path"):
            yield from ((key, run.run_id) for key in _named_by_path(str(start["path"]), inventory))


def _named_by_path(path: str, inventory: Inventory) -> Iterator[str]:
    """A path into the artefact of a training, or the directory of a run, however its root is called."""
    parts = Path(path).expanduser().parts
    yield from (key for stage, key in inventory.artefacts if stage == "training" and key in parts)
    for run_id in inventory.runs.keys() & set(parts):
        yield from (key for stage, key in inventory.runs[run_id].artefacts if stage == "training")
