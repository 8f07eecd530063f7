"""Answer before the table: what was compared, what each factor does, what stays open and what would settle it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from paribus.config.units import format_count, format_size
from paribus.reporting.columns import finite
from paribus.reporting.compare import LOW_SHARE, Comparison, remedies
from paribus.reporting.judgement import Effect, too_few_items
from paribus.reporting.measures import ITEMS_TO_JUDGE, SEEDS_TO_JUDGE, Measure
from paribus.reporting.significance import LEVEL
from paribus.reporting.table import change, first_lines, heading, readable, unit_of

State = Literal["better", "worse", "different", "reserved", "undecided", "unjudged"]
"""`reserved`: a difference beyond chance that may be due to text that only one side has read."""
_ORDER: tuple[State, ...] = ("better", "worse", "different", "reserved", "undecided", "unjudged")
_SHORT_COMMIT = 9
_MOST = 40
"""Largest number of effects that the head of a report shows."""
_UNLIKE = 1.25
"""Ratio of parameters or text from which a sentence names it."""
_ALSO = (("parameters", "parameters", "model.match=total"), ("text_bytes", "text", "budget=equal_text"))
"""Key of the training's result, its name and the override that makes it equal."""
_DECLARED = ("model", "scale", "budget")
"""Groups whose choice is meant to change parameters or text."""


@dataclass(frozen=True)
class Decision:
    """The sentence on one effect."""

    effect: Effect
    state: State
    text: str


@dataclass(frozen=True)
class Summary:
    """The head of a report."""

    setting: tuple[str, ...]
    """Phrases that say what was trained, on what, how much, when and with which code."""
    findings: tuple[Decision, ...]
    rows: tuple[str, ...]
    """Sentences on effects that are not shown, and on factors, rows and measures of which nothing can be said."""

    @property
    def shown(self) -> tuple[Decision, ...]:
        """The first findings, those that decide something before others."""
        return self.findings[:_MOST]

    @property
    def lines(self) -> list[str]:
        """All sentences that are shown, findings first."""
        return [*(finding.text for finding in self.shown), *self.rows]


def summary(comparison: Comparison) -> Summary:
    """The head of the report of a comparison."""
    columns = {column.key: column for column in comparison.columns}
    several = len({effect.column for effect in comparison.effects}) > 1
    findings = [_finding(effect, columns[effect.column], comparison, several) for effect in comparison.effects]
    findings.sort(key=lambda finding: (_ORDER.index(finding.state), finding.effect.contrast.kind == "interaction"))
    more = [f"And {len(findings) - _MOST:,} more effects, which report --json lists."] if len(findings) > _MOST else []
    rows = (*more, *_without_effect(comparison), *_unjudged(comparison))
    return Summary(tuple(_setting(comparison)), tuple(findings), rows)


def _without_effect(comparison: Comparison) -> Iterator[str]:
    judged = {factor for effect in comparison.effects for factor in effect.contrast.factors}
    unknown = [
        comparison.name(factor)
        for place, factor in enumerate(comparison.factors)
        if factor not in judged and len({row.labels[place] for row in comparison.rows}) > 1
    ]
    if judged and unknown:
        yield (
            f"Nothing can be said of {', '.join(unknown)}: no two rows that differ in it alone have scores of seeds in "
            "common."
        )
    judged_rows = {place for effect in comparison.effects for place in effect.contrast.weights}
    rows = [row for place, row in enumerate(comparison.rows) if row.baseline is not None and place not in judged_rows]
    if judged_rows and rows:
        names = "; ".join(first_lines([comparison.row_name(row) for row in rows]))
        yield (
            f"Nothing can be said of {names}: a judgement takes finite scores of {SEEDS_TO_JUDGE} seeds that another "
            "row has too, with the same start and as much text kept by the tokenizer."
        )


def _unjudged(comparison: Comparison) -> Iterator[str]:
    if len(comparison.rows) < 2 or not comparison.primary:
        return
    deciding = [column for column in comparison.columns if column.scored and column.key in comparison.primary]
    judged = {effect.column for effect in comparison.effects}
    for column in (column for column in deciding if column.key not in judged):
        yield f"Nothing can be said of {heading(column)}{_why_nothing(column, comparison)}."
    if not deciding:
        yield "Nothing can be said of which row is better: the table has no column that decides it."


