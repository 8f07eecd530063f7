"""One picture of a report: its bytes as PNG for files and SVG for the page, and the style all pictures share."""

import io
import re
import textwrap
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.container import Container
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, MaxNLocator

from paribus.reporting.plots.marks import attributes, finish
from paribus.store import atomic

_DPI = 150
"""Of layout and PNG alike, so that texts are measured once."""
NARROW = 4.4
"""Inches of a picture for a page that is as narrow as a telephone, on which texts of a wider one are too small."""
_CHARACTERS, _NUMBERS = 18, 4
"""Of a line of a name beside a narrow picture, and the most numbers along it."""
_COMPRESSION = 3
"""Of PNG, 0 to 9: beyond, files hardly shrink and take several times as long."""
ON_LIGHT, ON_DARK = "#1a1a1b", "#fefefe"
"""Text on a coloured area, which stays as it is on a dark page."""
ON_A_DARK_PAGE: Mapping[str, str] = MappingProxyType(
    {
        "#ffffff": "#14171a", "#222222": "#e3e6e9", "#444444": "#8b939b", "#555555": "#aab2ba", "#666666": "#98a1aa",
        "#e4e4e4": "#2c3238", "#101010": "#dfe3e7", "#0072b2": "#4aa8e0", "#d55e00": "#ff8a3d", "#009e73": "#2bc49a",
        "#8c8c8c": "#a7adb3",
    }
)  # fmt: skip
"""Colours of light pictures, and what stands for them on a dark page; what is not among them stays."""
_BESIDE = 0.45
"""Of the width of a picture, what names beside its axes may take."""
_NO_NAME = re.compile(r"_(nolegend_|child\d+|container\d+)")
"""What matplotlib calls what it was given no name for."""
FALLBACK_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "WenQuanYi Zen Hei",
    "Source Han Sans SC",
    "Droid Sans Fallback",
)


@dataclass(frozen=True)
class Plot:
    """One picture: file name without suffix, caption, the text for who cannot see it, and its bytes."""

    name: str
    caption: str
    alternative: str
    png: bytes
    svg: bytes
    narrow: bytes | None = None
    """As SVG for a narrow page, the panels below each other; None where there is no such picture."""

    def write(self, directory: Path) -> None:
        """Write both files below `directory`, which is made."""
        directory.mkdir(parents=True, exist_ok=True)
        atomic.write_bytes(directory / f"{self.name}.png", self.png)
        atomic.write_bytes(directory / f"{self.name}.svg", self.svg)


def style() -> dict[str, Any]:
    """What the pictures have in common, for `matplotlib.rc_context`."""
    installed = set(font_manager.get_font_names())
    families = ["DejaVu Sans", *(name for name in FALLBACK_FONTS if name in installed)]
    return {
        "font.family": families, "font.size": 10, "axes.spines.top": False, "axes.spines.right": False,
        "axes.edgecolor": "#444444", "axes.labelcolor": "#222222", "text.color": "#222222",
        "xtick.color": "#444444", "xtick.labelcolor": "#222222",
        "ytick.color": "#444444", "ytick.labelcolor": "#222222",
        "axes.titlesize": 10, "axes.titlelocation": "left",
        "axes.grid": True, "axes.axisbelow": True, "grid.color": "#e4e4e4", "grid.linewidth": 0.8,
        "svg.fonttype": "none", "svg.hashsalt": "paribus", "figure.dpi": _DPI, "savefig.dpi": _DPI,
        "legend.frameon": False, "figure.facecolor": "white",
    }  # fmt: skip


class _Figure(Figure):
    """With room for long names: a legend has fewer columns then and names several lines, for which the figure grows."""

    def legend(self, *args: Any, **options: Any) -> Any:
        named, columns = args or self._named(), options.get("ncols", 1)
        most = self.bbox.width * (_BESIDE if "right" in options.get("loc", "") else 1)
        legend = self._legend(*named, **options)
        height = legend.get_window_extent().height
        while columns > 1 and legend.get_window_extent().width > most:
            columns -= 1
            legend.remove()
            legend = self._legend(*named, **{**options, "ncols": columns})
        widest = max((text.get_window_extent().width for text in legend.get_texts()), default=0.0)
        room = most - (legend.get_window_extent().width - widest)
        for text in legend.get_texts():
            text.set_text(_folded(text, room))
        self.set_figheight(self.get_figheight() + (legend.get_window_extent().height - height) / self.dpi)
        return legend

    def _legend(self, *args: Any, **options: Any) -> Any:
        legend = super().legend(*args, **options)
        for text in legend.get_texts():
            text.set_parse_math(False)
        return legend

    def _named(self) -> tuple[list[Any], list[str]]:
        """What has a name, and the names: by itself matplotlib leaves out those that begin with an underscore."""
        drawn: list[tuple[Any, str]] = [
            (artist, str(artist.get_label() or "_nolegend_"))
            for axes in self.axes
            for artist in (*axes.get_children(), *axes.containers)
            if isinstance(artist, Line2D | Patch | Collection | Container)
        ]
        named = [(artist, name) for artist, name in drawn if _NO_NAME.fullmatch(name) is None]
        return [artist for artist, _ in named], [name for _, name in named]

    def fold(self) -> None:
        """Names beside axes that would leave these no room stand in several lines, and so do titles of panels."""
        room, most = _BESIDE * self.bbox.width, 1
        for axes in self.axes:
            _fold_title(axes, self.bbox.width)
            labels = axes.get_yticklabels() if isinstance(axes.yaxis.get_major_locator(), FixedLocator) else []
            for label in labels:
                label.set_parse_math(False)
            folded = [_folded(label, room) for label in labels]
            if folded != [label.get_text() for label in labels]:
                axes.set_yticks(axes.get_yticks(), folded)
                most = max(most, *(name.count("\n") + 1 for name in folded))
        self.set_figheight(self.get_figheight() * max(1.0, 0.5 * most))


