"""Pictures of a report as SVG: their common style, the looks of rows, lines over an amount, and titles."""

import html
import io
import json
import math
import re
import textwrap
import warnings
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from matplotlib import font_manager
from matplotlib.artist import Artist
from matplotlib.collections import Collection
from matplotlib.container import Container
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator

from paribus.reporting.columns import Cell, finite
from paribus.reporting.compare import Arm, Comparison
from paribus.store import files

ON_LIGHT, ON_DARK = "#1a1a1b", "#fefefe"
"""Text on a coloured area, which stays as it is on a dark page."""
ON_A_DARK_PAGE: Mapping[str, str] = {
    "#ffffff": "#14171a", "#222222": "#e3e6e9", "#444444": "#8b939b", "#555555": "#aab2ba", "#666666": "#98a1aa",
    "#e4e4e4": "#2c3238", "#101010": "#dfe3e7", "#0072b2": "#4aa8e0", "#d55e00": "#ff8a3d", "#009e73": "#2bc49a",
    "#8c8c8c": "#a7adb3",
}  # fmt: skip
"""Colours of light pictures, and what stands for them on a dark page; what is not among them stays."""
_WIDEST_NAMES = 0.45
"""Share of the width of a picture that names beside its axes may take."""
_UNNAMED = re.compile(r"_(nolegend_|child\d+|container\d+)")
"""Labels that matplotlib gives where it was given none."""
FALLBACK_FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Zen Hei", "Source Han Sans SC", "Droid Sans Fallback",
)  # fmt: skip


@dataclass(frozen=True)
class Plot:
    """One picture: file name without suffix, caption, the text for who cannot see it, and its SVG."""

    name: str
    caption: str
    alternative: str
    svg: bytes

    def write(self, directory: Path) -> None:
        """Write the file below `directory`, which is made."""
        directory.mkdir(parents=True, exist_ok=True)
        files.write_bytes(directory / f"{self.name}.svg", self.svg)


def style() -> dict[str, Any]:
    """Style of all pictures, for `matplotlib.rc_context`."""
    installed = set(font_manager.get_font_names())
    families = ["DejaVu Sans", *(name for name in FALLBACK_FONTS if name in installed)]
    return {
        "font.family": families, "font.size": 10, "axes.spines.top": False, "axes.spines.right": False,
        "axes.edgecolor": "#444444", "axes.labelcolor": "#222222", "text.color": "#222222",
        "xtick.color": "#444444", "xtick.labelcolor": "#222222",
        "ytick.color": "#444444", "ytick.labelcolor": "#222222",
        "axes.titlesize": 10, "axes.titlelocation": "left",
        "axes.grid": True, "axes.axisbelow": True, "grid.color": "#e4e4e4", "grid.linewidth": 0.8,
        "svg.fonttype": "none", "svg.hashsalt": "paribus", "legend.frameon": False, "figure.facecolor": "white",
        "text.parse_math": False,
        "figure.dpi": 150,  # texts are laid out by whole pixels
    }  # fmt: skip


class _Figure(Figure):
    """Figure with room for long names: a legend then has fewer columns and names several lines, for which it grows."""

    def legend(self, *args: Any, **options: Any) -> Any:
        named, columns = args or self._named(), options.get("ncols", 1)
        most = self.bbox.width * (_WIDEST_NAMES if "right" in options.get("loc", "") else 1)
        legend = super().legend(*named, **options)
        height = legend.get_window_extent().height
        while columns > 1 and legend.get_window_extent().width > most:
            columns -= 1
            legend.remove()
            legend = super().legend(*named, **{**options, "ncols": columns})
        widest = max((text.get_window_extent().width for text in legend.get_texts()), default=0.0)
        room = most - (legend.get_window_extent().width - widest)
        for text in legend.get_texts():
            text.set_text(_fold_text(text, room))
        self.set_figheight(self.get_figheight() + (legend.get_window_extent().height - height) / self.dpi)
        return legend

    def _named(self) -> tuple[list[Any], list[str]]:
        """Artists with names, and the names; matplotlib itself leaves out those that begin with an underscore."""
        drawn: list[tuple[Any, str]] = [
            (artist, str(artist.get_label() or "_nolegend_"))
            for axes in self.axes
            for artist in (*axes.get_children(), *axes.containers)
            if isinstance(artist, Line2D | Patch | Collection | Container)
        ]
        named = [(artist, name) for artist, name in drawn if _UNNAMED.fullmatch(name) is None]
        return [artist for artist, _ in named], [name for _, name in named]

    def fold(self) -> None:
        """Names beside axes that would leave these no room stand in several lines, and so do titles of panels."""
        room, most = _WIDEST_NAMES * self.bbox.width, 1
        for axes in self.axes:
            place = axes.get_subplotspec()
            title, above = axes.get_title("left"), self.bbox.width / (place.get_gridspec().ncols if place else 1)
            for text in axes.findobj(Text) if title else []:
                if isinstance(text, Text) and text.get_text() == title:
                    text.set_text(_fold_text(text, above))
            labels = axes.get_yticklabels() if isinstance(axes.yaxis.get_major_locator(), FixedLocator) else []
            folded = [_fold_text(label, room) for label in labels]
            if folded != [label.get_text() for label in labels]:
                axes.set_yticks(axes.get_yticks(), folded)
                most = max(most, *(name.count("\n") + 1 for name in folded))
        self.set_figheight(self.get_figheight() * max(1.0, 0.5 * most))


