"""What stands under the table about trainings that are not what their rows and budgets say of them."""

from collections.abc import Mapping

from paribus.reporting.notes.prompts import some
from paribus.reporting.table.comparison import Comparison, ComparisonRow


def warnings(comparison: Comparison) -> list[str]:
    """What a reader must know before any number, because it makes rows unlike."""
    unlike = [
        *_lossy(comparison),
        *_brought(comparison),
        *_skipped(comparison),
        *_starts(comparison),
    ]
    return [*unlike, *_survivors(comparison), *held_seeds(comparison)]


def looked_before(looks: Mapping[str, int]) -> list[str]:
    """Warn of earlier reports on fewer seeds of these trainings: `looks` has the seeds of each, by sweep."""
    if not looks:
        return []
    named = ", ".join(f"{name} ({seeds} seeds)" for name, seeds in looks.items())
    return [
        f"Warning: an earlier report judged fewer seeds of these trainings: {named}. If seeds were added because of "
        "what it showed, p-values are too small: looks at 3, 5, 7 and 10 seeds find an effect by chance in some 10 % "
        "of comparisons instead of 5 %. Plan the seeds of a new comparison beforehand."
    ]


def held_seeds(comparison: Comparison) -> list[str]:
    """What the seeds of rows do not vary, so that no spread and no test has it."""
    if not comparison.held:
        return []
    held = " and ".join(f"seeds.{part}" for part in comparison.held)
    return [
        f"Warning: {held} {'is' if len(comparison.held) == 1 else 'are'} the same in all runs of a row: intervals, "
        "tests and detectable differences are over the rest of what a seed moves, and not over this."
    ]


def averaged_weights(comparison: Comparison) -> list[str]:
    """That the models of rows are means of several checkpoints, and of which rows where not of all."""
    numbers = {comparison.row_name(row): _averaged(row) for row in comparison.finished if row.runs}
    if set(numbers.values()) <= {1}:
        return []
    named = [f"{number} in {name}" for name, number in numbers.items() if number > 1]
    alike = len(set(numbers.values())) == 1
    if alike:
        many = f"{max(numbers.values())} checkpoints"
        return [f"Weights that are scored without fine-tuning are the mean of those of {many}, up to the scored one."]
    return [
        "Weights that are scored without fine-tuning are the mean of those of several checkpoints up to the scored "
        f"one, by row: {'; '.join(some(named))}."
    ]


def _averaged(row: ComparisonRow) -> int:
    return int((row.runs[0].config.get("evaluation") or {}).get("average_checkpoints", 1))


def _lossy(comparison: Comparison) -> list[str]:
    """Rows whose models have less to predict than the text that their bits are divided by."""
    rows = [comparison.row_name(row) for row in comparison.finished if row.loses_text(comparison.scores)]
    if not rows:
        return []
    return [
        "Warning: the tokenizers of these rows lose some of the scored text (tokenizer.lossless=false), which their "
        "models need not predict, while bits per byte are of all of it; these are not judged against rows that lose "
        f"none, and compare with each other alone, if at all: {'; '.join(some(rows))}."
    ]


def _brought(comparison: Comparison) -> list[str]:
    """Rows whose tokenizer was there already, beside others: it may have been made of the text that is scored."""
    vocabularies = {run.vocabulary for row in comparison.finished for run in row.runs}
    rows = [
        comparison.row_name(row)
        for row in comparison.finished
        if any((run.config.get("tokenizer") or {}).get("kind") == "existing" for run in row.runs)
    ]
    if not rows or len(vocabularies) < 2:
        return []
    return [
        "Warning: the tokenizers of these rows were there already (tokenizer=existing). On what text they were "
        "trained, and whether held-out text was in it, is not known here, while a tokenizer that a run trains sees "
        f"training text alone: {'; '.join(some(rows))}."
    ]


def _skipped(comparison: Comparison) -> list[str]:
    """Rows whose models did not learn from all that they have read."""
    rows = []
    for row in comparison.finished:
        most = max((float(run.training.get("skipped_steps") or 0.0) for run in row.runs), default=0.0)
        if most:
            steps = max(int(run.training.get("steps") or 0) for run in row.runs)
            rows.append(f"{comparison.row_name(row)}: up to {most:,.0f} of {steps:,} steps")
    if not rows:
        return []
    return [
        "Warning: training.skip_bad_steps left out steps, whose text counts as read although nothing was learned from "
        f"it: {'; '.join(some(rows))}."
    ]


def _starts(comparison: Comparison) -> list[str]:
    """What seeds do not vary where training goes on from checkpoints, and which rows go on from another than theirs."""
    rows = [comparison.row_name(row) for row in comparison.finished if goes_on_otherwise(row, comparison)]
    if rows:
        return [
            "Rows that go on from another checkpoint than the row they are compared with are not judged, since seeds "
            "vary the continuation alone, and another pretraining might have moved them further: "
            f"{'; '.join(some(rows))}."
        ]
    if any(run.start for row in comparison.finished for run in row.runs):
        return ["Training goes on from checkpoints, so seeds vary the continuation alone."]
    return []


def _survivors(comparison: Comparison) -> list[str]:
    """Rows of which some runs diverged, and those of which none is left."""
    diverged = [row for row in comparison.rows if row.diverged]
    lost = [comparison.row_name(row) for row in diverged if not row.runs]
    rows = [f"{comparison.row_name(row)}: {row.diverged} beside {len(row.runs)}" for row in diverged if row.runs]
    told = [f"Runs of these rows diverged and none is left, so they have no numbers: {'; '.join(some(lost))}."]
    if not rows:
        return told if lost else []
    return [
        *(told if lost else []),
        "Warning: some runs of these rows diverged and are not in the numbers, so that those that are left look better "
        f"than the row is: {'; '.join(some(rows))}.",
    ]


def goes_on_otherwise(row: ComparisonRow, comparison: Comparison) -> bool:
    """Whether a row and the one it is compared with go on from different checkpoints, or one from none."""
    base = comparison.rows[row.baseline] if row.baseline is not None else row
    return bool(row.runs and base.runs) and row.runs[0].start != base.runs[0].start
