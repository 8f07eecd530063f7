"""Runs of a command, ready to be made: their names, the record of their sweep, and what differs between them."""

import dataclasses
import getpass
import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.config.arguments import Command, override_key, override_value
from paribus.config.compose import Job
from paribus.config.groups.execution import SweepConfig
from paribus.config.identity import chosen, digest, identity
from paribus.config.metrics import main_scores
from paribus.config.schema import RunConfig
from paribus.pipeline.graph import Node, group_of_files, needed_for
from paribus.pipeline.records import SWEEP_RECORD, SweepRecord, SweptRun, read_sweep
from paribus.pipeline.root import OutputRoot, run_id
from paribus.reporting.equality import (
    AVERAGED_SHARES,
    FINGERPRINT,
    MISSING,
    SCORED_SHARES,
    SHARES,
    Difference,
    FairnessError,
    covered,
    differing,
    flatten,
    scored_at_other_shares,
)
from paribus.store import files
from paribus.store.provenance import built_from, git_state
from paribus.tracking.destination import public_uri
from paribus.tracking.events import EventLog

ABSENT = "—"
"""Label of a run at a factor that its choices do not have: the vocabulary size of `tokenizer=bytes`."""
_ALWAYS_NAMED = ("tokenizer", "encoder", "ordering")
_LONGEST_VALUE = 40
_DIGEST_LENGTH = 6
_MOST_SETTINGS = 3
_CONTINUATION = ("continuation_items", "context_characters", "continuation_characters")
_HELDOUT = ("heldout_documents", "document_bytes")
_SCORED = (
    "corpus",
    f"{FINGERPRINT}corpus",
    f"{FINGERPRINT}evaluation",
    *(f"evaluation.{name}" for name in ("limit", "last_checkpoints", "clean_overlap", *_HELDOUT, *_CONTINUATION)),
)
"""Fields that decide items, held-out text and scored checkpoints, which no factor excuses.

A task or a number of shots that some runs lack is a gap in their row."""
_SIZED = "model"
"""The group whose choices are sizes, and not kinds: which one was typed is not in the configuration."""
_LAUNCHER_SETTINGS = "hydra.launcher."
"""Beginning of settings that change no run, and may hold secrets: `setup` of submitit."""


@dataclass(frozen=True)
class PreparedRun:
    """A validated run with the artefacts it needs."""

    job: Job
    nodes: dict[str, Node]
    factors: tuple[str, ...] = ()
    """Paths in which the runs of its command differ on purpose."""
    launcher: str = "basic"
    """Name of the Hydra launcher that would run its job."""

    @property
    def required(self) -> dict[str, Node]:
        """The artefacts that its command is to make: all, or with `until` that stage and what it needs."""
        return needed_for(self.nodes, self.job.config.until)

    @property
    def run_id(self) -> str:
        """Identifier of the run."""
        return run_id(self.nodes)


def factor_labels(run: PreparedRun, factors: Sequence[str]) -> dict[str, str]:
    """The value of each factor as it was typed, else as it is configured; a dash where its choices lack it."""
    setting = [override for override in run.job.overrides if "=" in override and not override.startswith("~")]
    typed = {override_key(override).replace("/", "."): override_value(override) for override in setting}
    return {factor: typed.get(factor) or chosen(run.job.config, factor) or ABSENT for factor in factors}


def unique_nodes(runs: Iterable[PreparedRun]) -> list[Node]:
    """The artefacts that runs require, each once, in the order in which they are first needed."""
    return list({node.place: node for run in runs for node in run.required.values()}.values())


def labels(runs: Sequence[PreparedRun]) -> list[str]:
    """A short name for each run: the values of the overrides in which the runs differ, or its own name."""
    common = set.intersection(*(set(run.job.overrides) for run in runs))
    differing = [[text for text in run.job.overrides if text not in common] for run in runs]
    # Lists cut a name at its end, and arms differ in more than a seed.
    differing = [sorted(texts, key=lambda text: text.startswith("seed=")) for texts in differing]
    named = [" ".join(map(_short, texts)) for texts in differing]
    return [name or own for name, own in zip(named, run_names(runs), strict=True)]


def run_name(config: RunConfig) -> str:
    """Name of a run by itself: whether it continues another, its kinds of the groups that sweeps compare, its seed."""
    return "-".join((*_kinds(config).values(), f"seed{config.seed}"))