def _fold_text(text: Text, room: float) -> str:
    """Text in lines as long as there is room for in pixels, with nothing left out."""
    whole, width = text.get_text(), text.get_window_extent().width
    if width <= room:
        return whole
    lines = whole.split("\n")
    most = max(1, int(0.9 * max(map(len, lines)) * room / width))  # characters are not equally wide
    return "\n".join(part for line in lines for part in textwrap.wrap(line, most, drop_whitespace=False))


def picture(
    name: str, caption: str, alternative: str, size: tuple[float, float], draw: Callable[[Figure], None]
) -> Plot:
    """Draw a figure of this size in inches."""
    with warnings.catch_warnings():
        # Labels in a script that no font of this machine has: the SVG keeps them as text, which the browser draws.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = _Figure(figsize=size, layout="constrained")
        draw(figure)
        figure.fold()
        _lay_out(figure)
        svg = io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    titled = _MARKED_GROUP.sub(lambda group: _titled_group(*_decode_mark(group[1])), svg.getvalue().decode())
    return Plot(name, caption, alternative, titled.encode())


def _lay_out(figure: Figure) -> None:
    # Numbers of log scales are mathematics; dollar signs in names are none.
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) if axis.get_scale() == "log"):
        for text in axis.findobj(Text):
            text.set_parse_math(True)
    if engine := figure.get_layout_engine():
        engine.execute(figure)
    # The layout is made once: saving would make it again, twice.
    figure.set_layout_engine(None)
    _mark_legends(figure)


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#101010", "#8C8C8C")
"""Colours of Okabe and Ito, which colour-blind readers tell apart."""
Dashes = str | tuple[int, tuple[int, ...]]
"""Dashes of a line, as matplotlib takes them: a name, or an offset and lengths of lines and gaps."""
SHAPES: tuple[tuple[str, str, Dashes, str], ...] = (
    ("o", "●", "-", ""), ("s", "■", "--", "///"), ("^", "▲", ":", "..."), ("D", "◆", "-.", "xxx"),
    ("v", "▼", (0, (7, 1, 1, 1, 1, 1)), "\\\\\\"), ("P", "✚", (0, (1, 4)), "|||"), ("X", "✖", (0, (9, 4)), "---"),
    ("*", "★", (0, (4, 1, 2, 1)), "OO"),
)  # fmt: skip
"""Marker, the same as a character for a text, dashes and hatch."""
_AMOUNT_GROUPS = ("model", "budget")
"""Groups of factors that pictures have along an axis, so that lines run over their values."""


@dataclass(frozen=True)
class Look:
    """Look of one row: its colour, marker of a point, that as a character, dashes of a line and hatch of a bar."""

    colour: str
    marker: str
    sign: str
    dashes: Dashes
    hatch: str


