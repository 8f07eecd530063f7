"""Lines over an amount, a line a row or several: scores by size, by budget, by examples, by checkpoint."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from paribus.reporting.plots.looks import Look
from paribus.reporting.plots.marks import mark
from paribus.reporting.plots.picture import Plot, picture
from paribus.reporting.table.cells import Cell
from paribus.reporting.table.measures import finite

_BESIDE = 3


@dataclass(frozen=True)
class Line:
    """What a line is called and looks like, in all panels; names may be equal."""

    name: str
    look: Look
    row: int | None = None
    """Place of its row among those of the comparison, where it is one."""


@dataclass(frozen=True)
class Panel:
    """One measure: what its axis says, and the points of each line, in the order of the lines."""

    label: str
    factor: float
    """What a value is multiplied by to be shown."""
    lines: Sequence[Sequence[tuple[float, Cell]]]

    def points(self, line: int) -> list[tuple[float, float, float]]:
        """Amount, value and half width of the points of a line that have a value, by amount."""
        found = [
            (x, self.factor * (cell.value or 0.0), self.factor * (cell.half_width or 0.0))
            for x, cell in self.lines[line]
            if finite(cell.value)
        ]
        return sorted(found)


@dataclass(frozen=True)
class Axis:
    """What the lines run over."""

    label: str
    logarithmic: bool = False
    ticks: Sequence[str] = ()
    """Names of the amounts 0, 1, 2, ..., where these are places."""


def series_plot(name: str, caption: str, axis: Axis, lines: Sequence[Line], panels: Sequence[Panel]) -> Plot:
    """Panels over one axis, three beside each other; a line looks the same in all. `caption` has no full stop."""
    spread = any(cell.half_width is not None for panel in panels for line in panel.lines for _, cell in line)
    caption += "; ± as in the table." if spread else "."
    columns = min(_BESIDE, len(panels))
    below = math.ceil(len(panels) / columns)

    def draw(figure: Figure) -> None:
        axes = figure.subplots(below, columns, squeeze=False).flatten()
        for empty in axes[len(panels) :]:
            empty.set_axis_off()
        for place, (own, panel) in enumerate(zip(axes, panels, strict=False)):
            for index, line in enumerate(lines):
                x, y, error = zip(*panel.points(index), strict=True) if panel.points(index) else ((), (), ())
                drawn = own.errorbar(
                    x, y, yerr=error, marker=line.look.marker, linestyle=line.look.dashes, capsize=2,
                    color=line.look.colour, label=None if place else line.name, linewidth=1.4,
                )  # fmt: skip
                mark(drawn.get_children(), line.name, line.row)
            if axis.logarithmic:
                own.set_xscale("log")
            if axis.ticks:
                own.set_xticks(range(len(axis.ticks)), axis.ticks)
            own.set_xlabel(axis.label)
            own.set_ylabel(f"{panel.label}{' (%)' if panel.factor == 100 else ''}")
        figure.legend(loc="outside lower center", fontsize=9, ncols=2)

    size = (max(6.5, 4.6 * columns), 3.4 * below + 0.2 + 0.2 * (len(lines) // 2))
    return picture(name, caption, f"{caption} {_told(lines, axis, panels)}.", size, draw)


def _told(lines: Sequence[Line], axis: Axis, panels: Sequence[Panel]) -> str:
    """Every line in words: its measures at each amount."""
    told = []
    for index, line in enumerate(lines):
        values: dict[float, list[str]] = {}
        for panel in panels:
            for x, value, _ in panel.points(index):
                values.setdefault(x, []).append(f"{value:.3f}")
        told += [
            f"{line.name} {axis.ticks[int(x)] if axis.ticks else f'{x:.3g}'}: {', '.join(found)}"
            for x, found in values.items()
        ]
    return "; ".join(told)
