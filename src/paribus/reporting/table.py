"""Comparison as text, with a paper's numbers beside ours.

Words, numbers, marks and links are the same for every output format.
"""

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from paribus.config.units import format_count, format_hours, format_size
from paribus.reporting.columns import Cell
from paribus.reporting.compare import Arm, Comparison
from paribus.reporting.judgement import most_seeds
from paribus.reporting.measures import SEEDS_TO_JUDGE, Kind, Measure
from paribus.reporting.paper import Paper, PaperColumn, PaperRow, Setting, describe_settings

_ROUNDING = 1e-9
_NUMBER_FORMATS: Mapping[Kind, Callable[[float], str]] = {
    "count": format_count,
    "size": format_size,
    "flops": "{:.2e}".format,
    "hours": format_hours,
    "perplexity": lambda value: f"{value:,.2f}" if value < 1_000 else f"{value:,.0f}",
}
_DECIMALS: Mapping[Kind, int] = {"accuracy": 1, "percent": 2}
_MOST_DECIMALS = 8
_NAMED = 40
"""Largest number of rows that a sentence lists."""
EXPLORATORY = "†"
LEVELS = ((0.01, "**"), (0.05, "*"))

ABSENT = "—"


@dataclass(frozen=True)
class TableEntry:
    """The text of one cell: value, spreads without ±, significance mark, link, and the paper's number."""

    text: str = ABSENT
    spread: str = ""
    checkpoints: str = ""
    """Spread over checkpoints."""
    mark: str = ""
    best: bool = False
    href: str = ""
    paper: str = ""
    """The paper's number."""
    gap: str = ""
    """Ours minus the paper's, with its sign."""
    sort: float | None = None
    """Number by which a column of entries is sorted."""

    @property
    def spreads(self) -> str:
        """Both spreads: `0.4`, or `0.4/0.2` with that over checkpoints."""
        return f"{self.spread}/{self.checkpoints}" if self.checkpoints else self.spread

    @property
    def paper_text(self) -> str:
        """The paper's number and our difference from it."""
        return f"[{self.paper}, {self.gap}]" if self.paper else ""


@dataclass(frozen=True)
class TableLine:
    """One row of text. `number` counts from 1 and names the row's place in the list of runs."""

    number: int
    labels: tuple[str, ...]
    entries: tuple[TableEntry, ...]
    run_ids: tuple[str, ...]
    starts_group: bool
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableLayout:
    """One table of text; `note` follows the title in its caption."""

    title: str
    factors: tuple[str, ...]
    columns: tuple[Measure, ...]
    lines: tuple[TableLine, ...]
    chance: tuple[TableEntry, ...] | None = None
    note: str = ""
    primary: frozenset[str] = frozenset()
    """Keys of columns that decide the question."""

    @property
    def caption(self) -> str:
        """Title and note."""
        return f"{self.title}. {self.note}" if self.note else self.title

    def of(self, places: Sequence[int]) -> "TableLayout":
        """The table with only the columns at these places."""

        def select(entries: Sequence[TableEntry]) -> tuple[TableEntry, ...]:
            return tuple(entries[place] for place in places)

        return replace(
            self,
            columns=tuple(self.columns[place] for place in places),
            lines=tuple(replace(line, entries=select(line.entries)) for line in self.lines),
            chance=None if self.chance is None else select(self.chance),
        )


@dataclass(frozen=True)
class Published:
    """A paper's number for one of our cells, in the paper's unit."""

    number: float
    text: str
    """The number as the paper prints it."""
    parameters: int | None = None
    """Parameters of the paper's model; None where the paper's row is of any size."""


Beside = Mapping[tuple[int, str], Published]
"""Published numbers by place of our row and key of our column."""


def layouts(comparison: Comparison, directory: Path, beside: Beside | None = None) -> list[TableLayout]:
    """The table of scores, and the table of what each run read and cost; links are relative to `directory`."""
    links = [
        link(row.runs[0].directory, directory) if len(row.runs) == 1 else f"#row-{number}"
        for number, row in enumerate(comparison.rows, start=1)
    ]
    parts = {
        "Scores": [column for column in comparison.columns if column.scored],
        "Text and training": [column for column in comparison.columns if not column.scored],
    }
    return [_layout(title, columns, comparison, links, beside or {}) for title, columns in parts.items() if columns]


