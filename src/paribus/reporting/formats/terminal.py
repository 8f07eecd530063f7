"""The comparison table for the terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from paribus.reporting.notes.summary import Finding, State
from paribus.reporting.paper.paper import ABSENT
from paribus.reporting.table.column import HELDOUT_SETS
from paribus.reporting.table.layout import TableEntry, TableLayout

_NARROW, _LONGEST_LABEL, _LONGEST_TABLE = 80, 16, 60
_STYLE: Mapping[str, Any] = MappingProxyType({"box": SIMPLE_HEAD, "show_edge": False, "padding": (0, 1, 0, 0)})


_SIGNS: Mapping[State, tuple[str, str]] = MappingProxyType(
    {
        "better": ("✓", "green"),
        "worse": ("✗", "red"),
        "different": ("≠", "cyan"),
        "reserved": ("!", "yellow"),
        "undecided": ("?", ""),
        "unjudged": ("–", "dim"),
    }
)


@dataclass(frozen=True)
class TerminalTable:
    """A table as wide as the terminal that it is printed on."""

    layout: TableLayout

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table, for the width that is there."""
        yield terminal_table(self.layout, options.max_width)


def terminal_finding(finding: Finding) -> Text:
    """A sentence of the head of a report, with a sign for how it came out."""
    sign, style = _SIGNS[finding.state]
    return Text(f"{sign} ", style=style).append(finding.text, style="" if style == "dim" else "default")


def terminal_table(whole: TableLayout, width: int = _NARROW) -> Table:
    """The table for a terminal; where measures or rows are many, the main and the first ones only."""
    layout = _fitting(whole, width)
    shown = _shown(layout, width)
    table = Table(title=layout.caption, title_justify="left", title_style="bold", **_STYLE)
    table.caption, table.caption_justify = _left_out(len(shown), layout, whole), "left"
    for factor, least in zip(layout.factors, _label_widths(layout), strict=True):
        table.add_column(Text(_factor_heading(factor)), min_width=least, overflow="fold", vertical="bottom")
    cells = [_styled([line.entries[index] for line in layout.lines]) for index in shown]
    for index in shown:
        words = _heading_words(layout, index)
        table.add_column(Text("\n".join(words), justify="right"), justify="right", no_wrap=True, vertical="bottom")
    previous: tuple[str, ...] = ()
    for number, line in enumerate(layout.lines):
        if line.starts_group:
            table.add_section()
        labels = map(Text, unrepeated(line.labels, previous))
        table.add_row(*labels, *(column[number] for column in cells))
        previous = line.labels
    chance = [layout.chance[index].text for index in shown] if layout.chance and layout.factors else []
    if any(chance):
        table.add_section()
        table.add_row("chance", *[""] * (len(layout.factors) - 1), *chance, style="dim")
    return table


def lines_table(lines: Sequence[Sequence[str]]) -> Table:
    """Ready text for a terminal: a header line, then lines that begin with a label; turned on its side if too wide."""
    table = Table(**_STYLE)
    if sum(2 + max(map(len, column)) for column in zip(*lines, strict=True)) > _NARROW:
        lines = list(zip(*lines, strict=True))
    for index, text in enumerate(lines[0]):
        table.add_column(Text(text), justify="right" if index else "left")
    for line in lines[1:]:
        table.add_row(*map(Text, line))
    return table


def unrepeated(labels: Sequence[str], previous: Sequence[str]) -> list[str]:
    """Labels with the leading ones blank that the row above has too; the last one always stands."""
    same = 0
    while same < len(labels) - 1 and same < len(previous) and labels[same] == previous[same]:
        same += 1
    return [""] * same + list(labels[same:])


def _fitting(layout: TableLayout, width: int) -> TableLayout:
    """The first rows; without the spread over checkpoints where that makes room for a column."""
    layout = replace(layout, lines=layout.lines[:_LONGEST_TABLE])
    everything = list(range(len(layout.columns)))
    if _width(layout, everything) <= width:
        return layout
    bare = [replace(line, entries=tuple(replace(e, checkpoints="") for e in line.entries)) for line in layout.lines]
    return replace(layout, lines=tuple(bare))


