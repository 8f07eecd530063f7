"""The record of a run, `run.json`, as everybody but its `Recorder` reads it."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from paribus.config.identity import canonical, identity
from paribus.config.schema import RunConfig
from paribus.store.files import RUN_RECORD

UNREADABLE = "unreadable"


def read_run_record(directory: Path) -> dict[str, Any] | None:
    """The record of a run, or None when it never began; of one that cannot be read, the reason as its failure."""
    path = directory / RUN_RECORD
    if not path.is_file():
        return None
    try:
        loaded: dict[str, Any] = json.loads(path.read_bytes())
        _check(loaded)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        message = f"{path} is of another version of paribus, or damaged: {what}; the same `paribus run` writes it again"
        failure = {"class": "infrastructure", "message": message}
        return {"status": UNREADABLE, "failure": failure, "stages": {}, "code_versions": {}}
    return loaded


def files_of(record: Mapping[str, Any], config: RunConfig) -> Mapping[str, Any]:
    """Fingerprints by group of the files that a recorded run read; none of groups that are otherwise in `config`."""
    recorded, here = record.get("identity", {}), identity(config)
    files: Mapping[str, Any] = recorded.get("fingerprints", {})
    return {group: files[group] for group in files if canonical(recorded.get(group)) == canonical(here.get(group))}


def files_of_groups(records: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], list[Any]]:
    """The different fingerprints that runs have of each group and what it was, in canonical JSON."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for record in records:
        recorded = record.get("identity", {})
        for group, files in recorded.get("fingerprints", {}).items():
            found.setdefault((group, canonical(recorded.get(group))), {})[canonical(files)] = files
    return {place: list(different.values()) for place, different in found.items()}


def _check(record: dict[str, Any]) -> None:
    """KeyError, TypeError or AttributeError for a record without what its readers take for granted."""
    for name in ("run_id", "status", "identity", "started"):
        record[name]
    for block in ("config", "stages", "code_versions"):
        record[block].items()
    keys = [stage["key"] for stage in record["stages"].values()]
    if record["failure"] is not None:
        keys += [record["failure"]["class"], record["failure"]["message"]]
    if not all(isinstance(key, str) for key in keys):
        raise TypeError(f"{keys} are not all texts")


def moved_config(config: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """A recorded configuration, its output root where that is now; a run that it starts from is there or in its own."""
    start = config["start"]
    moved = {"root": str(root)} if start.get("root") == config["root"] else {}
    return {**config, "root": str(root), "start": start | moved}
