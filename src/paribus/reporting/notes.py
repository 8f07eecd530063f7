"""What stands under the table: what ± means, what was tested on what, what is missing, and what was equal."""

import math
from collections.abc import Iterator

from paribus.reporting.cells import Cell
from paribus.reporting.columns import AVERAGE
from paribus.reporting.comparison import Comparison, Row
from paribus.reporting.layout import change, heading
from paribus.reporting.measures import Column
from paribus.reporting.prompt_notes import crossed, some, truncated
from paribus.reporting.significance import EXACT_DISCORDANT


def notes(comparison: Comparison) -> list[str]:
    """Sentences for under the table, in the order in which a reader needs them."""
    lines = [
        *_reading(comparison),
        *_spread(comparison),
        *_tests(comparison),
        *_detectable(comparison),
        *_plain(comparison),
        *_beside(comparison),
        *_smaller(comparison),
        *truncated(comparison),
        *crossed(comparison),
        *_repeated(comparison),
        *_gaps(comparison),
    ]
    return [*lines, *comparison.proof.sentences()]


def _smaller(comparison: Comparison) -> list[str]:
    """Which vocabularies ended before the size that was asked for, which the labels of rows may name."""
    ended = []
    for row in comparison.finished:
        for run in row.runs[:1]:
            asked = (run.config.get("tokenizer") or {}).get("vocab_size")
            if asked is not None and run.vocabulary_size is not None and run.vocabulary_size < asked:
                ended.append(f"{comparison.row_name(row)}: {run.vocabulary_size:,} of {asked:,}")
    if not ended:
        return []
    return [f"Vocabularies with fewer tokens than were asked for, as the text has no more: {'; '.join(some(ended))}."]


def _reading(comparison: Comparison) -> list[str]:
    parts, counts, seen = [], [], set()
    for column in comparison.columns:
        items = max((row.cells[column.key].items for row in comparison.finished), default=0)
        if len(column.parts) == 1 and items and column.parts[0].task not in seen:
            seen.add(column.parts[0].task)
            counts.append(f"{items:,} items of {comparison.name(column.parts[0].task)}")
        elif column.kind == "bits_per_byte" and items:
            counts.append(f"{items:,} {f'documents of {column.group}' if column.field else 'held-out documents'}")
    shares = dict.fromkeys(
        family for column in comparison.columns if column.kind == "accuracy" for family in column.families
    )
    if shares:
        named = ", ".join(shares)
        parts.append(f"{named[0].upper()}{named[1:]} in %, 'mean' is over the shots, of tasks over the tasks")
    if whole := [column.label for column in comparison.columns if column.kind == "percent" and len(column.parts) == 1]:
        parts.append(f"{', '.join(dict.fromkeys(whole))} in %, of all items together")
    if any(column.kind == "bits_per_byte" for column in comparison.columns):
        parts.append("bits per byte of the original UTF-8, lower is better")
    lines = [f"{'; '.join(parts)}.{_bold(comparison)}"] if parts else []
    if counts:
        last = f"the last {comparison.checkpoints} checkpoints" if comparison.checkpoints > 1 else "the last checkpoint"
        lines.append(f"Scored on {', '.join(counts)}, at {last}.")
    lines += _averages(comparison)
    if any(column.kind == "perplexity" for column in comparison.columns):
        lines.append(
            "Perplexity is 2 to the mean bits of the text that should follow, whatever its tokens (over seeds, too, of "
            "the mean bits); it is compared and tested in bits."
        )
    return lines


def _averages(comparison: Comparison) -> list[str]:
    """What each mean over tasks is of, and what the mean over all tasks leaves out."""
    lines = []
    every = {part.task: part for column in comparison.columns for part in column.parts}
    for column in comparison.columns:
        tasks = list(dict.fromkeys(part.task for part in column.parts))
        if len(tasks) < 2 and column.key != AVERAGE:
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
    best = {"table": " Bold: best of the column.", "group": " Bold: best of the column in each group of rows."}
    return best.get(comparison.table.bold, "")


