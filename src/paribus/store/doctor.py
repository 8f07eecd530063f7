"""Verify the store: what is damaged is set aside, what dead processes left is removed."""

import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from paribus.store.artifact import RECORD, Artifact, Store, file_digests
from paribus.store.claim import acquire

NOT_STAGES = ("claims", "partial", "damaged")


def examine(store: Store, say: Callable[[str], None]) -> int:
    """Check every artefact against its record and clean up; 0 when nothing was wrong, else 1."""
    damaged = 0
    count = 0
    for artifact in artifacts(store):
        count += 1
        problem = verify(artifact)
        if problem:
            damaged += 1
            aside = set_aside(store, artifact)
            say(f"{artifact.stage} {artifact.key[:12]}: {problem}; moved to {aside}, the next run makes it again")
    removed = remove_leftovers(store)
    say(f"{count} artefacts checked, {damaged} damaged, {removed} unfinished leftovers of dead processes removed")
    return 1 if damaged else 0


def artifacts(store: Store) -> Iterator[Artifact]:
    """Every directory that should be an artefact, with or without its record."""
    stages = sorted(path for path in store.root.glob("*") if path.is_dir() and path.name not in NOT_STAGES)
    for stage in stages:
        for path in sorted(path for path in stage.iterdir() if path.is_dir()):
            yield Artifact(stage.name, path.name, path)


def verify(artifact: Artifact) -> str | None:
    """What is wrong with an artefact, or None."""
    if not (artifact.path / RECORD).is_file():
        return f"has no {RECORD}"
    try:
        recorded = artifact.record()["files"]
    except (ValueError, KeyError) as error:
        return f"{RECORD} is unreadable ({error})"
    found = file_digests(artifact.path)
    changed = sorted(name for name in recorded.keys() | found.keys() if recorded.get(name) != found.get(name))
    return f"differs from its record in {', '.join(changed[:5])}" if changed else None


def set_aside(store: Store, artifact: Artifact) -> Path:
    """Move a damaged artefact out of the store; nothing is deleted."""
    aside = store.root / "damaged" / f"{artifact.stage}-{artifact.key}-{uuid.uuid4().hex[:8]}"
    aside.parent.mkdir(parents=True, exist_ok=True)
    artifact.path.rename(aside)
    return aside


def remove_leftovers(store: Store) -> int:
    """Remove unfinished work whose artefact exists and claims of dead processes; resumable work stays."""
    removed = 0
    for partial in sorted((store.root / "partial").glob("*")):
        stage, key = partial.name.rsplit("-", 1)
        held = acquire(store.claim_path(stage, key), store.lease_seconds)
        if held is None:
            continue
        with held:
            work = partial / "work"
            if store.find(stage, key) or not work.is_dir() or not any(work.iterdir()):
                shutil.rmtree(partial)
                removed += 1
            elif (partial / "output").is_dir():
                shutil.rmtree(partial / "output")
    return removed
