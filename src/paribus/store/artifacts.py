"""The store: one immutable directory an artefact, found by its key.

An artefact exists when its directory does, which appears by one rename, and its files are those that its record names.
Directories below `partial/` belong to the holder of the artefact's claim.
"""

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.errors import InfrastructureError
from paribus.store.claims import Claim, acquire, exclusive
from paribus.store.files import (
    SETTLED_NANOSECONDS,
    State,
    file_time_ns,
    open_to_umask,
    read_object_if_any,
    rename_directory,
    sha256,
    state_of,
    sync_tree,
    write_json,
)

NOT_STAGES = ("claims", "partial", "damaged", "verified", "pruned")
"""Directories beside those of the stages."""
RECORD = "record.json"
SEAL = "sha256"
"""Field with the SHA-256 of the canonical JSON of all others."""
SHOWN = 3


@dataclass(frozen=True)
class Artifact:
    """A published artefact."""

    stage: str
    key: str
    path: Path
    whole: bool = True
    """False where files were removed to free space: its record and numbers are there, and no stage reads it."""

    def record(self) -> dict[str, Any]:
        """Identity, inputs, file digests, provenance and result."""
        try:
            return read_record(self.path)
        except (OSError, ValueError) as error:
            raise InfrastructureError(f"{self.path}: {error}; `paribus clean --verify` sets it aside") from error