def _spread(comparison: Comparison) -> list[str]:
    over = {cell.over for _, _, cell in _cells(comparison) if cell.over}
    seeds = sorted({len(row.runs) for row in comparison.finished if len(row.runs) > 1})
    lines = []
    if "seeds" in over:
        lines.append(
            f"± in rows of several seeds: standard deviation over the seeds ({' or '.join(map(str, seeds))} a row)."
        )
    if "items" in over:
        which = "± in rows of one seed" if "seeds" in over else "±"
        lines.append(
            f"{which}: standard error of the mean over items only (over documents for bits per byte). With one seed "
            "it cannot say how much another seed would change the model."
        )
    if any(cell.checkpoint_spread is not None for _, _, cell in _cells(comparison)):
        lines.append(
            f"After the slash: standard deviation over the last {comparison.checkpoints} checkpoints. They are "
            "near to each other, so it is less than seeds would show."
        )
    return lines


def _tests(comparison: Comparison) -> list[str]:
    tested = [cell for _, _, cell in _cells(comparison) if cell.test is not None]
    if not tested:
        return ["No significance test: there is nothing to compare the first row with."]
    kinds = sorted({cell.test.test for cell in tested if cell.test})
    lines = [
        f"* p < 0.05, ** p < 0.01 against {_baseline(comparison)}: two-sided {' or '.join(kinds)} test over the same "
        "items, each item's score averaged over checkpoints and seeds (and shots, for the mean); p-values adjusted by "
        f"Holm over the {len(tested)} tests of the table."
    ]
    if "McNemar" in kinds:
        lines.append(
            "McNemar's test stands where every item is right or wrong once: exact below "
            f"{EXACT_DISCORDANT} items that only one of two runs got right, else chi-squared. Intervals are of the "
            "paired t-test."
        )
    if any(cell.seeds_test is not None for cell in tested):
        return [
            *lines,
            "Rows with two or more seeds are also tested seed by seed (paired t); the larger p-value counts.",
        ]
    return [*lines, "The test is over items: it cannot say whether the difference would hold for another seed."]


def _baseline(comparison: Comparison) -> str:
    if comparison.table.baseline:
        wanted = ", ".join(" ".join(map(comparison.name, pair)) for pair in comparison.table.baseline.items())
        return f"the row with {wanted} and otherwise the same labels"
    return f"the first row ({', '.join(map(comparison.name, comparison.rows[0].labels)) or 'the only one'})"


def _detectable(comparison: Comparison) -> list[str]:
    found = []
    for column in comparison.columns:
        cells = [row.cells[column.key] for row in comparison.finished]
        known = [cell.mde for cell in cells if cell.mde is not None]
        if known and column.main and not column.key.endswith("_shot"):
            low, high = (_size(bound, column) for bound in (min(known), max(known)))
            found.append(f"{heading(column)} {low if low == high else f'{low} to {high}'}")
    if not found:
        return []
    return [
        "The smallest true difference that these items and seeds would show with a probability of 80 % at p < 0.05, "
        f"before adjustment: {'; '.join(found)}."
    ]


def _size(bound: float, column: Column) -> str:
    return change(bound, column).removeprefix("+")


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


def _gaps(comparison: Comparison) -> list[str]:
    return some([line for row in comparison.rows for line in _gaps_of(row, comparison)])


def _gaps_of(row: Row, comparison: Comparison) -> list[str]:
    name = _name(comparison, row)
    lines = [f"— {name}: {reason}" for reason in row.missing]
    values = {heading(column): row.cells[column.key].value for column in comparison.columns}
    if row.runs and not row.missing:
        absent = [measure for measure, value in values.items() if value is None]
        lines += [f"— {name}: no value for {', '.join(absent)}"] if absent else []
    broken = [measure for measure, value in values.items() if not math.isfinite(value or 0.0)] if row.runs else []
    return lines + ([f"{name}: not a finite number: {', '.join(broken)}; left out of the tests"] if broken else [])


def _name(comparison: Comparison, row: Row) -> str:
    return ", ".join(map(comparison.name, row.labels))


def _cells(comparison: Comparison) -> Iterator[tuple[Row, Column, Cell]]:
    for row in comparison.finished:
        for column in comparison.columns:
            yield row, column, row.cells[column.key]
