"""Proof that the runs of a table differ only in what they are declared to differ in, or every other difference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from paribus.config.identity import digest
from paribus.config.units import format_count, format_size
from paribus.errors import ConfigurationError
from paribus.reporting.equality import (
    DIGEST,
    ENVIRONMENT,
    FINGERPRINT,
    Difference,
    FairnessError,
    covered,
    covering,
    differing,
    scored_at_other_shares,
    unequal,
)
from paribus.reporting.runs import FinishedRun, RunScores, load_all
from paribus.store.packages import why_harmless

OTHER_SHARES = "These runs are scored at the last of several checkpoints, which stand at other shares of their budgets"
_TOKENIZATION = ("pretokenizer", "tokenizer", "encoder")


@dataclass(frozen=True)
class Proof:
    """Settings that were compared between the runs of a table and found equal."""

    factors: tuple[str, ...]
    seeds: tuple[int, ...]
    runs: int
    settings: int
    """Configuration fields outside the factors and the seed, the same in every run."""
    environment: int
    """Entries of the environment, the same in every run that has them."""
    digest: str
    """SHA-256 of the common configuration."""
    data: tuple[tuple[str, str], ...]
    """Digests of the data the runs share: (stage, digest)."""
    tokens: str
    text: str
    flops: str
    steps: str

    def sentences(self) -> list[str]:
        """The proof in words, for under the table."""
        factors = ", ".join(self.factors) or "nothing"
        declared = f"Declared to differ: {factors}, and the seed ({', '.join(map(str, self.seeds))})."
        equal = (
            f"Compared over {self.runs} run{'s' if self.runs > 1 else ''} and equal in all: {self.settings} settings "
            f"(SHA-256 of the common configuration {self.digest[:16]}), {self.environment} entries of the environment"
        )
        data = "".join(f"; {stage} {value[:16]}" for stage, value in self.data)
        read = f"Read in training: {self.tokens}, {self.text}."
        return [declared, f"{equal}{data}.", f"{read} Computed: {self.flops}, {self.steps}."]


def differences(runs: Sequence[FinishedRun], factors: Sequence[str]) -> list[Difference]:
    """Everything in which runs' configurations and environments differ, outside the declared factors and the seed.

    See `equality.differing`; an entry of the environment that some runs lack is a difference.
    """
    return differing([(run.run_id, run.fields) for run in runs], factors)


def score_differences(scores: Mapping[str, RunScores]) -> list[Difference]:
    """Tasks, items, documents and numbers of checkpoints in which the scores of runs (by run id) differ.

    A run without any line of a task and shot count is a gap in the table, not a difference.
    """
    return unequal((path, value, run_id) for run_id, score in scores.items() for path, value in score.content.items())


def refuse(runs: Sequence[FinishedRun], factors: Sequence[str], scores: Mapping[str, RunScores]) -> None:
    """Raise FairnessError unless runs differ in factors and seed only, and those with equal labels in the seed only."""
    if unequal_settings := differences(runs, factors):
        raise FairnessError(
            f"These runs differ in more than the declared factors ({', '.join(factors) or 'none'}) and the seed, "
            "so they cannot stand side by side. Declare the path as a factor, or run them again with equal settings:",
            unequal_settings + score_differences(scores),
        )
    if unequal_scores := score_differences(scores):
        raise FairnessError(
            "These runs were scored on different items, text or numbers of checkpoints, so they cannot stand side by "
            "side, whatever is declared. Run them again with an equal corpus and evaluation:",
            unequal_scores,
        )
    if shares := scored_at_other_shares([(run.run_id, run.fields) for run in runs]):
        raise FairnessError(f"{OTHER_SHARES}, so they cannot stand side by side, whatever is declared:", shares)
    for labels, group in by_labels(runs, factors).items():
        if len(group) > 1 and (hidden := differences(group, ())):
            raise FairnessError(
                f"Runs with the same labels ({', '.join(labels)}) differ in more than the seed. "
                "Give them labels that differ:",
                hidden,
            )


def tokenized_alike(runs: Sequence[FinishedRun]) -> bool:
    """True if all runs split text into the same tokens, so that numbers per token compare."""
    first = runs[0].fields.items()
    changed = {path for run in runs[1:] for path, _ in first ^ run.fields.items()}
    return not any(path.removeprefix(FINGERPRINT).split(".")[0] in _TOKENIZATION for path in changed)


def by_labels(runs: Sequence[FinishedRun], factors: Sequence[str]) -> dict[tuple[str, ...], list[FinishedRun]]:
    """Runs by their labels at the factors, in the order given; ConfigurationError for a run without a label."""
    groups: dict[tuple[str, ...], list[FinishedRun]] = {}
    for run in runs:
        absent = [factor for factor in factors if factor not in run.factors]
        if absent:
            raise ConfigurationError(f"run {run.run_id} has no label for the declared factor {', '.join(absent)}")
        groups.setdefault(tuple(run.factors[factor] for factor in factors), []).append(run)
    return groups


def proof(runs: Sequence[FinishedRun], factors: Sequence[str]) -> Proof:
    """Proof for runs that `refuse` accepts."""
    flat = [run.fields for run in runs]
    allowed = covering(flat, factors)
    every: set[str] = set().union(*flat)
    paths = sorted(path for path in every if not covered(path, allowed))
    common = {path: next(fields[path] for fields in flat if path in fields) for path in paths}
    settings = {path: value for path, value in common.items() if not path.startswith(ENVIRONMENT)}
    data = {path.removeprefix(DIGEST): value.strip('"') for path, value in common.items() if path.startswith(DIGEST)}
    return Proof(
        factors=tuple(factors),
        seeds=tuple(sorted({run.seed for run in runs})),
        runs=len(runs),
        settings=len(settings),
        environment=len(common) - len(settings) - len(data),
        digest=digest(settings),
        data=tuple(data.items()),
        tokens=_span(runs, "tokens", "tokens", format_count),
        text=_span(runs, "text_bytes", "of text", format_size),
        flops=_span(runs, "flops", "FLOPs", "{:.2e}".format),
        steps=_span(runs, "steps", "steps", "{:,.0f}".format),
    )


def _span(runs: Sequence[FinishedRun], key: str, unit: str, words: Any) -> str:
    values = sorted(float(run.training[key]) for run in runs if run.training.get(key) is not None)
    if not values:
        return f"an unrecorded number of {unit.rsplit(maxsplit=1)[-1]}"
    if values[0] == values[-1]:
        return f"{words(values[0])} {unit} in every run"
    return f"{words(values[0])} to {words(values[-1])} {unit} a run"


_MOST_RUNS = 6


def explanation(runs: Sequence[FinishedRun], factors: Sequence[str]) -> tuple[list[str], bool]:
    """Lines that name each differing field with its values and their runs, and True if a table may be made."""
    in_settings = differences(runs, factors)
    undeclared = [*in_settings, *score_differences(load_all(runs)[0])]
    paths = {difference.path for difference in in_settings}
    allowed = covering([run.fields for run in runs], factors)
    declared = [
        difference
        for difference in differences(runs, ())
        if difference.path not in paths and covered(difference.path, allowed)
    ]
    labels = {run.run_id: f"{' '.join(run.factors.values())} seed {run.seed} ({run.run_id})" for run in runs}
    lines = [f"{len(runs)} finished runs; declared to differ: {', '.join(factors) or 'nothing'}, and the seed."]
    lines += _difference_lines("Declared, and differing:", declared, labels)
    lines += _difference_lines("Not declared, so that the table is refused:", undeclared, labels)
    packages = unequal((name, version, run.run_id) for run in runs for name, version in run.harmless.items())
    harmless = [replace(package, path=f"{package.path}: {why_harmless(package.path)}") for package in packages]
    lines += _difference_lines("Differs, but cannot change a number:", harmless, labels)
    lines += [] if undeclared else ["Nothing else could change a number: the table may be made."]
    return lines, not undeclared


def _difference_lines(title: str, differences: Sequence[Difference], labels: dict[str, str]) -> list[str]:
    lines = [title] if differences else []
    for difference in differences:
        lines.append(f"  {difference.path}")
        for value, runs in difference.values:
            more = f" and {len(runs) - _MOST_RUNS} more" if len(runs) > _MOST_RUNS else ""
            lines.append(f"    {value}: {', '.join(labels[run] for run in runs[:_MOST_RUNS])}{more}")
    return lines
