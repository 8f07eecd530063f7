"""Cleaning of an output root: artefacts that no result needs, what is damaged, and what dead processes left."""

import os
import re
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from paribus.config.identity import canonical
from paribus.errors import ConfigurationError
from paribus.pipeline.graph import Place
from paribus.pipeline.records import UNREADABLE
from paribus.pipeline.results import MEASURING_STAGES
from paribus.pipeline.root import DONE, INCOMPLETE, RUNNING, Inventory, OutputRoot, RunSummary, take_inventory
from paribus.store.artifacts import Store
from paribus.store.claims import exclusive, is_held
from paribus.store.files import MADE_OF
from paribus.training.start import STATE_DIRECTORY

REPORTS = ("tokens", "orders")
"""Directories of an output root with reports that belong to no run."""
UNUSED, ABANDONED = "artefacts that no record names", "unfinished work of no recorded run"
WEIGHTS, UNFINISHED = "weights and optimizer states", "artefacts of unfinished runs, those stopped by `until` included"
KEY, RUN_ID = re.compile("[0-9a-f]{64}"), re.compile(r"\b[0-9a-f]{16}\b")
SECONDS_OF_A_WRITE = 3600.0
"""A file written aside that has not got its name after this long belongs to no living process."""


# An artefact is needed if its key stands in the record of a run, which has the keys of all its stages from its
# beginning, or in the list of artefacts of a report. Trainings that no record names are needed too, with all their
# inputs, since other roots may start from them, and so are vocabularies, which are small and read by their paths. What
# recorded runs alone use is removed only where these are named: weights and optimizer states of finished runs, all
# artefacts of others.
@dataclass(frozen=True)
class Removal:
    """An artefact, files of one, or unfinished work that can be removed."""

    kind: str
    place: Place
    size: int
    """Bytes."""
    files: tuple[str, ...] = ()
    """Files that go while the rest of the artefact stays; empty: all files."""
    partial: bool = False
    """True for unfinished work of the artefact."""


