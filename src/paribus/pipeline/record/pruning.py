"""What of an output root can go without a number being lost, and what would have to be trained again.

By itself goes what nothing on record needs: artefacts of other code versions that no run names, those of this code that
no report is made of either, and the work of attempts that no recorded run would go on with. Optimizer states and
checkpoints of finished runs, from which runs of other roots may have started, and the work of unfinished ones, only
training brings back, and what failed runs made only the same command: they go where their runs are named. A training
whose run is not on record stays with all that it was made of, and so do vocabularies of this code.
"""

import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from paribus.errors import ConfigurationError
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.record.inventory import DONE, FAILED, REPORTS, Inventory
from paribus.pipeline.record.needs import Needs
from paribus.pipeline.record.records import MEASURING_STAGES
from paribus.pipeline.stages import STAGES, Place, place_of
from paribus.store.artifact import Store
from paribus.store.claim import Claim, is_held
from paribus.store.file_names import MADE_OF, RUN_RECORD
from paribus.training.state.file_names import STATE_DIRECTORY

Kind = Literal[
    "optimizer states",
    "checkpoints",
    "artefacts of other code",
    "artefacts of no run",
    "abandoned work",
    "unfinished work",
    "artefacts of failed runs",
    "trainings of failed runs",
]
TRAINED_AGAIN: Mapping[str, str] = {
    "optimizer states": "a run that resumes this training, from any root, needs it",
    "checkpoints": "new scores, an export or going on from them would take training again",
    "unfinished work": "the same command goes on with it",
    "artefacts of failed runs": "the same command would make them again",
    "trainings of failed runs": "the same command would train again",
}
"""Kinds that go where their runs are named alone, and why."""
Signature = tuple[Path, int, int]
"""A file, its inode and when it was written, in nanoseconds."""
ENDED = (FAILED, "interrupted")
"""States of runs that did not come to their end, and that no process has in hand."""


@dataclass(frozen=True)
class Prunable:
    """Something that can go."""

    kind: Kind
    place: Place
    size: int
    """Bytes."""
    files: tuple[str, ...] = ()
    """Those of an artefact of which the rest stays; none where all goes."""
    runs: frozenset[str] = frozenset()
    """The runs that it is of."""


@dataclass(frozen=True)
class Kept:
    """What would be of one of these kinds and is needed."""

    kind: Kind
    size: int
    why: str


def prunable(inventory: Inventory, needs: Needs) -> tuple[list[Prunable], list[Kept]]:
    """Everything that can go, whether somebody has to name it or not, and what cannot."""
    failed = _failed(inventory, needs)
    found = [
        *_of_trainings(inventory, needs, failed),
        *_of_failed(inventory, needs, failed),
        *_of_no_run(inventory, needs),
        *_of_attempts(inventory, needs),
    ]
    return [one for one in found if isinstance(one, Prunable)], [one for one in found if isinstance(one, Kept)]


def require_own_store(inventory: Inventory) -> None:
    """ConfigurationError where other roots may use the artefacts, of whose runs nothing is known here."""
    root, store = inventory.root.path, inventory.root.store.root
    link = next((path for path in (store, *sorted(store.glob("*"))) if path.is_symlink()), None)
    if link is not None:
        wrong = f"{str(link)!r} is a link to {os.path.realpath(link)!r}"
    elif not (root / "runs").is_dir() and (inventory.artefacts or any(store.glob("partial/*"))):
        wrong = f"{str(root)!r} has artefacts and no directory runs/"
    else:
        return
    raise ConfigurationError(f"root: {wrong}, so runs of other roots may need what is there; nothing is pruned")


def asked(found: Collection[Prunable], runs: Collection[str]) -> list[Prunable]:
    """Of all that can go what goes: of named runs what is of them alone, and of none what nobody needs."""
    if runs:
        return [one for one in found if one.runs and one.runs <= set(runs)]
    return [one for one in found if one.kind not in TRAINED_AGAIN]