def run_names(runs: Sequence[PreparedRun]) -> list[str]:
    """Names of runs with what the sweep compares: a group as it was chosen, a field with its name.

    A group that every name has is called by its kind, and as it was chosen where runs of one kind differ in it; so is
    what a word stands for that is no field, an arm.
    """
    labelled = [factor_labels(run, run.factors) for run in runs]
    kinds = [_kinds(run.job.config) for run in runs]
    varied = [factor for factor in runs[0].factors if not _implied_by_kinds(factor, runs, kinds, labelled)]
    short = {factor: _shortened([of_run[factor] for of_run in labelled]) for factor in varied}
    names = []
    for run, kind, label in zip(runs, kinds, labelled, strict=True):
        texts = {factor: short[factor][label[factor]] for factor in varied if label[factor] != ABSENT}
        parts = {group: texts.pop(group, text) for group, text in kind.items()}
        compared = [f"{factor.rpartition('.')[2]}={text}" if "." in factor else text for factor, text in texts.items()]
        names.append("-".join((*parts.values(), *compared, f"seed{run.job.config.seed}")))
    return names


def _kinds(config: RunConfig) -> dict[str, str]:
    """Group -> its kind, of the groups that every name has."""
    start = {} if config.start.kind == "scratch" else {"": "continued"}
    return start | {group: chosen(config, group) or "" for group in _ALWAYS_NAMED}


def _implied_by_kinds(
    factor: str, runs: Sequence[PreparedRun], kinds: Sequence[Mapping[str, str]], labelled: Sequence[Mapping[str, str]]
) -> bool:
    """True if the kinds of the runs already tell their values of a factor apart."""
    if factor not in _ALWAYS_NAMED and any(chosen(run.job.config, factor) is not None for run in runs):
        return False
    kinds_and_labels = {(*kind.values(), label[factor]) for kind, label in zip(kinds, labelled, strict=True)}
    return len(kinds_and_labels) == len({tuple(kind.values()) for kind in kinds})


def _shortened(values: Sequence[str]) -> dict[str, str]:
    """Value -> what stands for it in a name: of a long one its end, which of paths tells most, and where that is the
    end of another too, the start of its digest.
    """
    ends = {value: value if len(value) <= _LONGEST_VALUE else f"…{value[1 - _LONGEST_VALUE :]}" for value in values}
    met = Counter(ends.values())
    return {value: end if met[end] == 1 else f"{end}…{digest(value)[:_DIGEST_LENGTH]}" for value, end in ends.items()}


def _short(override: str) -> str:
    """A group choice by its value alone, a field with its path; of a text in quotes what is in them."""
    key, value = override_key(override), override_value(override)
    return f"{key}={value}" if "." in key or key == "seed" else value


# All else being equal, before anything runs: whether the runs of a command may stand in one table. The rule is that of
# the table (`paribus.reporting.equality`), applied to what is known of runs in advance.
def run_identity(config: RunConfig, nodes: Mapping[str, Node]) -> dict[str, Any]:
    """The identity fields of a run, and under `fingerprints` those of the files of each group, by group."""
    fingerprints = {
        group_of_files(node.stage, node.config): node.identity["identity"]["fingerprint"]
        for node in nodes.values()
        if "fingerprint" in node.identity["identity"]
    }
    values: dict[str, Any] = identity(config)
    return values | {"fingerprints": fingerprints}


def undeclared(runs: Sequence[PreparedRun]) -> FairnessError | None:
    """Differences of runs beside the factors of their command and the seed, with the remedy; None for none."""
    fields = [flatten(run_identity(run.job.config, run.nodes)) for run in runs]
    factors, named = runs[0].factors, list(zip(labels(runs), fields, strict=True))
    differences = differing(named, factors)
    if differences:
        message = (
            f"the runs differ in more than the declared factors ({', '.join(factors) or 'none'}) and the seed, so the "
            "comparison table would refuse them:"
        )
        return FairnessError(message, differences, _remedy(differences))
    if scored := [difference for difference in differing(named, ()) if covered(difference.path, _SCORED)]:
        message = "the runs would be scored on different items or text, so the comparison table would refuse them:"
        return FairnessError(message, scored, "Give all runs the same, or run each by a command of its own")
    if differences := scored_at_other_shares(named):
        message = (
            "the runs would be scored at the last of several checkpoints, which stand at other shares of their "
            "budgets, so the comparison table would refuse them:"
        )
        alone = f"score the last one alone ({SCORED_SHARES}=1 {AVERAGED_SHARES}=1)"
        return FairnessError(message, differences, f"Give all runs the same {SHARES}, or {alone}")
    return None


def _remedy(differences: Sequence[Difference]) -> str:
    groups = ",".join(dict.fromkeys(_group_of(difference) for difference in differences))
    declare = f"or declare that it differs together with the other factors (factors=[{groups}])"
    settings = _settings(differences)
    if not settings:
        files = all(difference.path.startswith(FINGERPRINT) for difference in differences)
        return f"Let all runs {'read the same files' if files else 'have one choice'} ({groups}), {declare}"
    named = list(settings.items())[:_MOST_SETTINGS]
    same = "; ".join(" or ".join(f"{name}={value}" for value in values) for name, values in named)
    own = " ".join(f"{name}={','.join(values)}" for name, values in named)
    more = " ..." if len(settings) > _MOST_SETTINGS else ""
    if any(covered(difference.path, _SCORED) for difference in differences):  # which no factor excuses
        return f"Give all runs the same ({same}{more}), or run each by a command of its own"
    return f"Give all runs the same ({same}{more}), or sweep it as a factor of its own (-m {own}{more}), {declare}"


