"""What stands under the table: what ± means, what was tested on what, what is missing, and what was equal."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from paribus.reporting.notes.common_text import in_words
from paribus.reporting.notes.prompts import crossed, some, truncated
from paribus.reporting.notes.sizes import other_sizes, other_vocabularies
from paribus.reporting.notes.trainings import averaged_weights, warnings
from paribus.reporting.significance.judgement import too_few_items, unjudged
from paribus.reporting.significance.least import ITEMS_TO_JUDGE, SEEDS_TO_JUDGE
from paribus.reporting.table.cells import Cell
from paribus.reporting.table.column import AVERAGE, CONCATENATED, HELDOUT_SETS, Column
from paribus.reporting.table.columns import cut_alike
from paribus.reporting.table.comparison import Comparison, ComparisonRow
from paribus.reporting.table.layout import EXPLORATORY, heading, size, spread_shows


@dataclass(frozen=True)
class Notes:
    """Sentences for beside a table."""

    warnings: tuple[str, ...]
    """What has to be read with every number."""
    legend: tuple[str, ...]
    """What numbers and marks mean, and what is missing."""
    details: tuple[str, ...]
    """How it was tested, what was equal, and what else a careful reader asks for."""

    @property
    def lines(self) -> list[str]:
        """All of them, in the order in which a reader needs them."""
        return [*self.warnings, *self.legend, *self.details]


def notes(comparison: Comparison) -> Notes:
    """All that is to be said of a table beside its numbers."""
    tests = _tests(comparison)
    marks = [line for line in tests if line == tests[0] or line.startswith(EXPLORATORY)]
    return Notes(
        warnings=tuple(warnings(comparison)),
        legend=(
            *_reading(comparison),
            *_spread(comparison),
            *marks,
            *(_few_seeds(comparison) if any(cell.test for _, _, cell in _cells(comparison)) else []),
            *_few_items(comparison),
            *_repeated(comparison),
            *_redrawn(comparison),
            *_gaps(comparison),
        ),
        details=(
            *(line for line in tests if line not in marks),
            *_detectable(comparison),
            *_plain(comparison),
            *_beside(comparison),
            *truncated(comparison),
            *crossed(comparison),
            *_overlap(comparison),
            *other_sizes(comparison),
            *other_vocabularies(comparison),
            *comparison.proof.sentences(),
            *in_words(comparison.common_text),
        ),
    )


def _reading(comparison: Comparison) -> list[str]:
    parts, counts, seen = [], [], set()
    for column in comparison.columns:
        items = max((row.cells[column.key].items for row in comparison.finished), default=0)
        if len(column.parts) == 1 and items and column.parts[0].task not in seen:
            seen.add(column.parts[0].task)
            counts.append(f"{items:,} items of {comparison.name(column.parts[0].task)}")
        elif column.kind == "bits_per_byte" and items:
            counts.append(f"{items:,} {_documents(column)}")
    shares = dict.fromkeys(
        family for column in comparison.columns if column.kind == "accuracy" for family in column.families
    )
    if shares:
        named = ", ".join(shares)
        means = any(column.kind == "accuracy" and column.label == "mean" for column in comparison.columns)
        told = ", 'mean' is over the shots, of tasks over the tasks" if means else ""
        parts.append(f"{named[0].upper()}{named[1:]} in %{told}")
    if whole := [column.label for column in comparison.columns if column.kind == "percent" and len(column.parts) == 1]:
        parts.append(f"{', '.join(dict.fromkeys(whole))} in %, of all items together")
    if any(column.kind == "bits_per_byte" for column in comparison.columns):
        parts.append("bits per byte of the original UTF-8, lower is better")
    if any(column.key == "bytes_per_token" for column in comparison.columns):
        parts.append("bytes / token of the held-out text")
    lines = [f"{'; '.join(parts)}.{_bold(comparison)}"] if parts else [_bold(comparison).strip()]
    lines = [line for line in lines if line]
    if counts:
        last = f"the last {comparison.checkpoints} checkpoints" if comparison.checkpoints > 1 else "the last checkpoint"
        lines.append(f"Scored on {', '.join(counts)}, at {last}.")
    lines += averaged_weights(comparison)
    lines += _averages(comparison)
    perplexities = [column for column in comparison.columns if column.kind == "perplexity"]
    lines += _perplexity_a_token([column for column in perplexities if column.field], comparison)
    if any(column.parts for column in perplexities):
        lines.append(
            "Perplexity is 2 to the mean bits of the text that should follow, whatever its tokens (over seeds, too, of "
            "the mean bits); it is compared and tested in bits."
        )
    return lines


def _documents(column: Column) -> str:
    """What bits per byte are of."""
    if column.field in HELDOUT_SETS:
        return {"clean": "clean ones among them", "concatenated": "of them concatenated"}[column.label]
    whole = " end to end" if column.field.endswith(CONCATENATED) else ""
    return f"documents of {column.group}{whole}" if column.field else "held-out documents"


def _perplexity_a_token(columns: Sequence[Column], comparison: Comparison) -> list[str]:
    """What it is of, and where it says nothing of the difference of two rows."""
    if not columns:
        return []
    lines = ["Perplexity of a set of texts is 2 to its bits a token; it is compared and tested in bits."]
    other = [column.group for column in columns if not cut_alike(column, list(comparison.scores.values()))]
    if other:
        named = ", ".join(dict.fromkeys(other))
        lines.append(f"Perplexity does not compare rows that cut texts into other tokens, as those of {named} are.")
    return lines


def _averages(comparison: Comparison) -> list[str]:
    """What each mean over tasks is of, and what the mean over all tasks leaves out."""
    lines = []
    every = {part.task: part for column in comparison.columns for part in column.parts}
    for column in comparison.columns:
        tasks = list(dict.fromkeys(part.task for part in column.parts))
        if len(tasks) < 2 and (column.key != AVERAGE or not tasks):
            continue
        others = [part for task, part in every.items() if task not in tasks] if column.key == AVERAGE else []
        left = ", ".join(f"{comparison.name(part.task)} ({part.family})" for part in others)
        named = ", ".join(map(comparison.name, tasks))
        lines.append(
            f"{column.group}: the mean of {named} by {' and '.join(column.families)}, each task weighing the same"
            f"{f'; not in it: {left}' if left else ''}."
        )
    return lines


def _bold(comparison: Comparison) -> str:
    if not any(cell.best for _, _, cell in _cells(comparison)):
        return ""
    within = " in each group of rows" if comparison.table.bold == "group" else ""
    return f" Bold: best of what decides{within}."


def _spread(comparison: Comparison) -> list[str]:
    scored = [(column, cell) for _, column, cell in _cells(comparison) if column.scored and cell.half_width is not None]
    over = {cell.over for _, cell in scored if cell.over}
    lines = []
    if "seeds" in over:
        seeds = sorted({cell.seeds for column, cell in scored if cell.over == "seeds"})
        lines.append(
            "± is half the 95 % interval of a number, over other seeds and other items "
            f"({' or '.join(map(str, seeds))} seeds a row; what a seed does to a row is taken from all rows)."
        )
    if "items" in over:
        which = "± of what no training has part in" if "seeds" in over else "±"
        lines.append(f"{which} is half the 95 % interval over other items alone.")
    shown = any(cell.half_width is not None and spread_shows(column, cell) for _, column, cell in _cells(comparison))
    if shown and not over:
        lines.append("± is half the 95 % interval of a number over other seeds.")
    if any(cell.checkpoint_spread is not None and cell.half_width is not None for _, _, cell in _cells(comparison)):
        lines.append(
            f"After the slash: standard deviation over the last {comparison.checkpoints} checkpoints of a "
            "run, which says how far it still moves and not what another seed would give."
        )
    return lines


def _tests(comparison: Comparison) -> list[str]:
    if not any(cell.test for _, _, cell in _cells(comparison)):
        alone = _without_baseline(comparison)
        if len(comparison.finished) > 1:
            return [f"No significance test: no score allows one against {_baseline(comparison)}.", *alone]
        return alone or ["No significance test: there is nothing to compare the first row with."]
    judged = [effect for effect in comparison.effects if effect.p_adjusted is not None]
    rows = [cell for _, _, cell in _cells(comparison) if cell.p_adjusted is not None]
    lines = []
    if rows:
        lines.append(f"* p < 0.05, ** p < 0.01 against {_baseline(comparison)}: two-sided, paired, adjusted.")
    elif judged:
        lines.append("No row is marked: the sentences above judge what each factor does over all rows.")
    else:
        lines.append(f"No difference of {_primary(comparison)} can be judged, so none is marked.")
    if comparison.exploratory:
        lines.append(
            f"{EXPLORATORY} Exploratory: these measures do not decide the question (experiment.table.primary names "
            "those that do); their differences are not adjusted for each other, so none is marked."
        )
    if judged:
        together = f"the {len(judged)} effects on {_primary(comparison)} are judged together" if len(judged) > 1 else ""
        lines.append(
            "An effect is tested over seeds and items, both taken as random (each item's score averaged over "
            "checkpoints and, for the mean, shots). How far seeds move it is estimated from its own and from all rows "
            f"together{f'; {together}, so that p-values and intervals hold for all at once' if together else ''}."
        )
    return [*lines, *_without_baseline(comparison)]


def _without_baseline(comparison: Comparison) -> list[str]:
    """Which rows are compared with none, since the one that the table has for them has no finished run."""
    wanted = (comparison.table.baseline or {}).items()
    alone = [
        _name(comparison, row)
        for row in comparison.finished
        if (
            any(row.labels[comparison.factors.index(factor)] != label for factor, label in wanted)
            if row.baseline is None
            else not comparison.rows[row.baseline].runs
        )
    ]
    if not alone:
        return []
    return [f"Not tested, as the row that they would be compared with is not there: {'; '.join(some(alone))}."]


def _primary(comparison: Comparison) -> str:
    """The measures that decide, in words."""
    scored = [column for column in comparison.columns if column.scored]
    decide = [heading(column) for column in scored if column.key in comparison.primary]
    named = "the table" if len(decide) == len(scored) else ", ".join(decide or comparison.table.primary)
    return f"{named} (chosen by experiment.table.primary)" if comparison.table.primary else named


def _few_items(comparison: Comparison) -> list[str]:
    """Which measures are of so few items that they allow no inference."""
    few: dict[str, Cell] = {}
    for _, column, cell in _cells(comparison):
        if too_few_items(column, cell):
            few[heading(column)] = min(cell, few.get(heading(column), cell), key=lambda each: each.fewest)
    if not few:
        return []
    fits = {True: " whose prompt fits every run", False: ""}
    named = ", ".join(f"{name} ({cell.fewest}{fits[cell.fitting]})" for name, cell in few.items())
    return [
        f"Too few items for an interval, a test or a best number, which take {ITEMS_TO_JUDGE} (of a mean, in its "
        f"smallest task): {named}."
    ]


def _few_seeds(comparison: Comparison) -> list[str]:
    """Rows with scores that are not judged for want of seeds that the row they are compared with has too."""
    names = dict.fromkeys(
        _name(comparison, row)
        for row, column, cell in _cells(comparison)
        if column.scored and column.of_model and _lacks_seeds(cell, column, comparison.rows[row.baseline or 0])
    )
    if not names:
        return []
    rows = "every row" if len(names) == len(comparison.finished) else "; ".join(some(list(names)))
    return [
        f"No ±, mark or bold number without {SEEDS_TO_JUDGE} seeds that the row compared with has too; scores lack "
        f"them in {rows}."
    ]


def _lacks_seeds(cell: Cell, column: Column, base: ComparisonRow) -> bool:
    return 0 < cell.seeds < SEEDS_TO_JUDGE or (unjudged(column, cell) and cell.ground == base.cells[column.key].ground)


def _baseline(comparison: Comparison) -> str:
    if comparison.table.baseline:
        wanted = ", ".join(" ".join(map(comparison.name, pair)) for pair in comparison.table.baseline.items())
        return f"the row with {wanted} and otherwise the same labels"
    return f"the first row ({', '.join(map(comparison.name, comparison.rows[0].labels)) or 'the only one'})"


def _detectable(comparison: Comparison) -> list[str]:
    found = []
    for column in comparison.columns:
        cells = [row.cells[column.key] for row in comparison.finished]
        known = [cell.detectable for cell in cells if cell.detectable is not None]
        if known and column.main and not column.key.endswith("_shot"):
            low, high = (size(bound, column) for bound in (min(known), max(known)))
            found.append(f"{heading(column)} {low if low == high else f'{low} to {high}'}")
    if not found:
        return []
    return [
        "The smallest true difference of rows that so many seeds and items show with a probability of 80 %: "
        f"{'; '.join(found)}."
    ]


def _plain(comparison: Comparison) -> list[str]:
    if not comparison.table.plain_t_test:
        return []
    counts = {cell.seeds * cell.checkpoints for _, column, cell in _cells(comparison) if column.scored}
    if max(counts, default=0) < 2:
        return ["No plain t-test: it needs two seeds or checkpoints."]
    numbers = " or ".join(map(str, sorted(counts)))
    return [
        f"p (plain t): unpaired t-test over the means of each seed and checkpoint ({numbers} numbers a row), as papers "
        "have it. Checkpoints of one run are not independent, so it finds too much."
    ]


def _beside(comparison: Comparison) -> list[str]:
    return ["In brackets: the paper's number, and ours minus it."] if comparison.table.paper else []


def _repeated(comparison: Comparison) -> list[str]:
    """Which rows read text more than once; a row that repeats it has seen less text than its budget says."""
    epochs = [
        (_name(comparison, row), max(float(run.training.get("epochs", 0.0)) for run in row.runs))
        for row in comparison.finished
    ]
    repeating = [(name, count) for name, count in epochs if count > 1]
    if not repeating:
        return []
    counts = [count for _, count in repeating]
    low, high = (f"{count:.3g}" for count in (min(counts), max(counts)))
    between = low if low == high else f"{low} to {high}"
    who = "every run" if len(repeating) == len(epochs) else "; ".join(some([name for name, _ in repeating]))
    return [f"Text was repeated, {between} epochs: {who}."]


def _redrawn(comparison: Comparison) -> list[str]:
    """Which rows with BPE-dropout read the same tokens in several epochs, which the method draws anew for each."""
    found: list[tuple[str, int, float]] = []
    for row in comparison.finished:
        for run in row.runs:
            encoder, epochs = run.config.get("encoder") or {}, float(run.training.get("epochs") or 0.0)
            draws = int(encoder.get("draws") or 1)
            pairs = (run.config.get("packing") or {}).get("kind") == "pair"  # contexts of documents have no draws
            if pairs and encoder.get("kind") == "dropout" and epochs > draws:
                found.append((_name(comparison, row), draws, epochs))
    if not found:
        return []
    names = "; ".join(some(list(dict.fromkeys(name for name, _, _ in found))))
    draws, epochs = min(draws for _, draws, _ in found), max(epochs for _, _, epochs in found)
    often = "once" if draws == 1 else f"{draws} times"
    return [
        f"BPE-dropout drew tokens {often} for up to {epochs:.3g} epochs, which read the same tokens again, where the "
        f"method draws them anew each time (encoder.draws): {names}."
    ]


def _overlap(comparison: Comparison) -> list[str]:
    """How much of the held-out text stands in training text, which `fairness` proved to be the same in all runs."""
    corpora = [run.corpus for row in comparison.finished for run in row.runs if "overlap" in run.corpus]
    if not corpora:
        return []
    overlap, moved = corpora[0]["overlap"], corpora[0]["moved"]["documents"]
    above = ", ".join(f"above {level} % in {overlap[f'above_{level}']:,}" for level in (80, 50, 20))
    mean = f"{100 * overlap['mean']:.1f} % in the mean"
    near = f"{moved:,} near copies of training text, or of one group with one, had been moved to training"
    return [
        f"Overlap with training text, as the share of a held-out document's 8-grams in one training document: {above} "
        f"of the corpus' {overlap['documents']:,} held-out documents, {mean}; {near if moved else 'none was moved'}."
    ]


def _gaps(comparison: Comparison) -> list[str]:
    return some([line for row in comparison.rows for line in _gaps_of(row, comparison)])


def _gaps_of(row: ComparisonRow, comparison: Comparison) -> list[str]:
    name = _name(comparison, row)
    lines = [f"— {name}: {reason}" for reason in row.missing]
    values = {heading(column): row.cells[column.key].value for column in comparison.columns}
    if row.runs and not row.missing:
        absent = [measure for measure, value in values.items() if value is None]
        lines += [f"— {name}: no value for {', '.join(absent)}"] if absent else []
    broken = [measure for measure, value in values.items() if not math.isfinite(value or 0.0)] if row.runs else []
    return lines + ([f"{name}: not a finite number: {', '.join(broken)}; left out of the tests"] if broken else [])


def _name(comparison: Comparison, row: ComparisonRow) -> str:
    return ", ".join(map(comparison.name, row.labels))


def _cells(comparison: Comparison) -> Iterator[tuple[ComparisonRow, Column, Cell]]:
    for row in comparison.finished:
        for column in comparison.columns:
            yield row, column, row.cells[column.key]
