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
    """Lines of text, the first of which are headings; columns without one, and the first, hold names."""
    table = bare_table(title, caption)
    left = max(len(line[0]) for line in lines[1:])
    for place, heading in enumerate(lines[0]):
        narrow = min(left, width // 2) if place == 0 else None
        table.add_column(heading, justify="right" if place and heading else "left", overflow="fold", min_width=narrow)
    for line in lines[1:]:
        table.add_row(*map(Text, line))
    return table


def _fitting(columns: Sequence[TokenColumn], cells: Mapping[str, Sequence[str]], width: int) -> list[TokenColumn]:
    """The columns that fit, those of the lowest rank first, in their own order."""
    kept: set[str] = set()
    for column in sorted(columns, key=lambda column: column.rank):
        width -= _GAP + max(map(len, [column.heading, *cells[column.name]]))
        if width < 0:
            break
        kept.add(column.name)
    return [column for column in columns if column.name in kept]
