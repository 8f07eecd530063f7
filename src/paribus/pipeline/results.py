"""Results of recorded runs as reports take them, and what they were made with."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.config.groups.tokenization import draws_of
from paribus.config.schema import RunConfig
from paribus.errors import NumericalError, ParibusError
from paribus.pipeline.graph import EVALUATION, FINETUNING, Node, artefact_of, away, place_of
from paribus.pipeline.prepared import PreparedRun, factor_labels, run_identity
from paribus.pipeline.recorder import STOPPED, read_state
from paribus.pipeline.records import read_run_record
from paribus.pipeline.root import OutputRoot
from paribus.store import files
from paribus.store.artifacts import Store
from paribus.store.files import RUN_RECORD, read_object_if_any
from paribus.store.packages import HARMLESS, PATCH, PYTHON, deciding, minor

if TYPE_CHECKING:
    from paribus.reporting.figures_data import OverlapMatrix
    from paribus.reporting.runs import FinishedRun, MissingRun
    from paribus.tokenization.statistics import Counts, Spellings


MEASURING_STAGES = (FINETUNING, EVALUATION, "training")
_MADE_AGAIN = "the same `paribus run` makes it again"
SHORT_COMMIT = 12
_COUNTED = 100_000_000
"""Tokens of an encoded corpus that are counted, from its beginning."""


def collect(
    runs: Sequence[PreparedRun], factors: Sequence[str], root: OutputRoot
) -> tuple[list["FinishedRun"], list["MissingRun"]]:
    """Records of the finished runs, and the runs that are not finished with the reason."""
    from paribus.reporting.runs import MissingRun

    records: list[FinishedRun] = []
    missing: list[MissingRun] = []
    finished: list[Mapping[str, Any]] | None = None
    for run in runs:
        labels, directory = factor_labels(run, factors), root.run(run.run_id)
        try:
            record = read_run_record(directory)
            if record is not None and record["status"] == "done":
                records.append(_run_record(record, run, labels, directory, root))
                continue
            reason = _unfinished(record, run, root) if record else away(run.nodes) or "not started"
        except (ValueError, KeyError, TypeError, AttributeError, ParibusError) as error:
            what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            damaged = f"{directory / RUN_RECORD} or a record it names is of another version of paribus, or damaged"
            record, reason = {}, f"{damaged}: {what}"
        if record is None:
            if finished is None:
                stored = map(read_run_record, sorted((root.path / "runs").glob("*")))
                finished = [other for other in stored if other is not None and other["status"] == "done"]
            reason = _by_another_version(run, finished) or reason
        diverged = ((record or {}).get("failure") or {}).get("class") == NumericalError.failure_class
        missing.append(MissingRun(labels, f"seed {run.job.config.seed}: {reason}", diverged, len(records)))
    return records, missing


def _unfinished(record: Mapping[str, Any], run: PreparedRun, root: OutputRoot) -> str:
    failure, state = record["failure"], read_state(root, run)
    if state.failure and state.shown == "failed":
        return f"failed: {state.failure.message}"
    if state.status == STOPPED:
        return f"{state.shown}; paribus run without until makes the rest"
    if failure:
        return f"{record['status']}: {failure['message']}"
    if record["status"] == "running":
        done = f"{len(record['stages'])} of {len(record['code_versions'])} stages done"
        started = datetime.fromtimestamp(float(record["started"]), UTC)
        return f"still running: started {started:%Y-%m-%d %H:%M} UTC, {done}"
    return str(record["status"])


def _by_another_version(run: PreparedRun, finished: Sequence[Mapping[str, Any]]) -> str | None:
    """Name the finished run that has this configuration, made by stages of other versions."""
    identity = run_identity(run.job.config, run.nodes)
    versions = {name: node.stage.code_version for name, node in run.nodes.items()}
    for record in finished:
        if record["identity"] == identity and record["code_versions"] != versions:
            stages = [name for name in versions if record["code_versions"].get(name) != versions[name]]
            differing = ", ".join(
                f"{name} {record['code_versions'].get(name)}, now {versions[name]}" for name in stages
            )
            return f"run {record['run_id']} is of another version ({differing}); {_MADE_AGAIN}"
    return None


def _run_record(
    record: Mapping[str, Any], run: PreparedRun, labels: Mapping[str, str], directory: Path, root: OutputRoot
) -> "FinishedRun":
    from paribus.ordering.ordered_text import READINGS
    from paribus.reporting.runs import FinishedRun

    artifacts = {name: root.store.find(*place_of(name, stage["key"])) for name, stage in record["stages"].items()}
    records = {name: artifact.record() for name, artifact in artifacts.items() if artifact is not None}
    results = {name: artifact["result"] for name, artifact in records.items()}
    training = results.get("training", {})
    paths = {name: artifact.path for name, artifact in artifacts.items() if artifact is not None}
    readings = paths["training"] / READINGS if "training" in paths else None
    return FinishedRun(
        run_id=record["run_id"],
        config=_compared(record, run),
        factors=labels,
        environment=environment(record, records),
        harmless=harmless_packages(records),
        training=training,
        corpus=results.get("corpus", {}),
        scores=paths.get(EVALUATION),
        finetuned=paths.get(FINETUNING),
        directory=directory,
        vocabulary=paths.get("vocabulary"),
        vocabulary_size=results.get("vocabulary", {}).get("vocab_size"),
        tokens=paths.get("tokens"),
        readings=readings if readings and readings.exists() else None,
        find_steps=partial(_steps_read, run.job.config, paths["contexts"], training) if "contexts" in paths else None,
        commit=(records.get("training", {}).get("provenance", {}).get("git") or {}).get("commit"),
        ended=record.get("ended"),
        gone=tuple(_gone(record, artifacts, root)),
    )


def _compared(record: Mapping[str, Any], run: PreparedRun) -> dict[str, Any]:
    """The recorded configuration; groups and seeds that decide nothing of the run are those of this command."""
    decisive = {name for node in run.nodes.values() for name in node.identity["identity"]} - {"seeds"}
    composed = run_identity(run.job.config, run.nodes)
    recorded = {name: value for name, value in record["identity"].items() if name in {*decisive, "fingerprints"}}
    return {name: value for name, value in composed.items() if name not in decisive} | recorded


def _steps_read(config: RunConfig, contexts: Path, training: Mapping[str, Any]) -> Any:
    """Return `FinishedRun.find_steps` of a training over the artefact `contexts`."""
    from paribus.ordering.contexts import read_contexts
    from paribus.ordering.shuffle import first_steps, traverse

    measured, seed, draws = read_contexts(contexts), config.seed_of("contexts"), draws_of(config.encoder)
    read = traverse(config.packing, measured, seed, context_bytes=config.model.context_bytes, draws=draws)
    return first_steps(read, measured, training["global_batch"], training["steps"])


def _gone(record: Mapping[str, Any], artifacts: Mapping[str, Any], root: OutputRoot) -> Iterator[str]:
    """Yield what is wrong with artefacts that the record names: gone ones of measuring stages, damaged ones of any."""
    for name in (name for name, artifact in artifacts.items() if artifact is None):
        place = place_of(name, record["stages"][name]["key"])
        path, damage = root.store.path(*place), root.store.damage(*place)
        if damage:
            yield f"damaged: {path}: {damage}; {_MADE_AGAIN}"
        elif name in MEASURING_STAGES:
            yield f"its {name} is gone ({path}); {_MADE_AGAIN}"


# What the artefacts of a run were made with: what must agree between compared runs, and what cannot change a number.
# `records` are the records of the artefacts that are still there, by stage.
def environment(record: Mapping[str, Any], records: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Values that must agree besides the configuration: code versions, packages, device and precision, the corpus."""
    entries = {f"code_version.{name}": str(version) for name, version in record["code_versions"].items()}
    for stage, artifact in records.items():
        versions, decisive = _versions(artifact), deciding(artefact_of(stage))
        entries |= {f"packages.{stage}.{name}": versions[name] for name in decisive if name in versions}
        if PYTHON in decisive:
            entries[f"packages.{stage}.{PYTHON}"] = minor(versions[PYTHON])
    training = records["training"]["result"] if "training" in records else {}
    if "computed_on" in training:
        entries["computed_on"] = _listed(training["computed_on"])
    if "corpus" in records:
        entries["digest.corpus"] = str(records["corpus"]["result"].get("digest", record["stages"]["corpus"]["key"]))
    return entries