def _why_nothing(column: Measure, comparison: Comparison) -> str:
    """The reason for which a measure cannot be judged; empty where none is known."""
    rows, key = comparison.rows, column.key
    compared = [row for row in comparison.finished if row.baseline is not None]
    bases = [rows[row.baseline] for row in compared if row.baseline is not None]
    cells = [row.cells[key] for row in comparison.finished]
    if bases and not any(base.runs for base in bases):
        return ": the row that others are compared with has no finished run"
    if not compared:
        alone = all(row.baseline is None for row in rows)
        why = "has a baseline (experiment.table.baseline)"
        return f": no row {why if alone else 'that is compared with another has a finished run'}"
    if not any(finite(base.cells[key].value) for base in bases if base.runs):
        return ": the row that others are compared with has no score there"
    if few := [cell for cell in cells if too_few_items(column, cell)]:
        fewest = min(few, key=lambda cell: cell.fewest)
        fits = "the prompts that fit every run are those" if fewest.fitting else "its scores are"
        more = "evaluation.heldout_documents, which trains nothing anew, corpus.heldout or a larger corpus"
        more = f" (more with {more})" if not column.parts else ""
        return f": {fits} of {fewest.fewest} items, and a judgement takes {ITEMS_TO_JUDGE}{more}"
    if all(row.cells[key].lossy != rows[row.baseline or 0].cells[key].lossy for row in compared):
        return ": the tokenizer of one of two rows that are compared loses text, and the other's does not"
    shared = "" if any(cell.seeds < SEEDS_TO_JUDGE for cell in cells) else " that another has too"
    return f": a judgement takes {SEEDS_TO_JUDGE} seeds an arm{shared}" if column.of_model else ""


def _setting(comparison: Comparison) -> Iterator[str]:
    runs = [run for row in comparison.finished for run in row.runs]
    if not runs:
        return
    rows, seeds = len(comparison.finished), len({run.seed for run in runs})
    yield f"{_count(len(runs), 'run')}: {_count(rows, 'row')}, {_count(seeds, 'seed')}"
    if corpora := _different([_corpus(run.config.get("corpus") or {}, run.corpus) for run in runs]):
        yield f"corpus {corpora}"
    if sizes := [int(run.training["parameters"]) for run in runs if run.training.get("parameters")]:
        low, high = format_count(min(sizes)), format_count(max(sizes))
        yield f"{low if low == high else f'{low} to {high}'} parameters"
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


def _corpus(corpus: Any, result: Mapping[str, Any]) -> str:
    """Kind of a corpus, and how much text there is in it, by the result of its stage."""
    train, heldout = (result.get(split) or {} for split in ("train", "heldout"))
    sizes = [f"{format_size(train['bytes'])} to train on"] if "bytes" in train else []
    sizes += [f"{format_size(heldout['bytes'])} held out"] if sizes and "bytes" in heldout else []
    return " ".join(filter(None, [str(corpus.get("kind") or ""), f"({', '.join(sizes)})" if sizes else ""]))


def _budget(budget: Any) -> str:
    kind = str(budget.get("kind") or "").removeprefix("equal_")
    amount = budget.get(kind)
    if amount is None:
        return kind
    return f"{format_size(amount)} of text" if kind == "text" else f"{format_count(amount)} {kind}"