def quantity(value: float | None, column: Measure) -> str:
    """A number as a table shows it: shares in percent, sizes and counts with units."""
    if value is None:
        return ABSENT
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if column.decimals is None and column.kind in _NUMBER_FORMATS:
        return _NUMBER_FORMATS[column.kind](value)
    decimals = _DECIMALS.get(column.kind, 3) if column.decimals is None else column.decimals
    return f"{column.factor * value:.{decimals}f}"


def signed(value: float, column: Measure) -> str:
    """A difference with its sign."""
    text = quantity(abs(value), column)
    return f"−{text}" if value < 0 else f"+{text}"


def change(value: float, column: Measure) -> str:
    """A difference with its sign; that of perplexities in bits, as it was tested (2 to its power is their ratio)."""
    if column.kind != "perplexity":
        return signed(value, column)
    return f"{'−' if value < 0 else '+'}{abs(value):.3f} bits"


def readable(column: Measure, value: float) -> Measure:
    """The column with enough decimals to show two digits of a difference, in a sentence."""
    decimals = _DECIMALS.get(column.kind, 3) if column.decimals is None else column.decimals
    shown = column.factor * abs(value)
    if not 0 < shown < math.inf:
        return column
    return replace(column, decimals=max(decimals, min(1 - math.floor(math.log10(shown)), _MOST_DECIMALS)))


def size(value: float, column: Measure) -> str:
    """The size of a difference in a sentence, with its unit where the column has one."""
    column = readable(column, value)
    return f"{change(abs(value), column).removeprefix('+')}{unit_of(column)}"


def unit_of(column: Measure) -> str:
    """Unit of a difference in a sentence: shares differ by points."""
    return " points" if column.factor > 1 else ""


def mark_of(p_value: float | None) -> str:
    """The significance mark of an adjusted p-value."""
    return next((mark for level, mark in LEVELS if p_value is not None and p_value < level), "")


def link(target: Path, directory: Path) -> str:
    """A relative URL from the report's directory to a run's."""
    return quote(Path(os.path.relpath(target.resolve(), directory.resolve())).as_posix())


def heading(column: Measure) -> str:
    """Name of a column in one line."""
    return f"{column.group} {column.label}" if column.scored else column.label


def first_lines(lines: Sequence[str]) -> list[str]:
    """The first lines, and a line with the number of the others."""
    more = len(lines) - _NAMED
    return [*lines[:_NAMED], *([f"and {more:,} more; report.csv names all"] if more > 0 else [])]


def seeds_note(comparison: Comparison) -> str:
    """Caption's note on ±, and on seeds where there are too few to judge."""
    scored = [column for column in comparison.columns if column.scored]
    cells = [row.cells[column.key] for row in comparison.finished for column in scored]
    over = {cell.over for cell in cells if cell.over and cell.half_width is not None}
    held = " and ".join(f"seeds.{part}" for part in comparison.held)
    interval = {
        frozenset({"seeds"}): f"±: half the 95 % interval over seeds{f' (with {held} held)' if held else ''} and items",
        frozenset({"items"}): "±: half the 95 % interval over items alone",
    }.get(frozenset(over), "±: half the 95 % interval" if over else "")
    most = [most_seeds(row.cells, scored) for row in comparison.finished]
    few = [seeds for seeds in most if seeds is not None and seeds < SEEDS_TO_JUDGE]
    if not few:
        return interval
    warning = "Rows have fewer than three seeds: these cannot say which is better"
    if len(few) < len(comparison.finished):
        warning = "Some rows have fewer than three seeds: these cannot say which is better"
    if len(comparison.proof.seeds) == 1:
        warning = f"One seed ({comparison.proof.seeds[0]}) a row: this cannot say which is better"
    return f"{interval}. {warning}" if interval else warning


