"""The tables of tokenizers on a terminal, with the columns that it has room for."""

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from paribus.reporting.formats.bare_table import bare_table
from paribus.reporting.tokenizers.columns import LEGEND, TokenColumn, columns_of, shown
from paribus.reporting.tokenizers.row import Number, TokenRow

_GAP = 2
"""Characters between columns."""


def terminal_table(
    title: str, rows: Sequence[TokenRow], head: str, found: Sequence[Mapping[str, Number]], width: int
) -> Table:
    """The columns that say most, as many as fit; the files have all of them."""
    columns = [column for column in columns_of(found) if not column.wide]
    cells = {column.name: [shown(column, own) for own in found] for column in columns}
    left = max(len(row.name) for row in rows)
    fitting = _fitting(columns, cells, width - left)
    caption = f"{LEGEND.partition(' tokens/word')[0]} The files have more columns, lengths of tokens and pictures."
    table = bare_table(title, caption)
    table.add_column(head, overflow="fold", min_width=min(left, width // 2))
    for column in fitting:
        table.add_column(column.heading, justify="right")
    for place, row in enumerate(rows):
        table.add_row(Text(row.name), *(cells[column.name][place] for column in fitting))
    return table


def plain_table(title: str, lines: Sequence[Sequence[str]], width: int, caption: str | None = None) -> Table:
    """Lines of text, the first of which are headings; columns without one, and the first, hold names. What is in
    brackets goes below its number where the lines are too wide, and the last columns go where they still are.
    """
    left = min(max(len(line[0]) for line in lines[1:]), width // 2)
    count = _first_that_fit(lines, width - left)
    if count < len(lines[0]):
        lines = [[cell.replace(" (", "\n(") for cell in line] for line in lines]
        count = _first_that_fit(lines, width - left)
    fewer = "The files have more columns." if count < len(lines[0]) else ""
    table = bare_table(title, " ".join(filter(None, (caption, fewer))))
    table.add_column(lines[0][0], overflow="fold", min_width=left)
    for heading in lines[0][1:count]:
        # Numbers never fold, so that rich takes what is missing from names alone.
        table.add_column(heading, justify="right" if heading else "left", overflow="fold", no_wrap=bool(heading))
    for line in lines[1:]:
        table.add_row(*map(Text, line[:count]))
    return table


def _first_that_fit(lines: Sequence[Sequence[str]], width: int) -> int:
    """How many columns, the first among them, the others of which fit into a width."""
    for place, heading in enumerate(lines[0]):
        if place:
            breaks = "\n" if heading else None
            width -= _GAP + max(len(part) for line in lines for part in line[place].split(breaks) or [""])
            if width < 0:
                return place
    return len(lines[0])


def _fitting(columns: Sequence[TokenColumn], cells: Mapping[str, Sequence[str]], width: int) -> list[TokenColumn]:
    """The columns that fit, those of the lowest rank first, in their own order."""
    kept: set[str] = set()
    for column in sorted(columns, key=lambda column: column.rank):
        width -= _GAP + max(map(len, [column.heading, *cells[column.name]]))
        if width < 0:
            break
        kept.add(column.name)
    return [column for column in columns if column.name in kept]