def prune(root: OutputRoot, one: Prunable, known: Collection[Signature] = ()) -> bool:
    """Remove it under its claim; False, and it stays, where a living process has that, or it is another by now.

    A run of it that was begun again since is such a process, which reads what others were made from. What no run named
    stays where one does by now: of all records those are read that have not the `known` signatures.
    """
    store = root.store
    held = store.claim(*one.place)
    if held is None:
        return False
    with held:
        if any(is_held(root.run_claim(name), root.lease_seconds) for name in one.runs):
            return False
        if one.kind in ("abandoned work", "unfinished work"):
            shutil.rmtree(_partial(store, one.place))
        elif store.find(*one.place) is None or (one.kind == "artefacts of no run" and _is_anything_made(root, held)):
            return False
        elif not one.runs and any(_names(path, one.place) for path, *_ in signatures(root).difference(known)):
            # Looked at after the claims: a run that has let go of its own has written its record.
            return False
        elif one.files:
            store.prune(held, *one.place, one.files, readable=one.kind == "optimizer states")
        else:
            store.remove(held, *one.place)
    return True


def _failed(inventory: Inventory, needs: Needs) -> dict[Place, frozenset[str]]:
    """Artefacts that failed runs alone made or may need, with these runs."""
    found = {}
    for place, users in inventory.users.items():
        others = (needs.unfinished.get(place, ()), needs.unknown.get(place[0], ()), needs.refused)
        runs = users.union(*others)
        if place in inventory.artefacts and all(inventory.runs[name].state in ENDED for name in runs):
            found[place] = runs
    return found


def _of_failed(inventory: Inventory, needs: Needs, failed: Mapping[Place, frozenset[str]]) -> Iterator[Prunable | Kept]:
    for place, runs in failed.items():
        kind: Kind = "trainings of failed runs" if place[0] == "training" else "artefacts of failed runs"
        size = sum(inventory.files(place).values())
        why = needs.named.get(place) or needs.torn
        yield Kept(kind, size, why) if why else Prunable(kind, place, size, runs=runs)


def _of_trainings(
    inventory: Inventory, needs: Needs, failed: Mapping[Place, frozenset[str]]
) -> Iterator[Prunable | Kept]:
    """Optimizer states and checkpoints of trainings whose runs are all done, and so scored."""
    for place, users in inventory.users.items():
        if place[0] != "training" or place not in inventory.artefacts or place in failed:
            continue
        why = needs.reason(place)
        if any(inventory.runs[name].state != DONE for name in users):
            why = why or "a run of it is not done"
        files = inventory.files(place)
        parts: dict[Kind, list[str]] = {
            "optimizer states": [name for name in files if name.startswith(f"{STATE_DIRECTORY}/")],
            "checkpoints": [name for name in files if name.startswith("step_")],
        }
        for kind, names in parts.items():
            size = sum(files[name] for name in names)
            if names and why:
                yield Kept(kind, size, why)
            elif names:
                yield Prunable(kind, place, size, tuple(names), users)


def _of_no_run(inventory: Inventory, needs: Needs) -> Iterator[Prunable | Kept]:
    """Artefacts that no run names: those that this code would not make again, nor make anything of, and the others."""
    old: dict[Place, bool] = {}
    trained = _trained(inventory)
    for place in inventory.artefacts:
        if place in inventory.users or not inventory.records.get(place):
            continue
        is_old = _is_old(place, inventory, old)
        kind: Kind = "artefacts of other code" if is_old else "artefacts of no run"
        size = sum(inventory.files(place).values())
        why = needs.reason(place) or needs.unclear or (None if is_old else _reader(place, trained, inventory, needs))
        yield Kept(kind, size, why) if why else Prunable(kind, place, size)


