"""What stands under the table where runs divide their text into other steps, batches or contexts."""

from collections.abc import Callable

from paribus.config.units import format_size
from paribus.reporting.notes.prompts import some
from paribus.reporting.table.column import BATCH_BYTES, CONTEXT_BYTES, STEPS, Column
from paribus.reporting.table.columns import unequal
from paribus.reporting.table.comparison import Comparison

_WORDS: tuple[tuple[Column, str, Callable[[float], str]], ...] = (
    (STEPS, "steps", "{:,.0f}".format),
    (BATCH_BYTES, "text a step", format_size),
    (CONTEXT_BYTES, "text a context", format_size),
)
_MEANING = {
    STEPS.key: "more steps are more updates of the weights",
    BATCH_BYTES.key: "more text a step is a less noisy update",
    CONTEXT_BYTES.key: "more text a context is more to predict from",
}
_ALIKE = 1.01
"""How many times as many tokens a vocabulary may have and be called of one size."""
_INSTEAD = {"training.batch_bytes": "training.global_batch", "model.context_bytes": "model.context_length"}
_REMEDIES = {BATCH_BYTES.key: "training.batch_bytes", CONTEXT_BYTES.key: "model.context_bytes"}


def other_sizes(comparison: Comparison) -> list[str]:
    """Where runs differ in steps, text a step or text a context: the ranges, what that does, and what takes it out."""
    training = [run.training for row in comparison.finished for run in row.runs]
    found = [(column, name, words) for column, name, words in _WORDS if unequal(column, training)]
    if not found or len(comparison.finished) < 2:
        return []
    ranges = []
    for column, name, words in found:
        values = [float(result[column.field]) for result in training if result.get(column.field) is not None]
        low, high = min(values), max(values)
        apart = f"about {words(low)}, by {high / low - 1:.0%}" if words(low) == words(high) else ""
        ranges.append(f"{name} {apart or f'{words(low)} to {words(high)}'}")
    meaning = ", ".join(_MEANING[column.key] for column, _, _ in found)
    remedies = [_REMEDIES[column.key] for column, _, _ in found if _can_be_made_alike(comparison, column)]
    given = [f"{remedy} (with {_INSTEAD[remedy]}=0)" for remedy in remedies]
    alike = f" {' and '.join(given)} make{'s' if len(remedies) == 1 else ''} them alike." if remedies else ""
    return [f"Not alike in all runs: {'; '.join(ranges)}. This is part of every difference: {meaning}.{alike}"]


def other_vocabularies(comparison: Comparison) -> list[str]:
    """The sizes of vocabularies that differ where the table does not ask what a size does."""
    rows = {
        comparison.row_name(row): run.vocabulary_size
        for row in comparison.finished
        for run in row.runs[:1]
        if run.vocabulary_size is not None
    }
    if "tokenizer.vocab_size" in comparison.factors or not rows or max(rows.values()) <= _ALIKE * min(rows.values()):
        return []
    named = some([f"{name} {size:,}" for name, size in rows.items()])
    return [
        f"Vocabularies are not of one size: {'; '.join(named)} tokens. This is part of every difference: a larger one "
        "cuts text into fewer tokens, and has more parameters."
    ]


def _can_be_made_alike(comparison: Comparison, column: Column) -> bool:
    """Whether some run does not give the size in bytes; where all do, what is left is rounding."""
    remedy = _REMEDIES.get(column.key)
    given = [run.fields.get(remedy, "null") for row in comparison.finished for run in row.runs] if remedy else []
    return "null" in given
