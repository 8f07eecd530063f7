"""One picture of a report: its bytes as PNG for files and SVG for the page, and the style all pictures share.

Colours are those of Okabe and Ito, which colour-blind readers tell apart; lines differ in dashes too.
"""

import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from matplotlib import font_manager
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C8C8C")
DASHES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D")
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


def style() -> dict[str, Any]:
    """What the pictures have in common, for `matplotlib.rc_context`."""
    installed = set(font_manager.get_font_names())
    families = ["DejaVu Sans", *(name for name in FALLBACK_FONTS if name in installed)]
    return {
        "font.family": families, "font.size": 10, "axes.spines.top": False, "axes.spines.right": False,
        "axes.edgecolor": "#444444", "axes.labelcolor": "#222222", "axes.titlesize": 10, "axes.titlelocation": "left",
        "axes.grid": True, "axes.axisbelow": True, "grid.color": "#e4e4e4", "grid.linewidth": 0.8,
        "svg.fonttype": "none", "svg.hashsalt": "paribus", "figure.dpi": 100, "savefig.dpi": 150,
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
        png, svg = io.BytesIO(), io.BytesIO()
        figure.savefig(png, format="png", metadata={"Software": None})
        figure.set_layout_engine("none")
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    return Plot(name, caption, alternative, png.getvalue(), svg.getvalue())