@dataclass(frozen=True)
class VerificationMemory:
    """Files of one artefact that were verified, kept in a JSON file that may be lost, torn or written concurrently."""

    path: Path

    def read(self) -> dict[str, Any]:
        """`files`, signatures of sound files by name, and `record`, the digest of the record they agree with."""
        try:
            content = json.loads(self.path.read_bytes())
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def now(self) -> int | None:
        """Time stamp of a file written now; None where nothing can be written, so that nothing is remembered."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return file_time_ns(self.path.parent)
        except OSError:
            return None

    def write(self, record: str, files: Mapping[str, State], began: int | None, removed: Collection[str] = ()) -> None:
        """Remember the sound `files` that had settled when reading them `began`; `removed` ones may be missing."""
        if began is None:
            return
        settled = {name: state for name, state in files.items() if began - max(state[1:3]) > SETTLED_NANOSECONDS}
        # On a full disk, or one that is read only, the artefact is as sound without being remembered. Nor is it worth
        # a flush: what a power cut tears is not believed.
        aside = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}")
        with suppress(OSError):
            aside.write_text(
                json.dumps({"record": record, "files": settled, "removed": sorted(removed)}), encoding="utf-8"
            )
            aside.replace(self.path)

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)


class Store:
    """Artefacts below `root`: `<stage>/<key>/`, claims and unfinished work beside them."""

    def __init__(self, root: Path, lease_seconds: float = 30.0) -> None:
        self.root, self.lease_seconds = root, lease_seconds

    def path(self, stage: str, key: str) -> Path:
        """Path of an artefact, which need not exist."""
        return self.root / stage / key

    def places(self) -> Iterator[tuple[str, str]]:
        """Stage and key of every artefact, sound or not."""
        for stage in self.root.iterdir() if self.root.is_dir() else ():
            if stage.name not in NOT_STAGES and stage.is_dir():
                yield from ((stage.name, path.name) for path in stage.iterdir() if path.is_dir())

    def find(self, stage: str, key: str) -> Artifact | None:
        """The artefact, or None when it does not exist or is damaged."""
        path = self.path(stage, key)
        if not path.is_dir() or self.damage(stage, key) is not None:
            return None
        whole = all((path / name).exists() for name in self.pruned(stage, key))
        return Artifact(stage, key, path, whole)

    def require(self, stage: str, key: str) -> Artifact:
        """The whole artefact, for a reader; InfrastructureError saying what is wrong with it."""
        artifact = self.find(stage, key)
        if artifact is None or not artifact.whole:
            problem = "lacks files that were removed" if artifact else self.damage(stage, key) or "is gone"
            raise InfrastructureError(f"{self.path(stage, key)}: {problem}; the same command makes it again")
        return artifact

    def damage(self, stage: str, key: str, *, hash_all: bool = False) -> str | None:
        """Damage of an artefact, None if it is sound or absent; files that are not remembered as sound are hashed.

        The absence of files that were removed on purpose is no damage.
        """
        path, memory, removed = self.path(stage, key), self.memory(stage, key), self.pruned(stage, key)
        if not path.is_dir():
            return None
        known = {} if hash_all else memory.read()
        try:
            states = signatures(path)
        except FileNotFoundError as error:
            return f"went away while it was looked at ({error.filename})"
        unchanged = known.get("files") == states and known.get("removed", []) == sorted(removed)
        return None if unchanged else _examine(path, states, known, memory, removed)

    def memory(self, stage: str, key: str) -> VerificationMemory:
        return VerificationMemory(self.root / "verified" / f"{stage}-{key}.json")

    def pruned_note(self, stage: str, key: str) -> Path:
        """Path of the list of files that were removed on purpose."""
        return self.root / "pruned" / f"{stage}-{key}.json"

    def pruned(self, stage: str, key: str) -> frozenset[str]:
        """Names of files that were removed on purpose; one that still exists is yet to be removed."""
        return frozenset(read_object_if_any(self.pruned_note(stage, key)).get("files", ()))

    def prune(self, held: Claim, stage: str, key: str, files: Iterable[str]) -> None:
        """Remove files of an artefact, which no stage reads from then on; a kill leaves it sound.

        ClaimLostError when the claim was taken over.
        """
        held.check()
        names, path, note = set(files), self.path(stage, key), self.pruned_note(stage, key)
        note.parent.mkdir(parents=True, exist_ok=True)
        # Before the files go, or a kill would leave damage.
        write_json(note, {"files": sorted(names | self.pruned(stage, key))})
        for name in names:
            (path / name).unlink(missing_ok=True)
        for directory in sorted((path for path in path.rglob("*") if path.is_dir()), reverse=True):
            if not any(directory.iterdir()):
                directory.rmdir()

    def remove(self, held: Claim, stage: str, key: str) -> None:
        """Remove an artefact; a kill leaves it whole or what `paribus clean` removes."""
        held.check()
        output = self.empty_output(held, stage, key)
        self._move_away(held, stage, key, output / "removed")
        shutil.rmtree(output.parent)

    def _move_away(self, held: Claim, stage: str, key: str, aside: Path) -> None:
        """Move an artefact out of its place, and forget what is remembered of it."""
        # Whoever takes a claim over holds this lock too, so it cannot be lost between the check and the rename.
        with exclusive(held.path.parent):
            held.check()
            self.path(stage, key).rename(aside)
        self.memory(stage, key).forget()
        self.pruned_note(stage, key).unlink(missing_ok=True)

    def set_aside(self, held: Claim, stage: str, key: str) -> str | None:
        """Move a damaged artefact out of the way of the one to be made; None, or what was wrong and where it is now.

        Nothing is deleted. ClaimLostError when the claim was taken over.
        """
        problem = self.damage(stage, key)
        if problem is None:
            return None
        aside = self.root / "damaged" / f"{stage}-{key}-{uuid.uuid4().hex[:8]}"
        aside.parent.mkdir(parents=True, exist_ok=True)
        self._move_away(held, stage, key, aside)
        return f"{problem}; moved to {aside}"

    def claim(self, stage: str, key: str) -> Claim | None:
        """The right to make the artefact, or None while a living process has it."""
        return acquire(self.claim_path(stage, key), self.lease_seconds)

    def claim_path(self, stage: str, key: str) -> Path:
        return self.root / "claims" / f"{stage}-{key}"

    def work(self, stage: str, key: str) -> Path:
        """Scratch directory of the artefact that survives kills; only the claim's holder may touch it."""
        path = self.root / "partial" / f"{stage}-{key}" / "work"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def empty_output(self, held: Claim, stage: str, key: str) -> Path:
        """An empty directory to fill, of this claim alone; leftovers of earlier attempts are removed.

        A process that lost the claim and does not know it yet goes on writing into a directory of its own.
        """
        self.discard_output(stage, key)
        path = self._output(held, stage, key)
        path.mkdir(parents=True)
        return path

    def discard_output(self, stage: str, key: str) -> None:
        """Remove the output of failed attempts; resumable work stays, with the notes on it."""
        partial = self.root / "partial" / f"{stage}-{key}"
        for output in partial.glob("output-*"):
            shutil.rmtree(output, ignore_errors=True)
        work = partial / "work"
        if not (work.is_dir() and any(work.iterdir())):
            self.discard_work(stage, key)
        if partial.is_dir() and not any(partial.iterdir()):
            partial.rmdir()

    def discard_work(self, stage: str, key: str) -> None:
        """Remove resumable work and the notes on it, so that no attempt resumes it."""
        for note in (self.reading(stage, key), self.attempts(stage, key)):
            note.unlink(missing_ok=True)
        shutil.rmtree(self.root / "partial" / f"{stage}-{key}" / "work", ignore_errors=True)

    def reading(self, stage: str, key: str) -> Path:
        """Path of the states of outside files when the work began."""
        return self.root / "partial" / f"{stage}-{key}" / "reading.json"

    def attempts(self, stage: str, key: str) -> Path:
        """Path of the record of the attempts behind the work."""
        return self.root / "partial" / f"{stage}-{key}" / "attempts.json"

    def publish(self, held: Claim, stage: str, key: str, record: dict[str, Any]) -> Artifact:
        """Make the filled output directory the artefact.

        ClaimLostError when the claim was taken over; InfrastructureError when something is there already.
        """
        output, target = self._output(held, stage, key), self.path(stage, key)
        memory = self.memory(stage, key)
        # An early check, as it is in vain to hash gigabytes for a lost claim; the one under the lock below decides.
        held.check()
        open_to_umask(output)
        # The states of files are taken before their digests: one written in between is not remembered as sound.
        began, hashed = memory.now(), signatures(output)
        write_record(output, record | {"stage": stage, "key": key, "files": file_digests(output)})
        # Before the rename, or a power cut could leave a published directory of files that never reached the disk; and
        # outside the lock, which all claims share, since gigabytes take minutes.
        sync_tree(output)
        published = self.find(stage, key)
        if published is not None and not published.whole:
            self._move_away(held, stage, key, output.parent / f"{output.name}-replaced")
        with exclusive(held.path.parent):
            held.check()
            if not rename_directory(output, target):
                raise InfrastructureError(f"{target} is there already; nothing was published")
        # Who lost the claim may be writing there still; what stays is for `paribus clean`.
        shutil.rmtree(output.parent, ignore_errors=True)
        unchanged = {name: state for name, state in signatures(target).items() if hashed.get(name) == state}
        memory.write(sha256(target / RECORD), unchanged, began)
        return Artifact(stage, key, target)

    def _output(self, held: Claim, stage: str, key: str) -> Path:
        return self.root / "partial" / f"{stage}-{key}" / f"output-{held.token}"


