"""What a recorded run was made with, beside what there is here: commit, uncommitted changes, packages, Python."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.stages import EVALUATION, FINETUNING, place_of
from paribus.store.packages import HARMLESS

SHORT_COMMIT = 12
RESULTS = (FINETUNING, EVALUATION, "training")


def recorded_provenance(record: Mapping[str, Any], root: OutputRoot) -> dict[str, Any] | None:
    """Provenance of the artefact with a run's results, else of another of its artefacts; None where all are gone."""
    stages = record["stages"]
    names = sorted(stages, key=lambda name: RESULTS.index(name) if name in RESULTS else len(RESULTS))
    found = [root.store.find(*place_of(name, stages[name]["key"])) for name in names]
    last = next((artifact for artifact in found if artifact is not None), None)
    return None if last is None else dict(last.record()["provenance"])


def environment_changes(recorded: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """A line for everything of two provenances that may change a number; none where they agree."""
    return [*_code_changes(recorded, here), *_version_changes(recorded, here), *_arithmetic_changes(recorded, here)]


def _code_changes(recorded: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    before, now = recorded["git"] or {}, here["git"] or {}
    if before.get("commit") != now.get("commit"):
        yield f"commit {_commit(before)}, here {_commit(now)}"
    if _changes(before) != _changes(now):
        yield f"uncommitted changes in {_changed_files(before)}, here in {_changed_files(now)}"
    if recorded["paribus"] != here["paribus"]:
        yield f"paribus {recorded['paribus']}, here {here['paribus']}"


def _version_changes(recorded: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted((recorded["packages"].keys() | here["packages"].keys()) - HARMLESS.keys()):
        before, now = recorded["packages"].get(name), here["packages"].get(name)
        if before != now:
            yield f"{name} {before or 'absent'}, here {now or 'absent'}"
    if recorded["python"] != here["python"]:
        yield f"Python {recorded['python']}, here {here['python']}"
    if recorded["gpu"] != here["gpu"]:
        yield f"GPU {', '.join(recorded['gpu']) or 'none'}, here {', '.join(here['gpu']) or 'none'}"


def _arithmetic_changes(recorded: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    if recorded.get("cpu") != here["cpu"]:
        yield f"CPU {recorded.get('cpu', 'unknown')}, here {here['cpu']}"
    if recorded.get("blas") != here["blas"]:
        yield f"BLAS with kernels of {', '.join(recorded.get('blas', ['unknown']))}, here {', '.join(here['blas'])}"
    before, now = recorded.get("variables", {}), here["variables"]
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            yield f"variable {name} {before.get(name, 'not set')}, here {now.get(name, 'not set')}"


def _commit(git: Mapping[str, Any]) -> str:
    return str(git["commit"])[:SHORT_COMMIT] if git else "unknown (no checkout)"


def _changes(git: Mapping[str, Any]) -> str:
    """Digest of the uncommitted changes; empty for none."""
    diff = str(git.get("diff", ""))
    return str(git.get("changes") or (hashlib.sha256(diff.encode()).hexdigest() if diff else ""))


def _changed_files(git: Mapping[str, Any]) -> str:
    if "changes" in git:
        return f"the sources of an image (SHA-256 {git['changes'][:16]})"
    lines = [line for line in git.get("diff", "").splitlines() if line.startswith("diff --git ")]
    names = [line.rpartition(" b/")[2] for line in lines]
    return ", ".join(names) or "nothing"
