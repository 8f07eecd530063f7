"""Whether the files of an artefact are those that were published, asked whenever it is used.

Hashing them at each use would read the whole store. So what was found sound is remembered, beside the store, by size,
times and inode of each file, and only files in which one of these has changed are hashed again. What no write changed
but the disk itself is therefore found by `paribus clean --verify` alone, which hashes everything.
"""

import json
import os
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.errors import InfrastructureError
from paribus.store.clock import file_time_ns
from paribus.store.digest import SETTLED_NANOSECONDS, State, sha256, state_of
from paribus.store.record import RECORD, read_record

SHOWN = 3


@dataclass(frozen=True)
class VerificationMemory:
    """What is remembered of one artefact, in a file that may be lost, torn or written by several processes at once."""

    path: Path

    def read(self) -> dict[str, Any]:
        """`files`, signatures of sound files by name, and `record`, the digest of the record they agree with."""
        try:
            content = json.loads(self.path.read_bytes())
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def now(self) -> int | None:
        """The time that files are stamped with; None where nothing can be written and so nothing remembered."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return file_time_ns(self.path.parent)
        except OSError:
            return None

    def write(self, record: str, files: Mapping[str, State], began: int | None, removed: Collection[str] = ()) -> None:
        """Remember those of the sound `files` that were settled when reading them `began`, where `removed` may lack."""
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
        """Remember nothing."""
        self.path.unlink(missing_ok=True)


def damage(directory: Path, memory: VerificationMemory, removed: Collection[str] = ()) -> str | None:
    """What is wrong with the artefact in `directory`, or None; hashes what is not remembered and remembers it.

    That it lacks `removed` files is no damage.
    """
    known = memory.read()
    try:
        found = signatures(directory)
    except FileNotFoundError as error:
        return f"went away while it was looked at ({error.filename})"
    same = known.get("files") == found and known.get("removed", []) == sorted(removed)
    return None if same else _examined(directory, found, known, memory, removed)


def hashed_damage(directory: Path, memory: VerificationMemory, removed: Collection[str] = ()) -> str | None:
    """As `damage`, but every file is hashed."""
    return _examined(directory, signatures(directory), {}, memory, removed)


def remember(directory: Path, memory: VerificationMemory, hashed: Mapping[str, State], began: int | None) -> None:
    """Remember the files of a published artefact that are as they were when they were `hashed`, from `began` on."""
    same = {name: state for name, state in signatures(directory).items() if hashed.get(name) == state}
    memory.write(sha256(directory / RECORD), same, began)


def signatures(directory: Path) -> dict[str, State]:
    """Relative path -> signature of everything below `directory` that is no directory."""
    return dict(_signatures(directory, ""))


def _signatures(directory: Path | str, prefix: str) -> Iterator[tuple[str, State]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _signatures(entry.path, f"{prefix}{entry.name}/")
                continue
            yield f"{prefix}{entry.name}", _signature(entry)


def _signature(entry: os.DirEntry[str]) -> State:
    try:
        status = entry.stat()
    except FileNotFoundError:  # a link to nothing
        status = entry.stat(follow_symlinks=False)
    return state_of(status)


def _examined(
    directory: Path,
    found: Mapping[str, State],
    known: Mapping[str, Any],
    memory: VerificationMemory,
    removed: Collection[str],
) -> str | None:
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
    changed = [name for name, state in found.items() if name in files and trusted.get(name) != state]
    problems = [*_by_name(files, found, removed), *_by_content(directory, files, found, changed)]
    if problems:
        more = f"; {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        return "; ".join(problems[:SHOWN]) + more
    memory.write(sealed, found, began, removed)
    return None


def _by_name(files: Mapping[str, Any], found: Mapping[str, State], removed: Collection[str]) -> Iterator[str]:
    yield from (f"{name} is missing" for name in sorted(files.keys() - found.keys() - set(removed)))
    yield from (f"{name} is not of it" for name in sorted(found.keys() - files.keys() - {RECORD}))


def _by_content(
    directory: Path, files: Mapping[str, Any], found: Mapping[str, State], names: list[str]
) -> Iterator[str]:
    for name in sorted(names):
        size, expected = found[name][0], files[name]["bytes"]
        if size != expected:
            yield f"{name} has {size} bytes, not {expected}"
        elif problem := _differing(directory / name, files[name]["sha256"]):
            yield f"{name} {problem}"


def _differing(path: Path, expected: str) -> str | None:
    if not path.is_file():
        return "is no regular file"
    try:
        return None if sha256(path) == expected else "differs from its digest"
    except PermissionError as error:
        raise InfrastructureError(f"{path}: may not be read by this user, so it cannot be verified") from error
    except OSError as error:
        return f"cannot be read ({error.strerror})"
