"""What stands under the table about prompts: which were cut, and where tokens cross into a choice."""

from collections.abc import Sequence

from paribus.reporting.compare import Comparison
from paribus.reporting.runs import LeftOut, RunScores

_NAMED = 40
"""Rows that are named one by one."""


def truncated(comparison: Comparison) -> list[str]:
    """Which tasks have prompts that lost their beginning, and what was left out for it."""
    lines = []
    for task, found in comparison.left_out.items():
        name = comparison.name(task)
        if found.kept:
            lines.append(
                f"{name}: of {found.items:,} items {_by_shots(found)} have a prompt that does not fit the context of "
                "some run; all are scored as they were cut, which is not alike in all rows."
            )
        else:
            lines.append(
                f"{name}: {found.cut:,} of {found.items:,} items are left out in all rows, since their prompt does not "
                "fit the context of some run."
            )
    return [*lines, *_cut_sources(comparison), *_cut_documents(comparison)]


def _by_shots(found: LeftOut) -> str:
    """`98 at 5 shots, 3 at 10`."""
    counts = {shots: len(cut) for shots, cut in sorted(found.by_shots.items()) if cut}
    told = [f"{count:,} at {shots}" for shots, count in counts.items()]
    unit = " shot" if next(iter(counts)) == 1 else " shots"
    return ", ".join([told[0] + unit, *told[1:]])


def _cut_sources(comparison: Comparison) -> list[str]:
    """Of pairs, how many targets are scored after a part of their source alone."""
    rows = [
        [comparison.scores[run.run_id] for run in row.runs if run.run_id in comparison.scores]
        for row in comparison.finished
    ]
    counts = [found.cut_sources for row in rows for found in row]
    if not any(counts):
        return []
    alike = "in all rows alike" if len(set(counts)) == 1 else "not alike in all rows, which is part of every difference"
    pairs = max(len(found.heldout) for row in rows for found in row)
    return [
        f"Sources longer than the context lost their end, {_between(counts)} of {pairs:,} held-out pairs, {alike}; a "
        "larger model.context_length keeps them whole."
    ]


def _cut_documents(comparison: Comparison) -> list[str]:
    """Of fine-tuned tasks, how much of a document the models read: what fits the context depends on the tokenizer."""
    runs = [run.run_id for row in comparison.finished for run in row.runs if run.run_id in comparison.scores]
    scores = [comparison.scores[run] for run in runs]
    alike = {True: "in all rows alike", False: "finetuning.document_characters lets all rows read the same"}
    lines = []
    for task in sorted({task for score in scores for task, cut in score.documents_cut.items() if cut}):
        sizes = [score.document_bytes[task] for score in scores if task in score.document_bytes]
        lines.append(
            f"{comparison.name(task)}: documents lost their end where a prompt does not fit the context; the models "
            f"read {_between([round(size) for size in sizes])} bytes of one on average, {alike[len(set(sizes)) == 1]}."
        )
    return lines


def crossed(comparison: Comparison) -> list[str]:
    """Which rows have tokens across the boundary of context and choice, and how well those were scored."""
    named, omitted = [], 0.0
    for row in comparison.finished:
        scores = [comparison.scores[run.run_id] for run in row.runs if run.run_id in comparison.scores]
        places = sorted({place for score in scores for place, count in score.crossed_choices.items() if count})
        omitted = max([omitted, *(score.omitted for score in scores)])
        counts = [_crossing(comparison, scores, place) for place in places]
        named += [f"{comparison.row_name(row)}: {', '.join(counts)}"] if counts else []
    if not named:
        return []
    left = f"at most a share of {omitted:.1g} of a probability was left out" if omitted else "nothing was left out"
    return [
        "A token crosses from the context into the choice; these are scored as text, by the sum over all tokens that "
        f"spell it ({left}): {'; '.join(some(named))}."
    ]


def _crossing(comparison: Comparison, scores: Sequence[RunScores], place: tuple[str, int]) -> str:
    """Choices and items of a task and number of shots that have such a token, in the runs of a row."""
    task, shots = place
    choices, items = (
        [found.get(place, 0) for found in counts]
        for counts in ([score.crossed_choices for score in scores], [score.crossed_items for score in scores])
    )
    total = max(
        (len(block.items) for score in scores for key, block in score.blocks.items() if key[:2] == place), default=0
    )
    total = comparison.left_out[task].items if task in comparison.left_out else total
    name = f"{comparison.name(task)} {shots}-shot"
    return f"{name} {_between(choices)} choices in {_between(items)} of {total:,} items"


def some(lines: Sequence[str]) -> list[str]:
    """The first lines, and how many more there are."""
    more = len(lines) - _NAMED
    return [*lines[:_NAMED], *([f"and {more:,} more; report.csv names all"] if more > 0 else [])]


def _between(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
