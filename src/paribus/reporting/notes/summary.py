"""The answer before the table: what was compared, what each factor does, what is undecided and what it would take."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from paribus.config.units import format_count, format_size
from paribus.reporting.notes.verdict import verdict
from paribus.reporting.significance.crossed import LEVEL
from paribus.reporting.significance.effects import Effect
from paribus.reporting.significance.least import SEEDS_TO_JUDGE
from paribus.reporting.table.column import Column
from paribus.reporting.table.comparison import Comparison
from paribus.reporting.table.layout import change, heading, readable, unit_of

State = Literal["better", "worse", "different", "undecided", "unjudged"]
_SHORT_COMMIT = 9


@dataclass(frozen=True)
class Finding:
    """What is said of one effect."""

    effect: Effect
    state: State
    text: str


@dataclass(frozen=True)
class Summary:
    """The head of a report."""

    setting: tuple[str, ...]
    """What was trained, on what, how much, when and with which code: short phrases."""
    findings: tuple[Finding, ...]
    rows: tuple[str, ...]
    """What the differences of single rows allow one to say, where that is more than the findings."""

    @property
    def lines(self) -> list[str]:
        """Findings and what is said of rows, a sentence each."""
        return [*(finding.text for finding in self.findings), *self.rows]


def summary(comparison: Comparison, *, warned: bool) -> Summary:
    """The head of the report of a comparison; `warned` says whether the table has warnings, with which to read it."""
    columns = {column.key: column for column in comparison.columns}
    several = len({effect.column for effect in comparison.effects}) > 1
    found = [_finding(effect, columns[effect.column], comparison, several) for effect in comparison.effects]
    order = ("better", "worse", "different", "undecided", "unjudged")
    findings = sorted(found, key=lambda finding: (order.index(finding.state), finding.effect.is_interaction))
    judged = {finding.effect.values for finding in findings if finding.state != "unjudged"}
    compared = [row for row in comparison.rows if row.baseline is not None]
    covered = len(comparison.factors) == 1 and all(row.labels in judged for row in compared)
    rows = () if covered else (*_unsaid(comparison), *verdict(comparison, warned=warned))
    return Summary(tuple(_setting(comparison)), tuple(findings), rows)


def _unsaid(comparison: Comparison) -> Iterator[str]:
    """Factors of which nothing is said, while something is of others."""
    said = {effect.factors[0] for effect in comparison.effects if not effect.is_interaction}
    several = [
        factor
        for at, factor in enumerate(comparison.factors)
        if factor not in said and len({row.labels[at] for row in comparison.rows}) > 1
    ]
    if said and several:
        named = ", ".join(map(comparison.name, several))
        yield f"Nothing is said of {named}: no two rows that differ in it alone have scores of seeds in common."


def _setting(comparison: Comparison) -> Iterator[str]:
    runs = [run for row in comparison.finished for run in row.runs]
    if not runs:
        return
    rows, seeds = len(comparison.finished), len({run.seed for run in runs})
    yield f"{_count(len(runs), 'run')}: {_count(rows, 'row')}, {_count(seeds, 'seed')}"
    if corpora := _different([_corpus(run.config.get("corpus") or {}, run.corpus) for run in runs]):
        yield f"corpus {corpora}"
    if sizes := [int(run.training["parameters"]) for run in runs if run.training.get("parameters")]:
        yield f"{_span(sizes, format_count)} parameters"
    if budgets := _different([_budget(run.config.get("budget") or {}) for run in runs]):
        yield f"budget {budgets}"
    if ended := [run.ended for run in runs if run.ended is not None]:
        yield f"{datetime.fromtimestamp(max(ended), UTC):%Y-%m-%d}"
    if commits := sorted({run.commit for run in runs if run.commit}):
        named = ", ".join(commit[:_SHORT_COMMIT] for commit in commits[:2])
        yield f"code {named}{f' and {len(commits) - 2} more' if len(commits) > 2 else ''}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _different(texts: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(text for text in texts if text))


def _span(numbers: Sequence[int], shown: Any) -> str:
    low, high = shown(min(numbers)), shown(max(numbers))
    return low if low == high else f"{low} to {high}"


def _corpus(corpus: Any, found: Mapping[str, Any]) -> str:
    """Its kind, and how much text there is in it, by the result of its stage."""
    train, heldout = (found.get(split) or {} for split in ("train", "heldout"))
    sizes = [f"{format_size(train['bytes'])} to train on"] if "bytes" in train else []
    sizes += [f"{format_size(heldout['bytes'])} held out"] if sizes and "bytes" in heldout else []
    return " ".join(filter(None, [str(corpus.get("kind") or ""), f"({', '.join(sizes)})" if sizes else ""]))


def _budget(budget: Any) -> str:
    """What is equal, and how much of it."""
    kind = str(budget.get("kind") or "").removeprefix("equal_")
    amount = budget.get(kind)
    if amount is None:
        return kind
    return f"{format_size(amount)} of text" if kind == "text" else f"{format_count(amount)} {kind}"


def _finding(effect: Effect, column: Column, comparison: Comparison, several: bool) -> Finding:
    test = effect.test
    shown = readable(column, max(abs(test.difference), (test.high - test.low) / 2))
    by = f"{change(test.difference, shown)}{unit_of(shown)}"
    interval = f"95 % interval {change(test.low, shown)} to {change(test.high, shown)}"
    over = f", mean of {effect.rows}" if effect.rows > 1 and not effect.is_interaction else ""
    over += f", of {effect.asked} that were asked for" if effect.rows < effect.asked else ""
    where = f"{heading(column)}, " if several else ""
    state = _state(effect, column)
    named = f"{where}{_compared(effect, comparison, state)}"
    measured = f"{by} {'' if several else f'{_unit(column)} '}({interval}{over})"
    if state in ("better", "worse", "different"):
        return Finding(effect, state, f"{named}: {measured}, beyond chance (p {_p(effect.p_holm)}, adjusted).")
    if state == "unjudged":
        lacking = f"a judgement takes {SEEDS_TO_JUDGE} seeds a row, and {test.seeds} are shared"
        return Finding(effect, state, f"{named}: {measured}, not judged: {lacking}.")
    told = f"{named}: {measured}, undecided{_by_adjustment(effect)}; {_what_it_takes(effect, comparison)}."
    return Finding(effect, state, told)


def _by_adjustment(effect: Effect) -> str:
    """Why an interval that leaves out 0, which is of one effect alone, decides nothing."""
    if effect.test.low <= 0 <= effect.test.high:
        return ""
    return f" as one of {effect.tests} effects (p {_p(effect.p_holm)}, adjusted)"


def _unit(column: Column) -> str:
    """What a difference is in, where its number does not say it."""
    return "bits per byte" if column.kind == "bits_per_byte" else f"of {heading(column)}"


def _p(value: float | None) -> str:
    """What stands behind the letter."""
    return "unknown" if value is None else f"= {value:.2g}" if value >= 0.0001 else "< 0.0001"


def _state(effect: Effect, column: Column) -> State:
    if effect.p_holm is None:
        return "unjudged"
    if effect.p_holm >= LEVEL:
        return "undecided"
    if effect.is_interaction or column.better is None:
        return "different"
    return "better" if (effect.test.difference > 0) == (column.better == "higher") else "worse"


def _compared(effect: Effect, comparison: Comparison, state: State) -> str:
    names = [comparison.name(text) for text in effect.values]
    others = [comparison.name(text) for text in effect.references]
    if effect.is_interaction:
        factors = " × ".join(comparison.name(factor) for factor in effect.factors)
        return f"{factors} (how much more {names[0]} changes with {names[1]} than with {others[1]})"
    factor = comparison.name(effect.factors[0])
    verb = {"better": "is better than", "worse": "is worse than", "different": "differs from"}.get(state, "against")
    return f"{factor}: {names[0]} {verb} {others[0]}"


def _what_it_takes(effect: Effect, comparison: Comparison) -> str:
    """How many seeds would show an effect of the size that was found, and what they cost."""
    needed = effect.seeds_needed()
    if needed is None:
        return "to show an effect of this size takes more documents or items to score on, however many the seeds"
    more = [max(0, needed - len(row.runs)) for row in comparison.finished]
    hours = sum(each * row.device_hours for each, row in zip(more, comparison.finished, strict=True))
    cost = f", about {duration(hours)}" if hours else ""
    return f"an effect of this size would show with some {needed:,} seeds a row ({sum(more):,} more trainings{cost})"


def duration(hours: float) -> str:
    """Hours of devices in the unit that fits."""
    if hours >= 1:
        return f"{hours:,.1f} device-hours"
    return f"{60 * hours:.0f} device-minutes" if hours >= 1 / 30 else f"{3600 * hours:.0f} device-seconds"