def _trained(inventory: Inventory) -> set[Place]:
    """Trainings that no run names, their scores, and all that they were made of."""
    left = [place for place in inventory.artefacts if place[0] in MEASURING_STAGES and place not in inventory.users]
    found: set[Place] = set()
    while left:
        place = left.pop()
        if place not in found:
            found.add(place)
            left += _inputs(place, inventory)
    return found


def _inputs(place: Place, inventory: Inventory) -> list[Place]:
    inputs = inventory.records.get(place, {}).get("inputs") or {}
    return [place_of(str(name), str(key)) for name, key in inputs.items()]


def _reader(place: Place, trained: Collection[Place], inventory: Inventory, needs: Needs) -> str | None:
    """What is made of an artefact of this code, or may be, and who may read it."""
    if place[0] == "vocabulary":
        return "tokenizers are small, and read by their paths from anywhere"
    if place in trained:
        return "of a training whose run is not on record"
    if place in inventory.reports:
        report = inventory.reports[place].relative_to(inventory.root.path)
        return f"the report {report} is made of it, and lets it go with its directory"
    if inventory.unlisted_report:
        report = inventory.unlisted_report.relative_to(inventory.root.path)
        return f"the report {report} may be made of it, which has no {MADE_OF} that can be read; remove its directory"
    runs = needs.unknown.get(place[0])
    return f"run {min(runs)} is not done and may need it" if runs else None


def _is_anything_made(root: OutputRoot, own: Claim) -> bool:
    """Whether a living process has a run or another artefact in hand, of which nobody knows what it reads next."""
    claims = [*(root.path / "claims").glob("[!.]*"), *own.path.parent.glob("[!.]*")]
    return any(path != own.path and is_held(path, root.lease_seconds) for path in claims)


def signatures(root: OutputRoot) -> frozenset[Signature]:
    """Of each record of a run, and each list of what a report is made of: one that was written again has another."""
    records = [*root.path.glob(f"runs/*/{RUN_RECORD}")]
    records += [path for name in REPORTS for path in root.path.glob(f"{name}/*/{MADE_OF}")]
    found = set()
    for path in records:
        with suppress(FileNotFoundError):  # the directory of a report was removed a moment ago
            stat = path.stat()
            found.add((path, stat.st_ino, stat.st_mtime_ns))
    return frozenset(found)


def _names(record: Path, place: Place) -> bool:
    try:
        return json.dumps(place[1]).encode() in record.read_bytes()
    except OSError:  # nobody knows
        return True


def _is_old(place: Place, inventory: Inventory, known: dict[Place, bool]) -> bool:
    """Whether an artefact, or any that it was made of, is of another code version; not of one that cannot be read."""
    if place not in known:
        record = inventory.records.get(place, {})
        stage = STAGES.get(place[0])
        version = record.get("code_version")
        own = version is not None and (stage is None or version != stage.code_version)
        inputs = (other for other in _inputs(place, inventory) if other in inventory.artefacts)
        known[place] = own or any(_is_old(other, inventory, known) for other in inputs)
    return known[place]


def _of_attempts(inventory: Inventory, needs: Needs) -> Iterator[Prunable | Kept]:
    """What attempts left whose processes are gone: the claim tells when it goes."""
    store = inventory.root.store
    for path in sorted((store.root / "partial").glob("*-*")):
        stage, _, key = path.name.rpartition("-")
        place, size = (stage, key), _weigh(path)
        wanted = needs.unfinished.get(place)
        if store.find(stage, key):
            yield Prunable("abandoned work", place, size)
        elif wanted:
            yield Prunable("unfinished work", place, size, runs=frozenset(wanted))
        elif needs.unclear is not None:
            yield Kept("abandoned work", size, needs.unclear)
        elif stage not in needs.unknown:
            yield Prunable("abandoned work", place, size)


def _partial(store: Store, place: Place) -> Path:
    return store.root / "partial" / f"{place[0]}-{place[1]}"


def _weigh(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file() and not path.is_symlink())