@dataclass(frozen=True)
class Cleaning:
    """Needs and removable items of an output root, by its records."""

    inventory: Inventory

    @classmethod
    def of(cls, root: OutputRoot) -> "Cleaning":
        """Read the records of a root; ConfigurationError where they do not say what runs need."""
        inventory = take_inventory(root)
        _require_own_store(inventory)
        for run in inventory.runs.values():
            if run.state == UNREADABLE or (run.state != DONE and "keys" not in run.record):
                raise ConfigurationError(
                    f"run {run.run_id}: its record does not list the artefacts that it needs; give its command again, "
                    f"or remove {root.run(run.run_id)}"
                )
        return cls(inventory)

    @cached_property
    def users(self) -> Counter[str]:
        """Number of runs whose records name a key: of their stages, and of what they start from or read by a path."""
        return Counter(key for run in self.inventory.runs.values() for key in set(_keys(run, self.inventory)))

    @cached_property
    def reserved(self) -> frozenset[str]:
        """Keys of reports, and of trainings that no record names with their inputs."""
        root = self.inventory.root.path
        lists = (path for name in REPORTS for path in root.glob(f"{name}/*/{MADE_OF}"))
        reported = {key for path in lists for key in KEY.findall(path.read_text(encoding="utf-8"))}
        return frozenset(reported | self._unnamed_trainings())

    def _unnamed_trainings(self) -> set[str]:
        """Trainings and their scores that no record names, and all that they were made of."""
        by_key = {key: (stage, key) for stage, key in self.inventory.artefacts}
        pending = [key for key, (stage, _) in by_key.items() if stage in MEASURING_STAGES and not self.users[key]]
        reached: set[str] = set()
        while pending:
            key = pending.pop()
            if key in by_key and key not in reached:
                reached.add(key)
                pending += (self.inventory.records[by_key[key]].get("inputs") or {}).values()
        return reached

    def unused(self) -> list[Removal]:
        """Items that no record needs."""
        keys = self.everything.keys() - self.users.keys() - self.reserved
        return [removal for key in sorted(keys) for removal in self.everything[key]]

    def of_runs(self, names: Collection[str]) -> list[Removal]:
        """Artefacts that these runs alone use; of finished ones, weights. One that lacks an artefact keeps all."""
        runs = [run for name in set(names) if (run := self.inventory.runs[name]).state != INCOMPLETE]
        keys_of_runs = [{key for _, key in run.artefacts} | set(run.record.get("keys", {}).values()) for run in runs]
        named = Counter(key for keys in keys_of_runs for key in keys)
        exclusive_keys = {key for key in named if named[key] == self.users[key]} - self.reserved
        finished = {key for run, keys in zip(runs, keys_of_runs, strict=True) if run.state == DONE for key in keys}
        items = [removal for key in sorted(exclusive_keys & self.everything.keys()) for removal in self.everything[key]]
        return [
            *(removal for removal in items if removal.place[1] not in finished),
            *self._weights(removal.place for removal in items if removal.place[1] in finished and not removal.partial),
        ]

    @cached_property
    def everything(self) -> Mapping[str, list[Removal]]:
        """Removable items by key: every artefact but vocabularies, and all unfinished work."""
        removals: defaultdict[str, list[Removal]] = defaultdict(list)
        for stage, key in self.inventory.artefacts:
            size = sum(self.inventory.files((stage, key)).values())
            if stage != "vocabulary" and self.inventory.records[stage, key]:  # what has no record is somebody else's
                removals[key].append(Removal(UNFINISHED if self.users[key] else UNUSED, (stage, key), size))
        for path in (self.inventory.root.store.root / "partial").glob("*-*"):
            stage, _, key = path.name.rpartition("-")
            kind = UNFINISHED if self.users[key] else ABANDONED
            files = (file for file in path.rglob("*") if file.is_file() and not file.is_symlink())
            size = sum(file.stat().st_size for file in files)
            removals[key].append(Removal(kind, (stage, key), size, partial=True))
        return removals

    def _weights(self, places: Iterator[Place]) -> Iterator[Removal]:
        for place in places:
            files = self.inventory.files(place)
            names = tuple(name for name in files if name.startswith(("step_", f"{STATE_DIRECTORY}/")))
            if place[0] == "training" and names:
                yield Removal(WEIGHTS, place, sum(files[name] for name in names), names)


def clean(root: OutputRoot, names: Collection[str]) -> list[Removal]:
    """Remove what the runs `names` alone use, or without names what nothing needs; return what was removed.

    ConfigurationError while a process works for no recorded run, or for one of `names`.
    """
    claims = root.path / "claims"
    claims.mkdir(parents=True, exist_ok=True)
    # Runs are claimed under this lock, so none begins while it is held.
    with exclusive(claims):
        cleaning = Cleaning.of(root)
        _require_known_work(cleaning, names)
        removals = cleaning.of_runs(names) if names else cleaning.unused()
        return [removal for removal in removals if _remove(root, removal)]


def _require_known_work(cleaning: Cleaning, names: Collection[str]) -> None:
    inventory = cleaning.inventory
    root = inventory.root
    for path in (root.path / "claims").glob("[!.]*"):
        if (path.name not in inventory.runs or path.name in names) and is_held(path, root.lease_seconds):
            raise ConfigurationError(f"run {path.name} is {RUNNING}; clean the root when it has ended")
    for path in (root.store.root / "claims").glob("[!.]*"):
        if not cleaning.users[path.name.rpartition("-")[2]] and is_held(path, root.lease_seconds):
            raise ConfigurationError(f"{path.name} is being made for no recorded run; clean the root when it is done")


def _remove(root: OutputRoot, removal: Removal) -> bool:
    """Remove it under its claim; False, and it stays, where a living process holds that."""
    held = root.store.claim(*removal.place)
    if held is None:
        return False
    with held:
        if removal.partial:
            shutil.rmtree(root.store.root / "partial" / "-".join(removal.place), ignore_errors=True)
        elif removal.files:
            root.store.prune(held, *removal.place, removal.files)
        else:
            root.store.remove(held, *removal.place)
    return True