def _settings(differences: Sequence[Difference]) -> dict[str, list[str]]:
    """Override to type for each value: a choice of a group whose kinds differ, else the field; no files, no family."""
    kinds = {_group_of(difference) for difference in differences if difference.path == f"{_group_of(difference)}.kind"}
    settings: dict[str, list[str]] = {}
    for difference in differences:
        group = _group_of(difference)
        if difference.path.startswith(FINGERPRINT) or (group in kinds and difference.path != f"{group}.kind"):
            continue
        if group in kinds and group == _SIZED:
            continue
        name = group if group in kinds else difference.path
        settings[name] = [_typed(value) for value, _ in difference.values if value != MISSING]
    return settings


def _group_of(difference: Difference) -> str:
    return difference.path.removeprefix(FINGERPRINT).split(".")[0]


def _typed(value: str) -> str:
    """A value as it is typed on the command line."""
    loaded = json.loads(value)
    if isinstance(loaded, list):
        return f"[{','.join(map(str, loaded))}]"
    return loaded if isinstance(loaded, str) else value


def write_sweep(root: OutputRoot, sweep: SweepConfig, command: Command, runs: Sequence[PreparedRun]) -> None:
    """Write the record of a sweep that is given now: its command and runs, without passwords of a tracker."""
    named = zip(run_names(runs), labels(runs), runs, strict=True)
    record = SweepRecord(
        id=sweep.id,
        name=sweep.name,
        given=time.time(),
        multirun=command.multirun,
        overrides=_redacted(command.overrides, runs[0]),
        config_directories=tuple(str(Path(directory).resolve()) for directory in command.config_directories),
        runs=tuple(SweptRun(run.run_id, name, label, _redacted(run.job.overrides, run)) for name, label, run in named),
    )
    path = root.sweep(sweep.id) / SWEEP_RECORD
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, dataclasses.asdict(record))


def _redacted(overrides: Sequence[str], run: PreparedRun) -> tuple[str, ...]:
    """Overrides without the password of a tracker and the settings of a launcher."""
    uri, shown = run.job.config.tracking.uri, []
    for override in overrides:
        key = override.lstrip("+~").partition("=")[0]
        if key == "tracking.uri" and uri:
            shown.append(f"tracking.uri='{public_uri(uri)}'")
        elif not key.startswith(_LAUNCHER_SETTINGS):
            shown.append(override)
    return tuple(shown)


def sweep_of(config: RunConfig, root: OutputRoot) -> SweepRecord | None:
    """The record of the sweep that wants a run now; None where there is none."""
    return read_sweep(root.sweep(config.sweep.id)) if config.sweep else None


def own_name(config: RunConfig, run_id: str, sweep: SweepRecord | None) -> str:
    """Name of a run in the record of its sweep, which tells its runs apart; without a sweep, by its kinds."""
    swept = _swept(run_id, sweep)
    return swept.name if swept else run_name(config)


def listed_name(config: RunConfig, run_id: str, sweep: SweepRecord | None) -> str:
    """Name of a run by what differs from others of its sweep, `scaffold_bpe seed=1`; alone, its own name."""
    swept = _swept(run_id, sweep) if sweep and len(sweep.runs) > 1 else None
    return swept.label if swept else own_name(config, run_id, sweep)


def tag_origin(events: EventLog, sweep: SweepRecord | None) -> None:
    """Tag a run or a sweep with its sweep, its command, the user, and the commit of paribus' checkout or image."""
    git = git_state(Path(__file__)) or built_from() or {}
    tags = {
        "paribus.sweep": f"{sweep.name} {sweep.id}" if sweep else None,
        "paribus.command": sweep.command.typed("run", multirun=sweep.multirun) if sweep else None,
        "mlflow.user": _user(),
        "mlflow.source.git.commit": git.get("commit"),
        "mlflow.source.git.dirty": "True" if git.get("diff") or git.get("changes") else None,
    }
    for name, tag in tags.items():
        events.tag(name, tag)


def score_numbers(results: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """`bits_per_byte` and `<task>` in every run that has them, of an evaluation and of a fine-tuning."""
    scores = (main_scores(result.get("metrics", {})).items() for result in results)
    return {name.replace("/", "_"): value for items in scores for name, value in items}


def _swept(run_id: str, sweep: SweepRecord | None) -> SweptRun | None:
    return next((run for run in sweep.runs if run.run_id == run_id), None) if sweep else None


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a number that no account has, as in a container
        return None
