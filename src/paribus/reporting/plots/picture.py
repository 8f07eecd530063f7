"""One picture of a report: its bytes as PNG for files and SVG for the page, and the style all pictures share.

Colours are those of Okabe and Ito, which colour-blind readers tell apart; lines differ in dashes too.
"""

import io
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from matplotlib import font_manager
from matplotlib.figure import Figure

from paribus.store import atomic

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#101010", "#8C8C8C")
DASHES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D")
_DPI = 150
"""Of layout and PNG alike, so that texts are measured once."""
_COMPRESSION = 3
"""Of PNG, 0 to 9: beyond, files hardly shrink and take several times as long."""
ON_LIGHT, ON_DARK = "#1a1a1b", "#fefefe"
"""Text on a coloured area, which stays as it is on a dark page."""
_DARK: Mapping[str, str] = MappingProxyType(
    {
        "#ffffff": "#14171a", "#222222": "#e3e6e9", "#444444": "#8b939b", "#555555": "#aab2ba", "#666666": "#98a1aa",
        "#e4e4e4": "#2c3238", "#101010": "#dfe3e7", "#0072b2": "#4aa8e0", "#d55e00": "#ff8a3d", "#009e73": "#2bc49a",
        "#8c8c8c": "#a7adb3",
    }
)  # fmt: skip
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

    def write(self, directory: Path) -> None:
        """Write both files below `directory`, which is made."""
        directory.mkdir(parents=True, exist_ok=True)
        atomic.write_bytes(directory / f"{self.name}.png", self.png)
        atomic.write_bytes(directory / f"{self.name}.svg", self.svg)

    @property
    def dark(self) -> bytes:
        """The SVG with light lines on a dark page; what has no counterpart among the colours stays."""
        text = self.svg.decode()
        for light, dark in _DARK.items():
            text = re.sub(rf"{light}\b", dark, text, flags=re.IGNORECASE)
        return text.encode()


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


def picture(
    name: str, caption: str, alternative: str, size: tuple[float, float], draw: Callable[[Figure], None]
) -> Plot:
    """Draw a figure of this size in inches."""
    figure = Figure(figsize=size, layout="constrained")
    draw(figure)
    with warnings.catch_warnings():
        # Labels in a script that no font of this machine has: the SVG keeps them as text, which the browser draws.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        if engine := figure.get_layout_engine():
            engine.execute(figure)
        # The layout is made once: saving would make it again, twice for each format.
        figure.set_layout_engine(None)
        png, svg = io.BytesIO(), io.BytesIO()
        settings = {"compress_level": _COMPRESSION}
        figure.savefig(png, format="png", metadata={"Software": None}, pil_kwargs=settings)
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    return Plot(name, caption, alternative, png.getvalue(), svg.getvalue())