def _finding(effect: Effect, column: Measure, comparison: Comparison, several: bool) -> Decision:
    test, contrast = effect.test, effect.contrast
    shown = readable(column, max(abs(test.difference), test.half_width))
    where = f"{heading(column)}, " if several else ""
    unit = "bits per byte" if column.kind == "bits_per_byte" else f"of {heading(column)}"
    by = f"{change(test.difference, shown)}{unit_of(shown)}{'' if several else f' {unit}'}"
    over = f", mean of {contrast.differences}" if contrast.differences > 1 else ""
    over += f" of {effect.asked} that were asked for" if contrast.differences < effect.asked else ""
    decided: State = "better" if (test.difference > 0) == (column.better == "higher") else "worse"
    if effect.p_adjusted is None:
        decided = "unjudged"
    elif effect.p_adjusted >= LEVEL:
        decided = "undecided"
    elif contrast.kind == "interaction" or column.better is None:
        decided = "different"
    reservation = _reservation(effect, comparison)
    state: State = "reserved" if reservation and decided in ("better", "worse", "different") else decided
    named = f"{where}{_compared(effect, comparison, decided)}"
    if decided == "unjudged":
        lacking = "their scores do not vary"
        if column.of_model and test.seeds < SEEDS_TO_JUDGE:
            lacking = f"a judgement takes {SEEDS_TO_JUDGE} seeds an arm, and {test.seeds} are shared"
        return Decision(effect, state, f"{named}: {by}{over}; {lacking}.")
    together = f" for all {effect.tests} effects" if effect.tests > 1 else ""
    interval = f"{change(test.low, shown)} to {change(test.high, shown)} with 95 % confidence{together}"
    if decided == "undecided":
        but = f", which other seeds or documents could reverse{f'; {reservation}' if reservation else ''}"
    else:
        but = f", but {reservation}, which may be why" if reservation else ""
    sentence = f"{named}: {by} ({interval}; p {_p(effect.p_adjusted)}{over}){but}{_also(effect, comparison)}."
    return Decision(effect, state, sentence)


def _p(value: float | None) -> str:
    return "unknown" if value is None else f"= {value:.2g}" if value >= 0.0001 else "< 0.0001"


def _compared(effect: Effect, comparison: Comparison, decided: State) -> str:
    contrast = effect.contrast
    values, references = ([comparison.name(text) for text in side] for side in (contrast.values, contrast.references))
    factors = " × ".join(comparison.name(factor) for factor in contrast.factors)
    if contrast.kind == "interaction":
        return f"{factors} (effect of {values[0]} with {values[1]} minus that with {references[1]})"
    arm, reference = (" · ".join(side) or "all runs" for side in (values, references))
    sentences = {
        "better": f"{arm} is better than {reference}",
        "worse": f"{arm} is worse than {reference}",
        "different": f"{arm} differs from {reference}",
        "undecided": f"it is open whether {arm} or {reference} is better",
        "unjudged": f"nothing can be said of {arm} against {reference}",
    }
    return sentences[decided] if contrast.kind == "row" else f"{factors}: {sentences[decided]}"


def _reservation(effect: Effect, comparison: Comparison) -> str:
    """Share of text that the two sides have in common, and its remedy; empty where it is enough or unknown."""
    pairs = {frozenset(pair) for pair in effect.contrast.pairs}
    common = [text for text in comparison.common_text if {text.row, text.base} in pairs]
    little = [text for text in common if text.share < LOW_SHARE]
    if not little:
        return ""
    low, high = (f"{100 * bound(text.share for text in little):.1f}" for bound in (min, max))
    some_pairs = f" in {len(little)} of {len(common)} pairs of runs" if len(little) < len(common) else ""
    shares = f"{low if low == high else f'{low} to {high}'} % of their training text{some_pairs}"
    remedy = "; ".join(remedies(little))
    return f"they share only {shares}{f' ({remedy})' if remedy else ''}"


def _also(effect: Effect, comparison: Comparison) -> str:
    """Name what else differs (parameters, text), and the overrides that make it equal."""
    contrast = effect.contrast
    if contrast.kind == "interaction" or any(factor.partition(".")[0] in _DECLARED for factor in contrast.factors):
        return ""
    unlike, overrides = [], []
    sides = [[run for row in side for run in comparison.rows[row].runs] for side in zip(*contrast.pairs, strict=True)]
    for key, name, override in _ALSO:
        values, references = ([float(run.training[key]) for run in runs if run.training.get(key)] for runs in sides)
        if values and references:
            mean, reference = sum(values) / len(values), sum(references) / len(references)
            if max(mean, reference) >= _UNLIKE * min(mean, reference):
                unlike.append(f"{name} ×{mean / reference:.2g}")
                overrides.append(override)
    if not unlike:
        return ""
    return f"; also different: {', '.join(unlike)} ({' and '.join(overrides)} would make them equal)"