def file_digests(directory: Path) -> dict[str, dict[str, Any]]:
    """Relative path -> {bytes, sha256} of every file below `directory` except the artefact's own record."""
    paths = sorted(path for path in directory.rglob("*") if path.is_file() and path != directory / RECORD)
    return {
        path.relative_to(directory).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in paths
    }


def write_record(directory: Path, record: Mapping[str, Any]) -> None:
    """Write and seal the record of the files in `directory`; `record` is JSON-compatible."""
    content = json.loads(json.dumps(dict(record), allow_nan=False))
    write_json(directory / RECORD, content | {SEAL: _seal(content)})


def read_record(directory: Path) -> dict[str, Any]:
    """The record of the artefact in `directory`; ValueError saying what is wrong with it."""
    path = directory / RECORD
    if not path.is_file():
        raise ValueError(f"has no {RECORD}")
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{RECORD} is torn ({error})") from error
    if not isinstance(content, dict) or content.pop(SEAL, None) != _seal(content):
        raise ValueError(f"{RECORD} does not have the digest of its own contents: damaged, or of another version")
    return content


def _seal(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def signatures(directory: Path | str, prefix: str = "") -> dict[str, State]:
    """Relative path, after `prefix`, -> signature of everything below `directory` that is no directory."""
    states: dict[str, State] = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                states |= signatures(entry.path, f"{prefix}{entry.name}/")
                continue
            try:
                status = entry.stat()
            except FileNotFoundError:  # a link to nothing
                status = entry.stat(follow_symlinks=False)
            states[prefix + entry.name] = state_of(status)
    return states


def _examine(
    directory: Path,
    states: Mapping[str, State],
    known: Mapping[str, Any],
    memory: VerificationMemory,
    removed: Collection[str],
) -> str | None:
    """Damage of an artefact by its record; hashes files that are not remembered as sound, and remembers a sound one."""
    began = memory.now()
    try:
        record = read_record(directory)
    except (OSError, ValueError) as error:
        return str(error)
    if [record.get("stage"), record.get("key")] != [directory.parent.name, directory.name]:
        return f"{RECORD} is that of {record.get('stage')} {record.get('key')}"
    files, sealed = record["files"], sha256(directory / RECORD)
    remembered = known.get("files") if known.get("record") == sealed else None
    trusted = remembered if isinstance(remembered, dict) else {}
    changed = sorted(name for name, state in states.items() if name in files and trusted.get(name) != state)
    problems = [f"{name} is missing" for name in sorted(files.keys() - states.keys() - set(removed))]
    problems += [f"{name} is not of it" for name in sorted(states.keys() - files.keys() - {RECORD})]
    for name in changed:
        if states[name][0] != files[name]["bytes"]:
            problems.append(f"{name} has {states[name][0]} bytes, not {files[name]['bytes']}")
        elif problem := _file_problem(directory / name, files[name]["sha256"]):
            problems.append(f"{name} {problem}")
    if problems:
        more = f"; {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        return "; ".join(problems[:SHOWN]) + more
    memory.write(sealed, states, began, removed)
    return None


def _file_problem(path: Path, expected: str) -> str | None:
    if not path.is_file():
        return "is no regular file"
    try:
        return None if sha256(path) == expected else "differs from its digest"
    except PermissionError as error:
        raise InfrastructureError(f"{path}: may not be read by this user, so it cannot be verified") from error
    except OSError as error:
        return f"cannot be read ({error.strerror})"