def _layout(
    title: str, columns: Sequence[Measure], comparison: Comparison, links: Sequence[str], beside: Beside
) -> TableLayout:
    lines, previous = [], None
    for place, row in enumerate(comparison.rows):
        entries = tuple(
            _entry(row.cells.get(column.key, Cell()), column, links[place], beside.get((place, column.key)))
            for column in columns
        )
        labels = tuple(map(comparison.name, row.labels))
        if row.missing and row.runs and labels:
            labels = (*labels[:-1], f"{labels[-1]} ({len(row.missing)} missing)")
        starts = len(row.labels) > 1 and previous is not None and row.labels[0] != previous
        previous = row.labels[0] if row.labels else None
        ids = tuple(run.run_id for run in row.runs)
        lines.append(TableLine(place + 1, labels, entries, ids, starts, row.missing))
    marked_columns = tuple(
        replace(column, label=f"{column.label} {EXPLORATORY}")
        if comparison.exploratory and column.scored and column.key not in comparison.primary
        else column
        for column in columns
    )
    guesses = tuple(
        TableEntry(quantity(comparison.chance[column.key], column) if column.key in comparison.chance else "")
        for column in columns
    )
    chance = guesses if any(entry.text for entry in guesses) else None
    factors = tuple(map(comparison.name, comparison.factors))
    note = seeds_note(comparison) if columns[0].scored else ""
    return TableLayout(title, factors, marked_columns, tuple(lines), chance, note, comparison.primary)


def _entry(cell: Cell, column: Measure, href: str, paper: Published | None) -> TableEntry:
    if cell.value is None:
        return TableEntry()
    spread = quantity(cell.half_width, column) if cell.half_width is not None and spread_shows(column, cell) else ""
    steps = quantity(cell.checkpoint_spread, column) if cell.checkpoint_spread is not None else ""
    return TableEntry(
        text=quantity(cell.value, column),
        spread=spread,
        checkpoints=steps if spread else "",
        mark=mark_of(cell.p_adjusted),
        best=cell.best,
        href=href,
        paper="" if paper is None else paper.text,
        gap="" if paper is None else signed(cell.value - paper.number / column.factor, column),
        sort=cell.value if math.isfinite(cell.value) else None,
    )


def spread_shows(column: Measure, cell: Cell) -> bool:
    """True unless the column is a measure of the whole run that no seed changed."""
    return column.scored or (cell.half_width or 0.0) > _ROUNDING * abs(cell.value or 0.0)


def paper_numbers(paper: Paper, comparison: Comparison) -> Beside:
    """The paper's numbers by row and column of ours.

    A row of the paper fits one of ours that has its labels at the factors it names, and was trained with a model, a
    vocabulary and a budget like its own. A row of ours that none fits, or several do, has no number.
    """
    numbers: dict[tuple[int, str], Published] = {}
    known = {column.key for column in comparison.columns}
    for place, row in enumerate(comparison.rows):
        index = _paper_row(row, paper, comparison)
        for position, column in enumerate(paper.columns) if index is not None else ():
            number = paper.numbers[index][position] if paper.numbers and index is not None else None
            if number is not None and index is not None and (key := _column_key(column, known)):
                text = paper.printed(number, position)
                numbers[place, key] = Published(number, text, paper.rows[index].setting.parameters)
    return numbers


def without_number(paper: Paper, comparison: Comparison) -> list[str]:
    """Reasons why rows of ours have no number of the paper, as sentences; empty where all have one."""
    alone = [row for row in comparison.finished if _paper_row(row, paper, comparison) is None] if paper.numbers else []
    others = [row for row in alone if not _rows_of_same_choices(row, paper, comparison)]
    unlike = [row for row in alone if row not in others]
    reasons = [(others, "it has no row of the same choices")] if others else []
    if unlike:
        alike = [index for row in unlike for index in _rows_of_same_choices(row, paper, comparison)]
        theirs = [paper.rows[index].setting for index in alike]
        budget = any(setting.budget for setting in theirs)
        ours = [Setting.of(run) for row in unlike for run in row.runs]
        mine = describe_settings(ours, "another kind", budget=budget)
        its = describe_settings(theirs, "any size", budget=budget)
        reasons.append((unlike, f"ours have {mine}; its rows of the same choices have {its}"))
    names = [(", ".join(first_lines([comparison.row_name(row) for row in rows])), reason) for rows, reason in reasons]
    return [f"No number of the paper stands beside {who}: {reason}." for who, reason in names]