def harmless_packages(records: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Versions by package, in the stages that it decides nothing of; Python's patches in all."""
    stages: dict[str, dict[str, list[str]]] = {}
    for stage, artifact in records.items():
        decisive = deciding(artefact_of(stage))
        for name, version in _versions(artifact).items():
            shown = PATCH if name == PYTHON and name in decisive else name
            if shown not in decisive:
                text = version.removeprefix(minor(version)).lstrip(".") if shown == PATCH else version
                stages.setdefault(shown, {}).setdefault(text, []).append(stage)
    # One version alone; several with the stages that they made.
    return {
        package: "; ".join(f"{each} in {', '.join(names)}" for each, names in versions.items())
        if len(versions) > 1
        else next(iter(versions))
        for package, versions in stages.items()
    }


def _versions(artifact: Mapping[str, Any]) -> dict[str, str]:
    """All versions of each package that had a part in an artefact, which several attempts may have made."""
    attempts = [*artifact.get("attempts", ()), made_with(artifact["provenance"])]
    names = dict.fromkeys(name for attempt in attempts for name in attempt)
    return {name: _listed([attempt[name] for attempt in attempts if name in attempt]) for name in names}


def made_with(provenance: Mapping[str, Any]) -> dict[str, str]:
    """Versions of packages and of Python, by name."""
    return {**provenance["packages"], PYTHON: provenance["python"]}


def note_attempt(node: Node, store: Store, provenance: Mapping[str, Any]) -> list[dict[str, str]]:
    """Note the packages of the attempt that begins; return other ones of the attempts whose work it continues.

    Only the holder of the artefact's claim may call it.
    """
    path, here = store.attempts(*node.place), made_with(provenance)
    resumes = any(store.work(*node.place).iterdir())
    before = read_object_if_any(path).get("attempts", []) if resumes else []
    files.write_json(path, {"attempts": [*before, *([] if here in before else [here])]})
    return [attempt for attempt in before if attempt != here]


def _listed(values: Sequence[str]) -> str:
    return ", then ".join(dict.fromkeys(values))


def recorded_provenance(record: Mapping[str, Any], root: OutputRoot) -> dict[str, Any] | None:
    """Provenance of the artefact with a run's results, else of another of its artefacts; None where all are gone."""
    stages = record["stages"]
    for name in dict.fromkeys((*(name for name in MEASURING_STAGES if name in stages), *stages)):
        if artifact := root.store.find(*place_of(name, stages[name]["key"])):
            return dict(artifact.record()["provenance"])
    return None


def environment_changes(recorded: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for everything of two provenances that may change a number; none where they agree."""
    before, now = recorded["git"] or {}, here["git"] or {}
    if before.get("commit") != now.get("commit"):
        yield f"commit {_commit(before)}, here {_commit(now)}"
    if _changes(before) != _changes(now):
        yield f"uncommitted changes in {_changed_files(before)}, here in {_changed_files(now)}"
    packages = sorted((recorded["packages"].keys() | here["packages"].keys()) - HARMLESS.keys())
    old, new = recorded.get("variables", {}), here["variables"]
    values = [
        ("paribus", recorded["paribus"], here["paribus"]),
        *((name, recorded["packages"].get(name, "absent"), here["packages"].get(name, "absent")) for name in packages),
        ("Python", recorded["python"], here["python"]),
        ("GPU", ", ".join(recorded["gpu"]) or "none", ", ".join(here["gpu"]) or "none"),
        ("CPU", recorded.get("cpu", "unknown"), here["cpu"]),
        ("BLAS with kernels of", ", ".join(recorded.get("blas", ["unknown"])), ", ".join(here["blas"])),
        *((f"variable {name}", old.get(name, "not set"), new.get(name, "not set")) for name in sorted({**old, **new})),
    ]
    yield from (f"{name} {before}, here {now}" for name, before, now in values if before != now)


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


def compare_vocabularies(
    records: Sequence["FinishedRun"], shown: Mapping[str, str] | None = None
) -> "OverlapMatrix | None":
    """The overlap of the different vocabularies of these runs, labels as `shown`; None where there are not two."""
    from paribus.tokenization import Tokenizer
    from paribus.tokenization.encoded_corpus import EncodedCorpus
    from paribus.tokenization.statistics import count_ids, spellings

    users: dict[Path, list[FinishedRun]] = {}
    for record in records:
        if record.vocabulary is not None:
            users.setdefault(record.vocabulary, []).append(record)
    if len(users) < 2:
        return None
    groups = list(users.values())
    tokenizers = [Tokenizer.load(path / "tokenizer") for path in users]
    counts = [
        count_ids(EncodedCorpus(group[0].tokens), tokenizer.vocab_size, _COUNTED) if group[0].tokens else None
        for group, tokenizer in zip(groups, tokenizers, strict=True)
    ]
    spelled = [spellings(tokenizer) for tokenizer in tokenizers]
    own = {record.run_id: alone for group, alone in zip(groups, _alone(spelled), strict=True) for record in group}
    return replace(overlap_matrix(_names(groups, {}), spelled, counts), own=own, shown=_names(groups, shown or {}))


def overlap_matrix(
    names: Sequence[str], spelled: Sequence["Spellings"], counts: Sequence["Counts | None"]
) -> "OverlapMatrix":
    """The overlap of vocabularies by name, with how often each of their tokens occurs where that was counted."""
    from paribus.reporting.figures_data import OverlapMatrix
    from paribus.tokenization.statistics import overlap_shares, tokens_of

    frequencies = [
        [None if mine is theirs else _frequency(mine, theirs, counted) for theirs in spelled]
        for mine, counted in zip(spelled, counts, strict=True)
    ]
    return OverlapMatrix(names, [tokens_of(mine) for mine in spelled], overlap_shares(spelled), frequencies)


def _alone(spelled: Sequence["Spellings"]) -> list[frozenset[int]]:
    """Ids of the tokens of each vocabulary that no other one has."""
    counts = Counter(spelling for mine in spelled for spelling in mine)
    return [
        frozenset(identity for spelling, ids in mine.items() if counts[spelling] == 1 for identity in ids)
        for mine in spelled
    ]


def _frequency(mine: "Spellings", theirs: "Spellings", counts: "Counts | None") -> float | None:
    """Mean occurrences, in a million tokens, of the tokens that only one has."""
    from paribus.tokenization.statistics import only_in

    if counts is None or not counts.sum():
        return None
    unshared = only_in(mine, theirs, counts)
    return 1e6 * unshared.mean_frequency / float(counts.sum()) if unshared.tokens else None


def _names(groups: Sequence[Sequence["FinishedRun"]], shown: Mapping[str, str]) -> list[str]:
    """Labels that the runs of each group share and not all runs have, as `shown`; numbered where not unique."""
    everyone = [record for group in groups for record in group]
    varying = [name for name in everyone[0].factors if len({record.factors[name] for record in everyone}) > 1]
    names = []
    for group in groups:
        shared = [name for name in varying if len({record.factors[name] for record in group}) == 1]
        names.append(" · ".join(shown.get(label, label) for label in (group[0].factors[name] for name in shared)))
    return [
        name if name and names.count(name) == 1 else f"{name or 'vocabulary'} ({place})"
        for place, name in enumerate(names, start=1)
    ]
