"""Verify the store: set aside what is damaged, and remove what dead processes left."""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from paribus.store.artifacts import NOT_STAGES, Store, hashed_damage
from paribus.store.claims import acquire

SECONDS_OF_A_WRITE = 3600.0
"""A file written aside that has not got its name after this long belongs to no living process."""


def examine(store: Store, say: Callable[[str], None]) -> int:
    """Hash every artefact and set damaged ones aside; 0 when nothing was wrong, else 1."""
    damaged = count = 0
    for path in sorted(path for path in store.root.glob("*/*") if path.is_dir() and path.parent.name not in NOT_STAGES):
        stage, key, count = path.parent.name, path.name, count + 1
        if problem := hashed_damage(path, store.memory(stage, key), store.pruned(stage, key)):
            damaged += 1
            say(f"{stage} {key[:12]}: {_set_aside(store, stage, key, problem)}")
    say(f"artefacts checked: {count}, damaged: {damaged}")
    return 1 if damaged else 0


def _set_aside(store: Store, stage: str, key: str, problem: str) -> str:
    """Under the claim, so that no artefact is moved that a run has made again meanwhile."""
    held = store.claim(stage, key)
    if held is None:
        return f"{problem}; a process is making it again"
    with held:
        store.memory(stage, key).forget()
        moved = store.set_aside(held, stage, key)
    return f"{moved}; the next run makes it again" if moved else f"{problem}; made again meanwhile"


def remove_leftovers(store: Store) -> int:
    """Remove unfinished work whose artefact exists, claims of dead processes and files that never got their name.

    Resumable work stays.
    """
    removed = 0
    for partial in sorted((store.root / "partial").glob("*-*")):
        stage, key = partial.name.rsplit("-", 1)
        held = acquire(store.claim_path(stage, key), store.lease_seconds)
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
    """What a killed process was writing beside the artefacts, and what is remembered of artefacts that are gone."""
    for path in [*(store.root / "verified").glob("*.json"), *(store.root / "pruned").glob("*.json")]:
        stage, key = path.stem.rsplit("-", 1)
        if not store.path(stage, key).is_dir():
            yield path
    for directory in ("claims", "verified", "pruned"):
        for path in (store.root / directory).glob(".*.*"):
            if time.time() - path.stat().st_mtime > SECONDS_OF_A_WRITE:
                yield path
