"""Sweeps and runs in columns, as wide as the terminal is; nothing is cut off."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from paribus.pipeline.record.inventory import DONE, FAILED, INCOMPLETE, RUNNING

STYLES = {DONE: "green", FAILED: "red", "interrupted": "red", INCOMPLETE: "red", RUNNING: "yellow"}
NAME, SCORES = "name", "scores"
HEADINGS = (NAME, "id", "state", "bits/byte", SCORES, "age", "own", "shared")
LEFT = (NAME, "id", "state", SCORES)
LEAST_NAME = 16
LEAST_IDENTIFIER = 8
GAP, DEEPER = "  ", "    "


@dataclass(frozen=True)
class Line:
    """A sweep or a run as it is listed."""

    kind: str
    """`sweep` or `run`."""
    cells: Mapping[str, str]
    state: str
    within: bool
    """Whether it is a run below its sweep."""


def listing(lines: Sequence[Line], console: Console) -> Text:
    """Columns with what they hold, none that is empty throughout.

    Where a line would be longer than the terminal is wide, scores stand below their run, and long names go on in
    further lines. Where another program reads and COLUMNS says nothing, a line is as long as it is.
    """
    width = console.width if console.is_terminal or "COLUMNS" in os.environ else sys.maxsize
    lines = _with_short_identifiers(lines)
    headings = [name for name in HEADINGS if any(line.cells.get(name) for line in lines)]
    widths = {name: max(cell_len(_cell(line, name)) for line in (_heading(headings), *lines)) for name in headings}
    below = _over(widths, width) > 0 and SCORES in widths
    if below:
        del widths[SCORES]
    widths[NAME] = max(min(widths[NAME], LEAST_NAME), widths[NAME] - max(_over(widths, width), 0))
    text = Text(_row(_heading(headings), widths, console) + "\n", style="bold")
    for line in lines:
        row = Text(f"{_row(line, widths, console)}\n", style="bold" if line.kind == "sweep" else "default")
        row.highlight_words([line.state], STYLES.get(line.state, "default"))
        text.append_text(row)
        if below and (scores := line.cells.get(SCORES)):
            pieces = _folded(scores, max(width - len(DEEPER), LEAST_NAME), console)
            text.append("".join(f"{DEEPER}{piece}\n" for piece in pieces), style="default")
    return text


def _heading(names: Sequence[str]) -> Line:
    return Line("heading", {name: name for name in names}, "", within=False)


def _over(widths: Mapping[str, int], width: int) -> int:
    return sum(widths.values()) + len(GAP) * (len(widths) - 1) - width


def _with_short_identifiers(lines: Sequence[Line]) -> list[Line]:
    """As many characters of each identifier as tell all of them apart, which is what verbs need."""
    whole = {line.cells["id"] for line in lines}
    length = LEAST_IDENTIFIER
    while len({name[:length] for name in whole}) < len(whole):
        length += 1
    return [replace(line, cells={**line.cells, "id": line.cells["id"][:length]}) for line in lines]


def _cell(line: Line, name: str) -> str:
    value = line.cells.get(name, "")
    return f"  {value}" if line.within and name == NAME else value


def _row(line: Line, widths: Mapping[str, int], console: Console) -> str:
    """The cells of a line, and below them what is left of its name."""
    indent = "  " if line.within else ""
    first, *further = _folded(line.cells.get(NAME, ""), widths[NAME] - len(indent), console)
    cells = {name: _cell(line, name) for name in widths} | {NAME: f"{indent}{first}"}
    row = GAP.join(_padded(cells[name], name, width) for name, width in widths.items()).rstrip()
    return "\n".join([row, *(f"{indent}{piece}" for piece in further)])


def _padded(value: str, name: str, width: int) -> str:
    room = " " * (width - cell_len(value))
    return value + room if name in LEFT else room + value


def _folded(value: str, width: int, console: Console) -> list[str]:
    """Pieces of at most `width` cells, broken at spaces where there are any."""
    if cell_len(value) <= width:
        return [value]
    return [piece.plain.rstrip() for piece in Text(value).wrap(console, width)]
