"""One picture of a report as SVG, and the style all pictures share."""

import io
import re
import textwrap
import warnings
from collections.abc import Callable, Mapping
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
from matplotlib.ticker import FixedLocator

from paribus.reporting.plots.marks import mark_legends, with_titles
from paribus.store import files

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
        "svg.fonttype": "none", "svg.hashsalt": "paribus", "legend.frameon": False, "figure.facecolor": "white",
        "figure.dpi": 150,  # texts are laid out by whole pixels
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
    return Plot(name, caption, alternative, with_titles(svg.getvalue().decode()).encode())


def _lay_out(figure: Figure) -> None:
    _as_written(figure)
    if engine := figure.get_layout_engine():
        engine.execute(figure)
    # The layout is made once: saving would make it again, twice.
    figure.set_layout_engine(None)
    mark_legends(figure)


def _as_written(figure: Figure) -> None:
    """Leave dollar signs in names, between which matplotlib would set mathematics: as it does numbers of log scales."""
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) if axis.get_scale() == "log"):
        for text in axis.findobj(Text):
            text.set_parse_math(True)