class Looks:
    """The looks of rows that are given by their values of `factors`, in their order.

    Coloured is the factor with the most values, the first of several, and none of sizes and budgets beside another.
    Where no other factor varies, shapes differ with the colours. Where the others have more combinations than there are
    shapes, none is coloured, and each row has a look of its own.
    """

    def __init__(self, factors: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self._values = [list(dict.fromkeys(row[place] for row in rows)) for place in range(len(factors))]
        self._factors = tuple(factors)
        varied = [place for place, values in enumerate(self._values) if len(values) > 1]
        self._rows = list(dict.fromkeys(map(tuple, rows)))
        self._coloured = max(varied, key=self._rank, default=None)
        self._others = list(dict.fromkeys(map(self._beside, rows)))
        if self._coloured is not None and len(self._others) > 1:
            rounds = math.ceil(len(self._values[self._coloured]) / len(COLOURS))
            if rounds * len(self._others) > len(SHAPES):  # rows of one colour
                self._coloured = None

    def of(self, row: Sequence[str]) -> Look:
        """The look of one of the rows."""
        if self._coloured is None:
            place = self._rows.index(tuple(row))
            return Look(COLOURS[place % len(COLOURS)], *SHAPES[place // len(COLOURS) % len(SHAPES)])
        value = self._values[self._coloured].index(row[self._coloured])
        again = value // len(COLOURS)
        alone = len(self._others) == 1
        shape = value + again if alone else self._others.index(self._beside(row)) + again * len(self._others)
        return Look(COLOURS[value % len(COLOURS)], *SHAPES[shape % len(SHAPES)])

    def colour_of(self, factor: str, value: str) -> str | None:
        """The colour of a factor's value; None where another factor is coloured."""
        if self._coloured is None or self._factors[self._coloured] != factor:
            return None
        return COLOURS[self._values[self._coloured].index(value) % len(COLOURS)]

    @property
    def legend_factors(self) -> tuple[str | None, tuple[str, ...]]:
        """The factor that colours stand for, and those that shapes do; none of the latter where it varies alone."""
        if self._coloured is None:
            return None, ()
        coloured = self._factors[self._coloured]
        varied = (factor for factor, values in zip(self._factors, self._values, strict=True) if len(values) > 1)
        return coloured, tuple(factor for factor in varied if factor != coloured)

    def _rank(self, place: int) -> tuple[bool, int, int]:
        return self._factors[place].split(".")[0] not in _AMOUNT_GROUPS, len(self._values[place]), -place

    def _beside(self, row: Sequence[str]) -> tuple[str, ...]:
        return tuple(value for place, value in enumerate(row) if place != self._coloured)


def looks_of(comparison: Comparison) -> Looks:
    """Looks of the rows of a comparison, finished or not: what is still missing changes no colour when it comes."""
    return Looks(comparison.factors, [row.labels for row in comparison.rows])


_PANELS_ABREAST = 3


@dataclass(frozen=True)
class Line:
    """Name and look of a line, in all panels; names may be equal."""

    name: str
    look: Look
    row: int | None = None
    """Place of its row among those of the comparison, where it is one."""


@dataclass(frozen=True)
class Panel:
    """One measure: what its axis says, and the points of each line, in the order of the lines."""

    label: str
    factor: float
    """Factor by which a value is multiplied to be shown."""
    lines: Sequence[Sequence[tuple[float, Cell]]]

    def points(self, line: int) -> list[tuple[float, float, float]]:
        """Amount, value and half width of the points of a line that have a value, by amount."""
        return sorted(
            (x, self.factor * (cell.value or 0.0), self.factor * (cell.half_width or 0.0))
            for x, cell in self.lines[line]
            if finite(cell.value)
        )


@dataclass(frozen=True)
class Axis:
    """Amounts that the lines run over."""

    label: str
    logarithmic: bool = False
    ticks: Sequence[str] = ()
    """Names of the amounts 0, 1, 2, ..., where these are places."""


def series_plot(name: str, caption: str, axis: Axis, lines: Sequence[Line], panels: Sequence[Panel]) -> Plot:
    """Panels over one axis, three beside each other; a line looks the same in all. `caption` has no full stop."""
    spread = any(cell.half_width is not None for panel in panels for line in panel.lines for _, cell in line)
    caption += "; ± as in the table." if spread else "."
    columns = min(_PANELS_ABREAST, len(panels))
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
    return picture(name, caption, f"{caption} {_series_text(lines, axis, panels)}.", size, draw)


def _series_text(lines: Sequence[Line], axis: Axis, panels: Sequence[Panel]) -> str:
    texts = []
    for index, line in enumerate(lines):
        values: dict[float, list[str]] = {}
        for panel in panels:
            for x, value, _ in panel.points(index):
                values.setdefault(x, []).append(f"{value:.3f}")
        for x, numbers in values.items():
            amount = axis.ticks[int(x)] if axis.ticks else f"{x:.3g}"
            texts.append(f"{line.name} {amount}: {', '.join(numbers)}")
    return "; ".join(texts)


def lines_of(comparison: Comparison, rows: Sequence[Arm]) -> list[Line]:
    """A line a row."""
    looks = looks_of(comparison)
    return [Line(comparison.row_name(row), looks.of(row.labels), comparison.place(row)) for row in rows]


_MARKED_GROUP = re.compile(r'<g id="(said:[^"]*)">')


def mark(artists: Sequence[Artist], title: str, row: int | None = None) -> None:
    """Give artists a title; `row` is the place of their row among those of the comparison, if they have one.

    Matplotlib writes an artist's identifier as that of its group in the SVG. Here it carries what is said, which
    becomes the group's title, shown by browsers under the pointer, and its `data-row`, from 1, as the page counts rows.
    """
    for artist in artists:
        # Without anything that an attribute would have to escape.
        artist.set_gid(f"said:{quote(json.dumps([title, row]))}")


def _mark_legends(figure: Figure) -> None:
    # Names that a table shows may be equal: a legend has them in the order in which they are drawn.
    rows: dict[str, deque[int | None]] = defaultdict(deque)
    for axes in figure.axes:
        named = [(artist, artist) for artist in (*axes.lines, *axes.collections)]
        for artist, marked in named + [(container, container.get_children()[0]) for container in axes.containers]:
            if gid := marked.get_gid():
                rows[str(artist.get_label())].append(_decode_mark(gid)[1])
    for legend in figure.legends:
        for handle, name in zip(legend.legend_handles, legend.get_texts(), strict=True):
            # A long one stands in several lines.
            if places := rows.get(label := name.get_text().replace("\n", "")):
                mark([each for each in (handle, name) if each is not None], label, places.popleft())


def _decode_mark(gid: str) -> Any:
    return json.loads(unquote(gid.removeprefix("said:")))


def _titled_group(title: str, row: int | None) -> str:
    own = f' data-row="{row + 1}"' if row is not None else ""
    return f'<g class="mark"{own}><title>{html.escape(title)}</title>'