def _keys(run: RunSummary, inventory: Inventory) -> Iterator[str]:
    """Keys in a record, and those of trainings of other runs that it names or has paths to."""
    config = run.record.get("config", {})
    values = re.findall(r'"([^"\\]*)"', canonical(config))
    paths = [Path(value).expanduser() if value.startswith("~/") else value for value in values]
    text = canonical([run.record, list(map(os.path.realpath, paths))])
    yield from KEY.findall(text)
    prefix = (config.get("start") or {}).get("run")
    started = {name for name in inventory.runs if prefix and name.startswith(prefix)}
    for name in {*RUN_ID.findall(text), *started} & inventory.runs.keys() - {run.run_id}:
        yield from (key for stage, key in inventory.runs[name].artefacts if stage == "training")


def _require_own_store(inventory: Inventory) -> None:
    """Raise ConfigurationError where other roots, whose runs are unknown here, may use the artefacts."""
    root, store = inventory.root.path, inventory.root.store.root
    link = next((path for path in (store, *sorted(store.glob("*"))) if path.is_symlink()), None)
    if link is not None:
        reason = f"{str(link)!r} is a link to {os.path.realpath(link)!r}"
    elif not (root / "runs").is_dir() and (inventory.artefacts or any(store.glob("partial/*"))):
        reason = f"{str(root)!r} has artefacts and no directory runs/"
    else:
        return
    raise ConfigurationError(f"root: {reason}, so other roots may use these artefacts; nothing was removed")


def examine(store: Store, say: Callable[[str], None]) -> int:
    """Hash every artefact and set damaged ones aside; 0 when nothing was wrong, else 1."""
    damaged = count = 0
    for stage, key in sorted(store.places()):
        count += 1
        if problem := store.damage(stage, key, hash_all=True):
            damaged += 1
            say(f"{stage} {key[:12]}: {_set_aside(store, stage, key, problem)}")
    say(f"artefacts checked: {count}, damaged: {damaged}")
    return 1 if damaged else 0


def _set_aside(store: Store, stage: str, key: str, problem: str) -> str:
    """Set an artefact aside under its claim, so that none is moved that a run has made again; return a message."""
    held = store.claim(stage, key)
    if held is None:
        return f"{problem}; a process is making it again"
    with held:
        store.memory(stage, key).forget()
        moved = store.set_aside(held, stage, key)
    return f"{moved}; the next run makes it again" if moved else f"{problem}; made again meanwhile"


def remove_leftovers(store: Store) -> int:
    """Remove leftovers of dead processes, and unfinished work of whole artefacts; resumable work stays."""
    removed = 0
    for partial in sorted((store.root / "partial").glob("*-*")):
        stage, key = partial.name.rsplit("-", 1)
        held = store.claim(stage, key)
        if held is None:
            continue
        with held:
            work = partial / "work"
            if store.find(stage, key) or not work.is_dir() or not any(work.iterdir()):
                shutil.rmtree(partial)
                removed += 1
            else:
                store.discard_output(stage, key)
    for path in _abandoned(store):
        path.unlink(missing_ok=True)
        removed += 1
    return removed


def _abandoned(store: Store) -> Iterator[Path]:
    """Yield files that a killed process was writing beside the artefacts, and memories of artefacts that are gone."""
    for path in [*(store.root / "verified").glob("*.json"), *(store.root / "pruned").glob("*.json")]:
        stage, key = path.stem.rsplit("-", 1)
        if not store.path(stage, key).is_dir():
            yield path
    for directory in ("claims", "verified", "pruned"):
        for path in (store.root / directory).glob(".*.*"):
            if time.time() - path.stat().st_mtime > SECONDS_OF_A_WRITE:
                yield path
