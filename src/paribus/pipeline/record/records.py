"""The records of a command's runs as a report takes them, and why there are none for some."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from paribus.config.groups.packing import PackingConfig
from paribus.config.groups.tokenization import draws_of
from paribus.config.schema import RunConfig
from paribus.errors import NumericalError, ParibusError
from paribus.pipeline.equality import run_identity
from paribus.pipeline.graph import away
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepared_run import PreparedRun, factor_labels
from paribus.pipeline.record.made_with import environment, harmless_packages
from paribus.pipeline.record.run_record import read_run_record
from paribus.pipeline.record.run_state import STOPPED, read_state
from paribus.pipeline.stages import EVALUATION, FINETUNING, place_of
from paribus.store.files import RUN_RECORD

if TYPE_CHECKING:
    from paribus.reporting.runs import MissingRun, RunRecord

MEASURING_STAGES = ("training", EVALUATION, FINETUNING)
_MADE_AGAIN = "the same `paribus run` makes it again"


def collect(
    runs: Sequence[PreparedRun], factors: Sequence[str], root: OutputRoot
) -> tuple[list["RunRecord"], list["MissingRun"]]:
    """Records of the finished runs, and the runs that are not finished with the reason."""
    from paribus.reporting.runs import MissingRun

    records: list[RunRecord] = []
    missing: list[MissingRun] = []
    others: list[Mapping[str, Any]] | None = None
    for run in runs:
        labels, directory = factor_labels(run, factors), root.run(run.run_id)
        try:
            record = read_run_record(directory)
            if record is not None and record["status"] == "done":
                records.append(_run_record(record, run, labels, directory, root))
                continue
            reason = _unfinished(record, run, root) if record else away(run.nodes) or "not started"
        except (ValueError, KeyError, TypeError, AttributeError, ParibusError) as error:
            record, reason = {}, _unreadable(directory, error)
        if record is None:
            others = list(_others(root)) if others is None else others
            reason = _by_another_version(run, others) or reason
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


def _unreadable(directory: Path, error: Exception) -> str:
    what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
    return f"{directory / RUN_RECORD} or a record it names is of another version of paribus, or damaged: {what}"


def _others(root: OutputRoot) -> Iterator[Mapping[str, Any]]:
    """All readable records of finished runs."""
    for path in sorted((root.path / "runs").glob(f"*/{RUN_RECORD}")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            if record["status"] == "done" and record["code_versions"].items():
                yield record
        except (ValueError, KeyError, TypeError, AttributeError):
            continue


def _by_another_version(run: PreparedRun, others: Sequence[Mapping[str, Any]]) -> str | None:
    """Which finished run has this configuration, made by stages of other versions; None for none."""
    wanted = run_identity(run.job.config, run.nodes)
    versions = {name: node.stage.code_version for name, node in run.nodes.items()}
    for record in others:
        if record.get("identity") == wanted and record["code_versions"] != versions:
            stages = [name for name in versions if record["code_versions"].get(name) != versions[name]]
            differing = ", ".join(
                f"{name} {record['code_versions'].get(name)}, now {versions[name]}" for name in stages
            )
            return f"run {record['run_id']} is of another version ({differing}); {_MADE_AGAIN}"
    return None


def _compared(record: Mapping[str, Any], run: PreparedRun) -> dict[str, Any]:
    """The recorded configuration; groups that decide nothing of the run, as the command has them.

    A run that another command made may have been given another embedder, say, which its order never asked for. Its
    seeds are those of this run, however either command said so: they are in the keys of its stages.
    """
    deciding = {name for node in run.nodes.values() for name in node.identity["identity"]} - {"seeds"}
    composed = run_identity(run.job.config, run.nodes)
    recorded = {name: value for name, value in record["identity"].items() if name in {*deciding, "fingerprints"}}
    return {name: value for name, value in composed.items() if name not in deciding} | recorded


def _run_record(
    record: Mapping[str, Any], run: PreparedRun, labels: Mapping[str, str], directory: Path, root: OutputRoot
) -> "RunRecord":
    from paribus.ordering.ordered_text import READINGS
    from paribus.reporting.runs import RunRecord

    artifacts = {name: root.store.find(*place_of(name, stage["key"])) for name, stage in record["stages"].items()}
    found = {name: artifact.record() for name, artifact in artifacts.items() if artifact is not None}
    training = found["training"]["result"] if "training" in found else {}
    names = (EVALUATION, FINETUNING, "vocabulary", "tokens", "training")
    scores, finetuned, vocabulary, tokens, trained = (artifacts.get(name) for name in names)
    contexts = artifacts.get("contexts")
    return RunRecord(
        run_id=record["run_id"],
        config=_compared(record, run),
        factors=labels,
        environment=environment(record, found),
        harmless=harmless_packages(found),
        training=training,
        corpus=found["corpus"]["result"] if "corpus" in found else {},
        scores=scores.path if scores else None,
        finetuned=finetuned.path if finetuned else None,
        directory=directory,
        vocabulary=vocabulary.path if vocabulary else None,
        vocabulary_size=found["vocabulary"]["result"].get("vocab_size") if "vocabulary" in found else None,
        tokens=tokens.path if tokens else None,
        readings=trained.path / READINGS if trained and (trained.path / READINGS).exists() else None,
        find_steps=_StepsRead.of(run.job.config, contexts.path, training) if contexts else None,
        commit=(found.get("training", {}).get("provenance", {}).get("git") or {}).get("commit"),
        ended=record.get("ended"),
        gone=tuple(_gone(name, key, root) for name, key in _without(record, artifacts, root)),
    )


@dataclass(frozen=True)
class _StepsRead:
    """`RunRecord.find_steps` of a training; a dataclass, since kept pictures are keyed by the fields of records."""

    contexts: Path
    packing: PackingConfig
    context_bytes: int | None
    seed: int
    draws: int
    training: Mapping[str, Any]

    @classmethod
    def of(cls, config: RunConfig, contexts: Path, training: Mapping[str, Any]) -> Self:
        """Make it of a run's configuration, its artefact `contexts` and the result of its training."""
        size, draws = config.model.context_bytes, draws_of(config.encoder)
        return cls(contexts, config.packing, size, config.seed_of("contexts"), draws, training)

    def __call__(self) -> Any:
        from paribus.ordering.contexts import read_contexts
        from paribus.ordering.shuffle import first_steps, traverse

        measured = read_contexts(self.contexts)
        read = traverse(self.packing, measured, self.seed, context_bytes=self.context_bytes, draws=self.draws)
        return first_steps(read, measured, self.training["global_batch"], self.training["steps"])


def _without(record: Mapping[str, Any], artifacts: Mapping[str, Any], root: OutputRoot) -> list[tuple[str, str]]:
    """Stage and key of what the record names and is no longer there of the measuring stages, or damaged of any."""
    absent = [(name, record["stages"][name]["key"]) for name, artifact in artifacts.items() if artifact is None]
    return [(name, key) for name, key in absent if name in MEASURING_STAGES or root.store.damage(*place_of(name, key))]


def _gone(name: str, key: str, root: OutputRoot) -> str:
    place = place_of(name, key)
    path, damage = root.store.path(*place), root.store.damage(*place)
    return f"damaged: {path}: {damage}; {_MADE_AGAIN}" if damage else f"its {name} is gone ({path}); {_MADE_AGAIN}"
