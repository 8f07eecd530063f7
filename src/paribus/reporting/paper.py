"""A paper's own table, beside ours."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from paribus.config.units import format_count
from paribus.reporting.columns import AVERAGE
from paribus.reporting.comparison import Comparison, Row
from paribus.reporting.measures import Column
from paribus.reporting.paper_block import Paper, PaperColumn, PaperRow

ABSENT = "—"
OTHER_SIZE = "†"
"""Stands after a paper's number of a model of another size than ours."""
_SAME_SIZE = 1.5
"""Ratio of parameters up to which models are of one size: vocabularies of 32K and 128K differ by as much."""


@dataclass(frozen=True)
class Published:
    """A paper's number for one of our cells, in the paper's unit."""

    number: float
    parameters: int | None = None
    """Of the paper's model; None where the paper's row is of any size."""
    other_size: bool = False
    """Whether ours is of none of the paper's sizes, and this is the one the experiment file names."""


Beside = Mapping[tuple[int, str], Published]
"""By place of our row and key of our column."""


def beside(paper: Paper, comparison: Comparison) -> Beside:
    """The paper's numbers by row and column of ours.

    A row of the paper fits one of ours that has its labels at the factors it names, and a model of its size where it
    names one. Beside a model that has none of the sizes of the paper's rows with these labels stand those of
    `paper.reference`. A row of ours that several of the paper's fit has none.
    """
    found: dict[tuple[int, str], Published] = {}
    known = {column.key for column in comparison.columns}
    for place, row in enumerate(comparison.rows):
        index = _fitting(row, paper, comparison)
        for position, column in enumerate(paper.columns) if index is not None else ():
            number = paper.numbers[index][position] if paper.numbers and index is not None else None
            if number is not None and index is not None and _key(column) in known:
                wanted = paper.rows[index]
                found[place, _key(column)] = Published(number, wanted.parameters, not _of_its_size(row, wanted))
    return found


def size_note(numbers: Beside) -> list[str]:
    """A sentence where numbers of models of another size stand beside ours."""
    sizes = sorted({number.parameters for number in numbers.values() if number.other_size and number.parameters})
    if not sizes:
        return []
    named = " and ".join(format_count(size) for size in sizes)
    return [f"{OTHER_SIZE} The paper's model has {named} parameters, ours another number: no value to be reached here."]


def side_by_side(paper: Paper, comparison: Comparison) -> list[list[str]]:
    """The paper's table with ours: a header line, then lines of a label and, for each column, theirs, ours, difference.

    Columns that we have not scored have the paper's number alone.
    """
    columns = {column.key: column for column in comparison.columns}
    header = [""]
    for column in paper.columns:
        header += [f"{column.label} (paper)", *(["(ours)", "(difference)"] if _key(column) in columns else [])]
    lines = [header]
    fitting = [_fitting(row, paper, comparison) for row in comparison.rows]
    for index, row in enumerate(paper.rows):
        ours = next((o for o, found in zip(comparison.rows, fitting, strict=True) if found == index and o.runs), None)
        line = [row.label]
        for position, column in enumerate(paper.columns):
            number = paper.numbers[index][position] if paper.numbers else None
            line.append(ABSENT if number is None else f"{number:g}")
            if _key(column) in columns:
                line += _ours(ours, columns[_key(column)], number)
        lines.append(line)
    return lines


def sentence(paper: Paper) -> str:
    """Where the paper's numbers come from, or that there are none."""
    if paper.numbers is None:
        return " ".join(filter(None, [f"The numbers of {paper.title} have not been entered here.", paper.note]))
    return " ".join(filter(None, [f"{paper.title}.", paper.source and f"Source: {paper.source}.", paper.note]))


def _fitting(row: Row, paper: Paper, comparison: Comparison) -> int | None:
    """Place of the one row of the paper that ours is to be read beside; None for none or several."""
    labelled = [index for index, wanted in enumerate(paper.rows) if _same(row, wanted, comparison.factors)]
    sized = [index for index in labelled if _of_its_size(row, paper.rows[index])]
    if not sized and paper.reference is not None:
        sized = [index for index in labelled if paper.rows[index].parameters == paper.reference]
    return sized[0] if len(sized) == 1 else None


def _same(row: Row, wanted: PaperRow, factors: tuple[str, ...]) -> bool:
    labels = dict(zip(factors, row.labels, strict=True))
    return bool(wanted.factors) and all(labels.get(factor) == label for factor, label in wanted.factors.items())


def _of_its_size(row: Row, wanted: PaperRow) -> bool:
    """Whether the paper's row is of any size or of ours; a row of ours without a run has no size."""
    if wanted.parameters is None:
        return True
    sizes = [float(run.training.get("parameters") or 0) for run in row.runs]
    bound = math.log(_SAME_SIZE)
    return bool(sizes) and all(size > 0 and abs(math.log(size / wanted.parameters)) <= bound for size in sizes)


def _key(column: PaperColumn) -> str:
    """Our column that measures the same."""
    return AVERAGE if column.task in (AVERAGE, "avg") else f"{column.task}/mean"


def _ours(row: Row | None, column: Column, number: float | None) -> list[str]:
    cell = row.cells.get(column.key) if row else None
    value = cell.value if cell else None
    if value is None:
        return [ABSENT, ABSENT]
    decimals = 1 if column.decimals is None else column.decimals
    shown = f"{column.factor * value:.{decimals}f}"
    gap = ABSENT if number is None else f"{column.factor * value - number:+.{decimals}f}".replace("-", "−")
    return [shown, gap]
