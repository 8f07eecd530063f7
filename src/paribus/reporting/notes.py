"""What stands under the table: what ± means, what was tested on what, what is missing, and what was equal."""

import math

from paribus.reporting.comparison import Comparison
from paribus.reporting.layout import heading


def notes(comparison: Comparison) -> list[str]:
    """Sentences for under the table, in the order in which a reader needs them."""
    lines = [
        *_reading(comparison),
        *_spread(comparison),
        *_tests(comparison),
        *_truncated(comparison),
        *_repeated(comparison),
        *_gaps(comparison),
    ]
    return [*lines, *comparison.proof.sentences()]


def _reading(comparison: Comparison) -> list[str]:
    parts, counts = [], []
    for column in comparison.columns:
        items = max((row.cells[column.key].items for row in comparison.finished), default=0)
        if column.kind == "accuracy" and column.key.endswith("/mean"):
            counts.append(f"{items:,} items of {column.parts[0].task}")
        elif column.kind == "bits_per_byte":
            counts.append(f"{items:,} held-out documents")
    if any(column.kind == "accuracy" for column in comparison.columns):
        parts.append("Accuracy in %, 'mean' is over the shots")
    if any(column.kind == "bits_per_byte" for column in comparison.columns):
        parts.append("bits per byte of the original UTF-8, lower is better")
    lines = [f"{'; '.join(parts)}. Bold: best of the column."] if parts else []
    if counts:
        last = f"the last {comparison.checkpoints} checkpoints" if comparison.checkpoints > 1 else "the last checkpoint"
        lines.append(f"Scored on {', '.join(counts)}, at {last}.")
    if any(column.key == "final_loss" for column in comparison.columns):
        lines.append(
            "Final loss is per token of the run's own vocabulary: compare bits per byte between tokenizers instead."
        )
    return lines


def _spread(comparison: Comparison) -> list[str]:
    over = {cell.over for row in comparison.finished for cell in row.cells.values() if cell.over}
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
    return lines


def _tests(comparison: Comparison) -> list[str]:
    count = sum(cell.test is not None for row in comparison.finished for cell in row.cells.values())
    if not count:
        return ["No significance test: there is nothing to compare the first row with."]
    by_seed = any(cell.seeds_test is not None for row in comparison.finished for cell in row.cells.values())
    first = ", ".join(comparison.rows[0].labels) or "the only one"
    lines = [
        f"* p < 0.05, ** p < 0.01 against the first row ({first}): two-sided paired t-test over the same items, each "
        "item's score averaged over checkpoints and seeds (and shots, for the mean); p-values adjusted by Holm over "
        f"the {count} tests of the table."
    ]
    if by_seed:
        return [*lines, "Rows with two or more seeds are also tested seed by seed; the larger p-value counts."]
    return [*lines, "The test is over items: it cannot say whether the difference would hold for another seed."]


def _truncated(comparison: Comparison) -> list[str]:
    counts: dict[tuple[str, int], list[int]] = {}
    for row in comparison.finished:
        for run in row.runs:
            for place, count in comparison.scores[run.run_id].truncated.items() if run.scores else ():
                counts.setdefault(place, []).append(count)
    return [
        f"{task}, {shots}-shot: the prompts of {_between(found)} items a run were cut to fit the context."
        for (task, shots), found in sorted(counts.items())
        if max(found)
    ]


def _repeated(comparison: Comparison) -> list[str]:
    """Which rows read text more than once; a row that repeats it has seen less text than its budget says."""
    epochs = [
        (", ".join(row.labels), max(float(run.training.get("epochs", 0.0)) for run in row.runs))
        for row in comparison.finished
    ]
    repeating = [(name, count) for name, count in epochs if count > 1]
    if not repeating:
        return []
    counts = [count for _, count in repeating]
    low, high = (f"{count:.3g}" for count in (min(counts), max(counts)))
    between = low if low == high else f"{low} to {high}"
    who = "every run" if len(repeating) == len(epochs) else "; ".join(name for name, _ in repeating)
    return [f"Text was repeated, {between} epochs: {who}."]


def _between(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _gaps(comparison: Comparison) -> list[str]:
    lines = []
    for row in comparison.rows:
        name = ", ".join(row.labels)
        lines += [f"— {name}: {reason}" for reason in row.missing]
        if row.runs and not row.missing:
            absent = [heading(column) for column in comparison.columns if row.cells[column.key].value is None]
            lines += [f"— {name}: no value for {', '.join(absent)}"] if absent else []
        broken = (
            [heading(column) for column in comparison.columns if not math.isfinite(row.cells[column.key].value or 0.0)]
            if row.runs
            else []
        )
        lines += [f"{name}: not a finite number: {', '.join(broken)}; left out of the tests"] if broken else []
    return lines
