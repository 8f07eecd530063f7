"""What the artefacts of a run were made with: what must agree between compared runs, and what cannot change a number.

`found` holds the records of the artefacts that are still there, by stage.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from paribus.pipeline.stages import artefact_of
from paribus.store.packages import PATCH, PYTHON, deciding, minor


def environment(record: Mapping[str, Any], found: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """What must agree beside the configuration: code versions, packages, device and precision, the corpus."""
    entries = {f"code_version.{name}": str(version) for name, version in record["code_versions"].items()}
    for stage, artifact in found.items():
        versions, decisive = _versions(artifact), deciding(artefact_of(stage))
        entries |= {f"packages.{stage}.{name}": versions[name] for name in decisive if name in versions}
        if PYTHON in decisive:
            entries[f"packages.{stage}.{PYTHON}"] = minor(versions[PYTHON])
    training = found["training"]["result"] if "training" in found else {}
    entries |= {name: _listed(training[name]) for name in ("computed_on",) if name in training}
    if "corpus" in found:
        entries["digest.corpus"] = str(found["corpus"]["result"].get("digest", record["stages"]["corpus"]["key"]))
    return entries


def harmless_packages(found: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """By package, its versions in the stages that it decides nothing of; Python's patches in all."""
    stages: dict[str, dict[str, list[str]]] = {}
    for stage, artifact in found.items():
        decisive = deciding(artefact_of(stage))
        for name, version in _versions(artifact).items():
            shown = PATCH if name == PYTHON and name in decisive else name
            if shown not in decisive:
                told = version.removeprefix(minor(version)).lstrip(".") if shown == PATCH else version
                stages.setdefault(shown, {}).setdefault(told, []).append(stage)
    return {name: _by_version(versions) for name, versions in stages.items()}


def _by_version(stages: Mapping[str, Sequence[str]]) -> str:
    """One version alone; several with the stages they made."""
    if len(stages) == 1:
        return next(iter(stages))
    return "; ".join(f"{version} in {', '.join(names)}" for version, names in stages.items())


def _versions(artifact: Mapping[str, Any]) -> dict[str, str]:
    """Of each package all versions that had a part in an artefact, which several attempts may have made."""
    attempts = [*artifact.get("attempts", ()), made_with(artifact["provenance"])]
    names = dict.fromkeys(name for attempt in attempts for name in attempt)
    return {name: _listed([attempt[name] for attempt in attempts if name in attempt]) for name in names}


def made_with(provenance: Mapping[str, Any]) -> dict[str, str]:
    """Versions of packages and of Python, by name."""
    return {**provenance["packages"], PYTHON: provenance["python"]}


def _listed(values: Sequence[str]) -> str:
    return ", then ".join(dict.fromkeys(values))
