"""A paper's own table, beside ours."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paribus.reporting.notes.prompts import some
from paribus.reporting.paper.block import Paper, PaperColumn, PaperRow
from paribus.reporting.paper.setting import Setting, described
from paribus.reporting.table.column import Column
from paribus.reporting.table.comparison import Comparison, ComparisonRow

ABSENT = "—"


@dataclass(frozen=True)
class Published:
    """A paper's number for one of our cells, in the paper's unit."""

    number: float
    text: str
    """The number as the paper prints it."""
    parameters: int | None = None
    """Of the paper's model; None where the paper's row is of any size."""


Beside = Mapping[tuple[int, str], Published]
"""By place of our row and key of our column."""


def beside(paper: Paper, comparison: Comparison) -> Beside:
    """The paper's numbers by row and column of ours.

    A row of the paper fits one of ours that has its labels at the factors it names, and was trained with a model, a
    vocabulary and a budget like its own. A row of ours that none fits, or several do, has no number.
    """
    found: dict[tuple[int, str], Published] = {}
    known = {column.key for column in comparison.columns}
    for place, row in enumerate(comparison.rows):
        index = _fitting(row, paper, comparison)
        for position, column in enumerate(paper.columns) if index is not None else ():
            number = paper.numbers[index][position] if paper.numbers and index is not None else None
            if number is not None and index is not None and (key := _key(column, known)):
                text = paper.printed(number, position)
                found[place, key] = Published(number, text, paper.rows[index].setting.parameters)
    return found


def without_number(paper: Paper, comparison: Comparison) -> list[str]:
    """Sentences that say why rows of ours have no number of the paper beside them; none where all have."""
    alone = [row for row in comparison.finished if _fitting(row, paper, comparison) is None] if paper.numbers else []
    others = [row for row in alone if not _labelled(row, paper, comparison)]
    unlike = [row for row in alone if row not in others]
    reasons = [(others, "it has no row of the same choices")] if others else []
    if unlike:
        ours = [Setting.of(run) for row in unlike for run in row.runs]
        theirs = [paper.rows[index].setting for row in unlike for index in _labelled(row, paper, comparison)]
        budget = any(setting.budget for setting in theirs)
        mine, its = described(ours, "another kind", budget=budget), described(theirs, "any size", budget=budget)
        reasons.append((unlike, f"ours have {mine}; its rows of the same choices have {its}"))
    names = [(", ".join(some([comparison.row_name(row) for row in rows])), reason) for rows, reason in reasons]
    return [f"No number of the paper stands beside {who}: {reason}." for who, reason in names]


def side_by_side(paper: Paper, comparison: Comparison) -> list[list[str]]:
    """The paper's table with ours: a header line, then lines of a label and, for each column, theirs, ours, difference.

    Columns that we have not scored have the paper's number alone, and so have all where no row of ours fits one of the
    paper. A row of the paper that several of ours fit has a line for each, with our labels.
    """
    fitting = [_fitting(row, paper, comparison) for row in comparison.rows]
    alone = all(found is None for found in fitting)
    columns = {} if alone else {column.key: column for column in comparison.columns}
    header = [""]
    for column, ours in zip(paper.columns, measured(paper, comparison), strict=True):
        theirs = column.label if alone else f"{column.label} (paper)"
        header += [theirs, *(["(ours)", "(difference)"] if ours and not alone else [])]
    lines = [header]
    for index, row in enumerate(paper.rows):
        numbers = paper.numbers[index] if paper.numbers else (None,) * len(paper.columns)
        alike = [ours for ours, found in zip(comparison.rows, fitting, strict=True) if found == index and ours.runs]
        each: list[ComparisonRow | None] = [*alike] or [None]
        for own in each:
            label = f"{row.label} ({comparison.row_name(own)})" if own and len(alike) > 1 else row.label
            line = [label]
            for position, (number, column) in enumerate(zip(numbers, paper.columns, strict=True)):
                line.append(ABSENT if number is None else paper.printed(number, position))
                if key := _key(column, columns):
                    line += _ours(own, columns[key], number)
            lines.append(line)
    return lines


def measured(paper: Paper, comparison: Comparison) -> list[bool]:
    """For each column of the paper's whether one of ours measures the same."""
    ours = {column.key for column in comparison.columns}
    return [_key(column, ours) is not None for column in paper.columns]


def sentence(paper: Paper) -> str:
    """Where the paper's numbers come from, or that there are none."""
    if paper.numbers is None:
        return " ".join(filter(None, [f"The numbers of {paper.title} have not been entered here.", paper.note]))
    return " ".join(filter(None, [f"{paper.title}.", paper.source and f"Source: {paper.source}.", paper.note]))


def _fitting(row: ComparisonRow, paper: Paper, comparison: Comparison) -> int | None:
    """Place of the one row of the paper that ours is to be read beside; None for none or several."""
    ours = [Setting.of(run) for run in row.runs]
    labelled = _labelled(row, paper, comparison) if ours else []
    alike = [index for index in labelled if all(paper.rows[index].setting.fits(setting) for setting in ours)]
    return alike[0] if len(alike) == 1 else None


def _labelled(row: ComparisonRow, paper: Paper, comparison: Comparison) -> list[int]:
    """Places of the paper's rows of the same choices as ours."""
    return [index for index, wanted in enumerate(paper.rows) if _same(row, wanted, comparison.factors)]


def fits_choices(wanted: PaperRow, labels: Mapping[str, str], configs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a row of ours has the paper's `labels` by factor, and its choices where they are no factors of ours."""
    return bool(wanted.factors) and all(
        labels[factor] == label if factor in labels else all(_chosen(config, factor) == label for config in configs)
        for factor, label in wanted.factors.items()
    )


def _same(row: ComparisonRow, wanted: PaperRow, factors: tuple[str, ...]) -> bool:
    return fits_choices(wanted, dict(zip(factors, row.labels, strict=True)), [run.config for run in row.runs])


def _chosen(config: Mapping[str, Any], path: str) -> str | None:
    """What a configuration has at a path, a group by its kind; None where there is no such."""
    value: Any = config
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return str(value.get("kind") if isinstance(value, Mapping) else value)


def _key(column: PaperColumn, ours: Collection[str]) -> str | None:
    """Which of our columns measures the same: a task's, a group's or the average, or that of a text; None for none."""
    keys = (f"{column.task}/mean", column.task, column.task.replace(":", "/"))
    return next((key for key in keys if key in ours), None)


def _ours(row: ComparisonRow | None, column: Column, number: float | None) -> list[str]:
    cell = row.cells.get(column.key) if row else None
    value = cell.value if cell else None
    if value is None:
        return [ABSENT, ABSENT]
    decimals = 1 if column.decimals is None else column.decimals
    shown = f"{column.factor * value:.{decimals}f}"
    gap = ABSENT if number is None else f"{column.factor * value - number:+.{decimals}f}".replace("-", "−")
    return [shown, gap]