def side_by_side(paper: Paper, comparison: Comparison) -> list[list[str]]:
    """The paper's table with ours: a header line, then lines of a label and, for each column, theirs, ours, difference.

    Columns that we have not scored have only the paper's number, and so have all where no row of ours fits one of the
    paper. A row of the paper that several of ours fit has a line for each, with our labels.
    """
    fitting = [_paper_row(row, paper, comparison) for row in comparison.rows]
    alone = all(place is None for place in fitting)
    columns = {} if alone else {column.key: column for column in comparison.columns}
    header = [""]
    for column, ours in zip(paper.columns, measured_columns(paper, comparison), strict=True):
        theirs = column.label if alone else f"{column.label} (paper)"
        header += [theirs, *(["(ours)", "(difference)"] if ours and not alone else [])]
    lines = [header]
    for index, row in enumerate(paper.rows):
        numbers = paper.numbers[index] if paper.numbers else (None,) * len(paper.columns)
        alike = [ours for ours, place in zip(comparison.rows, fitting, strict=True) if place == index and ours.runs]
        arms: list[Arm | None] = [*alike] or [None]
        for arm in arms:
            line = [f"{row.label} ({comparison.row_name(arm)})" if arm and len(alike) > 1 else row.label]
            for position, (number, column) in enumerate(zip(numbers, paper.columns, strict=True)):
                line.append(ABSENT if number is None else paper.printed(number, position))
                if key := _column_key(column, columns):
                    measure, cell = columns[key], arm.cells.get(key) if arm else None
                    value = None if cell is None or cell.value is None else measure.factor * cell.value
                    line += ours_and_difference(value, number, 1 if measure.decimals is None else measure.decimals)
            lines.append(line)
    return lines


def measured_columns(paper: Paper, comparison: Comparison) -> list[bool]:
    """Flags, one a column of the paper: true if one of our columns measures the same."""
    ours = {column.key for column in comparison.columns}
    return [_column_key(column, ours) is not None for column in paper.columns]


def paper_sentence(paper: Paper) -> str:
    """Source of the paper's numbers, or that there are none."""
    if paper.numbers is None:
        return " ".join(filter(None, [f"The numbers of {paper.title} have not been entered here.", paper.note]))
    return " ".join(filter(None, [f"{paper.title}.", paper.source and f"Source: {paper.source}.", paper.note]))


def _paper_row(row: Arm, paper: Paper, comparison: Comparison) -> int | None:
    """Place of the only row of the paper that fits ours; None if none or several do."""
    ours = [Setting.of(run) for run in row.runs]
    labelled = _rows_of_same_choices(row, paper, comparison) if ours else []
    alike = [index for index in labelled if all(paper.rows[index].setting.fits(setting) for setting in ours)]
    return alike[0] if len(alike) == 1 else None


def _rows_of_same_choices(row: Arm, paper: Paper, comparison: Comparison) -> list[int]:
    choices = dict(zip(comparison.factors, row.labels, strict=True))
    configs = [run.config for run in row.runs]
    return [index for index, paper_row in enumerate(paper.rows) if fits_choices(paper_row, choices, configs)]


def fits_choices(paper_row: PaperRow, labels: Mapping[str, str], configs: Sequence[Mapping[str, Any]]) -> bool:
    """True if a row of ours has the paper's `labels` by factor, and its choices where they are no factors of ours."""
    return bool(paper_row.factors) and all(
        labels[factor] == label
        if factor in labels
        else all(_configured_choice(config, factor) == label for config in configs)
        for factor, label in paper_row.factors.items()
    )


def _configured_choice(config: Mapping[str, Any], path: str) -> str:
    """Value of a configuration at a path, of a group its kind; "None" where there is none."""
    value: Any = config
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return str(value.get("kind") if isinstance(value, Mapping) else value)


def _column_key(column: PaperColumn, ours: Collection[str]) -> str | None:
    """Key of our column that measures the same: a task's, a group's, the average's or a text's; None for none."""
    keys = (f"{column.task}/mean", column.task, column.task.replace(":", "/"))
    return next((key for key in keys if key in ours), None)


def ours_and_difference(ours: float | None, printed: float | None, decimals: int) -> list[str]:
    """A number of ours, in the paper's unit, and its difference from the paper's."""
    numbers = ours, None if ours is None or printed is None else ours - printed
    texts = (
        "" if number is None else f"{number:{sign}.{decimals}f}" for number, sign in zip(numbers, "-+", strict=True)
    )
    return [text.replace("-", "−") or ABSENT for text in texts]