def _fold_title(axes: Axes, width: float) -> None:
    """Keep a title above its own panel, of those that stand beside each other in a width in pixels."""
    place = axes.get_subplotspec()
    room = width / (place.get_gridspec().ncols if place else 1)
    for title in axes.findobj(lambda artist: isinstance(artist, Text) and artist.get_text() == axes.get_title("left")):
        if isinstance(title, Text) and title.get_text():
            title.set_parse_math(False)
            title.set_text(_folded(title, room))


def _folded(text: Text, room: float) -> str:
    """What it says in lines as long as there is room for in pixels, with nothing left out."""
    said, width = text.get_text(), text.get_window_extent().width
    if width <= room:
        return said
    lines = said.split("\n")
    most = max(1, int(0.9 * max(map(len, lines)) * room / width))  # characters are not equally wide
    return "\n".join(part for line in lines for part in textwrap.wrap(line, most, drop_whitespace=False))


class _NarrowFigure(_Figure):
    """Panels that are drawn beside each other stand below each other, and so does a legend."""

    def subplots(self, nrows: int = 1, ncols: int = 1, *, squeeze: bool = True, **options: Any) -> Any:
        if ncols > 1:
            self.set_figheight(self.get_figheight() * ncols)
            options.pop("gridspec_kw", None)
        panels = super().subplots(nrows * ncols, 1, squeeze=False, **options).reshape(nrows, ncols)
        if not squeeze:
            return panels
        return panels.item() if panels.size == 1 else panels.squeeze()

    def legend(self, *args: Any, **options: Any) -> Any:
        return super().legend(*args, **{**options, "loc": "outside lower center", "ncols": 1})

    def fold(self) -> None:
        """Give the axes room: fewer numbers, and long names in several lines, for which the figure grows."""
        most = 1
        for axes in self.axes:
            axes.set_xlabel(textwrap.fill(axes.get_xlabel(), 2 * _CHARACTERS))
            if isinstance(axes.xaxis.get_major_locator(), MaxNLocator):
                axes.xaxis.set_major_locator(MaxNLocator(_NUMBERS))
            names = [name.get_text() for name in axes.get_yticklabels()]
            if (
                isinstance(axes.yaxis.get_major_locator(), FixedLocator)
                and max(map(len, names), default=0) > _CHARACTERS
            ):
                folded = [textwrap.fill(name, _CHARACTERS) for name in names]
                axes.set_yticks(axes.get_yticks(), folded, fontsize=8)
                most = max(most, *(name.count("\n") + 1 for name in folded))
        self.set_figheight(self.get_figheight() * max(1.0, 0.4 * most))


def picture(
    name: str,
    caption: str,
    alternative: str,
    size: tuple[float, float],
    draw: Callable[[Figure], None],
    *,
    foldable: bool = True,
) -> Plot:
    """Draw a figure of this size in inches; of what is `foldable`, a narrow one too where there is room for one.

    What stands on no page needs none.
    """
    narrow, png = None, io.BytesIO()
    with warnings.catch_warnings():
        # Labels in a script that no font of this machine has: the SVG keeps them as text, which the browser draws.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = _Figure(figsize=size, layout="constrained")
        draw(figure)
        figure.fold()
        _laid_out(figure)
        figure.savefig(png, format="png", metadata={"Software": None}, pil_kwargs={"compress_level": _COMPRESSION})
        svg = _svg(figure)
        if foldable and size[0] > NARROW:
            narrow = _narrow(size[1], draw)
    return Plot(name, caption, alternative, png.getvalue(), svg, narrow)


def _narrow(height: float, draw: Callable[[Figure], None]) -> bytes | None:
    """None where names leave no room for what they are the names of."""
    figure = _NarrowFigure(figsize=(NARROW, height), layout="constrained")
    draw(figure)
    figure.fold()
    warnings.filterwarnings("error", message="constrained_layout not applied")
    with suppress(UserWarning):
        return _svg(_laid_out(figure))
    return None


def _laid_out(figure: Figure) -> Figure:
    _as_written(figure)
    if engine := figure.get_layout_engine():
        engine.execute(figure)
    # The layout is made once: saving would make it again, twice for each format.
    figure.set_layout_engine(None)
    finish(figure)
    return figure


def _as_written(figure: Figure) -> None:
    """Leave dollar signs in names, between which matplotlib would set mathematics: as it does numbers of log scales."""
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) if axis.get_scale() == "log"):
        for text in axis.findobj(Text):
            text.set_parse_math(True)


def _svg(figure: Figure) -> bytes:
    svg = io.BytesIO()
    figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    return attributes(svg.getvalue().decode()).encode()
