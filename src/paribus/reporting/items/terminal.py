"""Items for a terminal: how rows stand in each task, and items one below the other with what each row answered."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from paribus.reporting.formats.shown_text import beginning, end
from paribus.reporting.items.listed import ListedItem, Overview, RowOfItem
from paribus.reporting.items.pairs import Pair
from paribus.reporting.items.scored import Kind, Scored
from paribus.reporting.table.column import PERCENT
from paribus.reporting.table.comparison import Comparison

_INDENT = 3
_LINES_OF_TEXT = 3
_LONGEST_NAME = 40
_RAGGED = 8
"""Cells of a line that words of which the next does not fit leave empty, about."""
_LEAST = 20
"""Cells of a line, however narrow the terminal."""
_RIGHT, _OTHER = "✓", "·"
_HEADINGS: Mapping[Kind, str] = {"right": "task", "score": "task", "documents": "bits a byte of"}


def overview_tables(overviews: Sequence[Overview], comparison: Comparison) -> list[Table]:
    """Answers that are right or wrong, scores and documents, a table each: of one task with a line for each row that is
    compared with one baseline, else of each row with a line for each task; where nothing is compared, what rows have.
    """
    places = list(dict.fromkeys((pair.row, pair.baseline) for each in overviews for pair in each.pairs))
    if not places:
        return [_alone(overviews, place, comparison) for place, row in enumerate(comparison.rows) if row.runs]
    names = {
        place: beginning(comparison.row_name(comparison.rows[place]), _LONGEST_NAME) for place in {*sum(places, ())}
    }
    bases = {base for _, base in places}
    if len(overviews) == 1 and len(bases) == 1:
        (about,), (base,) = overviews, bases
        lines = [_Line(names[pair.row], about, pair) for pair in about.pairs]
        return [_compared(f"A: {names[base]}", "B", lines)]
    tables: list[Table] = []
    for row, base in places:
        lines = [
            _Line(_named(about.scored), about, pair)
            for about in overviews
            for pair in about.pairs
            if (pair.row, pair.baseline) == (row, base)
        ]
        title = f"A: {names[base]}, B: {names[row]}"
        for kind, heading in _HEADINGS.items():
            if chosen := [line for line in lines if line.about.scored.kind == kind]:
                tables.append(_compared(title, heading, chosen))
                title = ""
    return tables


@dataclass(frozen=True)
class _Line:
    """Two rows in one task."""

    label: str
    about: Overview
    pair: Pair


def _compared(title: str, heading: str, lines: Sequence[_Line]) -> Table:
    """Columns: what the line is of, items, numbers; `equal` where there are such."""
    kind = lines[0].about.scored.kind
    columns = [_right_columns(line) if kind == "right" else _other_columns(line) for line in lines]
    if not any(line.pair.equal for line in lines):
        for found in columns:
            found.pop("equal", None)
    table = _table(title, (heading, *columns[0]))
    for line, found in zip(lines, columns, strict=True):
        table.add_row(Text(line.label), *found.values())
    return table


def _right_columns(line: _Line) -> dict[str, str]:
    pair = line.pair
    counts = {
        "items": line.about.items,
        "answers": pair.answers,
        "both right": pair.both or 0,
        "only A": pair.better_baseline,
        "only B": pair.better_row,
        "neither": pair.neither or 0,
    }
    return {name: f"{count:,}" for name, count in counts.items()} | {"B − A, %": _signed(100 * pair.difference, 2)}


def _other_columns(line: _Line) -> dict[str, str]:
    scored, pair = line.about.scored, line.pair
    documents = scored.kind == "documents"
    counts = {
        "A fewer" if documents else "A better": pair.better_baseline,
        "B fewer" if documents else "B better": pair.better_row,
        "equal": pair.equal,
    }
    return (
        {"documents" if documents else "items": f"{line.about.items:,}"}
        | {"A": _value(scored, pair.value_baseline), "B": _value(scored, pair.value_row)}
        | {name: f"{count:,}" for name, count in counts.items()}
        | {"B − A": _signed(pair.difference * scored.column.factor, _decimals(scored))}
    )


def _alone(overviews: Sequence[Overview], place: int, comparison: Comparison) -> Table:
    table = _table(comparison.row_name(comparison.rows[place]), ("", "items", "mean"))
    for about in overviews:
        if (value := about.values[place]) is not None:
            table.add_row(Text(_named(about.scored)), f"{about.items:,}", _value(about.scored, value))
    return table


def _table(title: str, headings: Sequence[str]) -> Table:
    table = Table(
        title=Text(title) if title else None, title_justify="left", title_style="bold", box=SIMPLE_HEAD,
        show_edge=False, padding=(0, 1, 0, 0),
    )  # fmt: skip
    table.add_column(headings[0], overflow="fold")
    for heading in headings[1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _named(scored: Scored) -> str:
    return scored.name if scored.metric in ("acc", "bits_per_byte") else f"{scored.name} ({scored.metric})"


def _decimals(scored: Scored) -> int:
    return 2 if scored.column.kind in ("accuracy", "percent") else 4


def _signed(value: float, decimals: int) -> str:
    text = f"{value:+.{decimals}f}".replace("-", "−")
    return text if text.strip("+−0.") else text[1:]


def _value(scored: Scored, value: float) -> str:
    return f"{value * scored.column.factor:.{_decimals(scored)}f}".replace("-", "−")


def item_blocks(
    scored: Scored, items: Sequence[ListedItem], comparison: Comparison, console: Console
) -> Iterator[Text]:
    """The items, each with its texts and a line for each row, in lines that fit the console."""
    names = [beginning(comparison.row_name(row), _LONGEST_NAME) for row in comparison.rows]
    room = max(console.width - _INDENT, _LEAST)
    for number, item in enumerate(items, start=1):
        lines = [*_texts(scored, item, room), *_rows(scored, item, names, comparison, room)]
        indented = (Text(" " * _INDENT).append_text(part) for line in lines for part in line.wrap(console, room))
        yield Text("\n").join([_head(number, item, console.width), *indented]).append("\n")


def _head(number: int, item: ListedItem, width: int) -> Text:
    about = [f"{item.size:,} bytes"] if item.size is not None else []
    about += ["left out of the table"] if item.left_out else []
    told = f"  ({', '.join(about)})" if about else ""
    head = f"{number}. "
    name = end(item.item, max(width - len(head) - len(told), _LEAST))
    return Text(head + name, style="bold").append(told, style="yellow" if item.left_out else "not bold dim")


def _texts(scored: Scored, item: ListedItem, room: int) -> Iterator[Text]:
    text, block = item.text, _LINES_OF_TEXT * (room - _RAGGED)
    if text.question:
        whole = scored.kind == "documents" or scored.metric in PERCENT
        yield Text(beginning(text.question, block) if whole else end(text.question, block))
    for place, choice in enumerate(text.choices):
        right = place == text.right
        # Choices that fill a blank differ where they end.
        said = end(choice, room - 2) if text.ending else beginning(choice, room - 2)
        yield Text(f"{_RIGHT if right else _OTHER} {said}", style="green" if right else "default")
    if text.ending:
        yield Text(f"  {beginning(text.ending, room - 2)}")
    if text.accepted:
        yield Text(f"{_RIGHT} {beginning(' | '.join(text.accepted), block)}", style="green")


def _rows(scored: Scored, item: ListedItem, names: Sequence[str], comparison: Comparison, room: int) -> Iterator[Text]:
    by_place = {found.row: found for found in item.rows}
    cells = {found.row: _cells(scored, found, by_place, comparison) for found in item.rows}
    widths = [max(map(len, column)) for column in zip(*cells.values(), strict=True)]
    label = max(cell_len(names[found.row]) for found in item.rows)
    for found in item.rows:
        name = names[found.row]
        columns = [cell.rjust(width) for cell, width in zip(cells[found.row], widths, strict=True) if width]
        yield Text(name + " " * (label - cell_len(name))).append(f"  {'  '.join(columns)}".rstrip(), style="cyan")
        if found.written is not None:
            yield Text(f"  {beginning(found.written, 2 * (room - _RAGGED))}")


def _cells(
    scored: Scored, found: RowOfItem, others: dict[int, RowOfItem], comparison: Comparison
) -> tuple[str, str, str]:
    """What was answered, its bits, and how far that is from what the row is compared with."""
    if found.value is None:
        return "no answer", "", ""
    place = comparison.rows[found.row].baseline
    base = None if place is None else others.get(place)
    if scored.kind == "right":
        bits = f"{found.bits:.2f} bits" if found.bits is not None else ""
        return f"{found.right} of {found.answers} right", bits, _apart(found.bits, base.bits if base else None, 2)
    other = base.value if base else None
    if scored.kind == "documents":
        return f"{found.value:.4f} bits a byte", "", _apart(found.value, other, 4)
    apart = "" if other is None else _signed((found.value - other) * scored.column.factor, _decimals(scored))
    return f"{scored.metric} {_value(scored, found.value)}", "", apart


def _apart(value: float | None, base: float | None, decimals: int) -> str:
    return "" if value is None or base is None else _signed(value - base, decimals)