def _left_out(columns: int, layout: TableLayout, whole: TableLayout) -> str | None:
    """What the terminal has no room for."""
    lines = len(layout.lines)
    fewer = [f"{columns} of {len(whole.columns)} columns"] if columns < len(whole.columns) else []
    fewer += [f"{lines} of {len(whole.lines):,} rows"] if lines < len(whole.lines) else []
    if layout.lines[0].entries != whole.lines[0].entries:
        fewer.append("no spread over checkpoints")
    return f"{', '.join(fewer)}; the report's files have all" if fewer else None


def _shown(layout: TableLayout, width: int) -> list[int]:
    """All columns where they fit, else those that decide the question, with others as far as these fit.

    Columns without a value give way first, then parts of the held-out text, then single numbers of shots, then tasks
    from the left.
    """
    shown = list(range(len(layout.columns)))
    giving = [i for i in shown if layout.columns[i].key not in layout.primary]
    empty = [i for i in giving if all(line.entries[i].text == ABSENT for line in layout.lines)]
    parts = [i for i in giving if layout.columns[i].field in HELDOUT_SETS]
    minor = [i for i in giving if layout.columns[i].key.endswith("_shot") or not layout.columns[i].main]
    means = {column.key for column in layout.columns if column.key.endswith("/mean")}
    beside_means = [i for i in shown if _mean_of(layout.columns[i].key) in means - {layout.columns[i].key}]
    for less in (empty, parts, minor, beside_means):
        if _width(layout, shown) > width:
            shown = [i for i in shown if i not in less] or shown
    while len(shown) > 1 and _width(layout, shown) > width:
        rest = [i for i in shown if i in giving] or shown
        shown.remove(rest[0] if layout.columns[rest[0]].scored else rest[-1])
    return shown


def _mean_of(key: str) -> str:
    """The key of the mean over the shots of a task."""
    return f"{key.partition('/')[0]}/mean"


def _width(layout: TableLayout, shown: Sequence[int]) -> int:
    styled = [_styled([line.entries[index] for line in layout.lines]) for index in shown]
    entries = [max(map(len, column)) for column in styled]
    headings = [max(map(len, _heading_words(layout, index))) for index in shown]
    measures = sum(max(pair) + 2 for pair in zip(entries, headings, strict=True))
    return measures + sum(_label_widths(layout)) + 2 * len(layout.factors)


def _heading_words(layout: TableLayout, index: int) -> list[str]:
    column = layout.columns[index]
    return [column.group, column.label] if column.scored else column.label.rsplit(" ", 1)


def _factor_heading(factor: str) -> str:
    """A long path of the configuration on several lines, each of whole words."""
    return factor.replace(".", ".\n") if len(factor) > _LONGEST_LABEL else factor


def _label_widths(layout: TableLayout) -> list[int]:
    """Characters each factor's column takes, at most 16."""
    columns = [
        [*_factor_heading(factor).splitlines(), *(line.labels[i] for line in layout.lines)]
        for i, factor in enumerate(layout.factors)
    ]
    return [min(_LONGEST_LABEL, max(map(len, labels))) for labels in columns]


def _styled(entries: Sequence[TableEntry]) -> list[Text]:
    """The cells of a column, with the marks hanging to the right so that the digits stand below each other."""
    width = max((len(entry.mark) for entry in entries), default=0)
    texts = []
    for entry in entries:
        text = Text(entry.text, style="bold" if entry.best else "")
        if entry.spread:
            text.append(f"±{entry.spreads}", style="not bold dim")
        if entry.paper:
            text.append(f" {entry.beside}", style="not bold dim")
        texts.append(text.append(entry.mark).append("\u2007" * (width - len(entry.mark))))
    return texts
