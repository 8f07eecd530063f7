"""Plot of a language model's predictive entropy along lines of text, and where pieces end.

*Entropy-Driven Pre-Tokenization for Byte-Pair Encoding*, arXiv 2506.15889, Figures 3 and 5.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paribus.reporting.plots.looks import COLOURS
from paribus.reporting.plots.picture import Plot, picture

_PER_PANEL = 48
"""Characters side by side; a longer line goes on in the panel below."""
_MOST_PANELS = 16


@dataclass(frozen=True)
class EntropyLine:
    """One line of text, its entropies and its boundaries."""

    text: str
    entropies: Sequence[float]
    """Bits, before the first character (NaN where that is not known) and after each."""
    boundaries: Sequence[int]
    """Numbers of characters after which a piece ends inside the line."""


def entropy_plot(lines: Sequence[EntropyLine], name: str = "entropy") -> Plot:
    """A panel a line: the entropy after each character, and a dotted line at each character that ends a piece."""
    every = [part for line in lines for part in _panels(line)]
    parts = every[:_MOST_PANELS]
    longest = max(part.stop - part.start for part in parts)
    highest = max(entropy for line in lines for entropy in line.entropies if not math.isnan(entropy))

    def draw(figure: Figure) -> None:
        panels = figure.subplots(len(parts), 1, squeeze=False)[:, 0]
        for panel, part in zip(panels, parts, strict=True):
            _draw(panel, part)
            panel.set_xlim(part.start - 0.5, part.start + longest - 0.5)
            panel.set_ylim(0, 1.05 * highest)
        figure.supylabel("entropy of the next character (bits)", fontsize=10)

    caption = "Entropy of a language model's next character after each character; a piece ends where a dotted line is."
    if len(parts) < len(every):
        caption += f" The first {len(parts)} of {len(every)} panels."
    told = "; ".join("|".join(pieces(line)) for line in lines)
    size = (max(4.0, 1.1 + 0.22 * longest), 0.5 + 1.5 * len(parts))
    return picture(name, caption, f"{caption} {told}.", size, draw)


def pieces(line: EntropyLine) -> list[str]:
    """What the boundaries cut the line into."""
    ends = [*line.boundaries, len(line.text)]
    return [line.text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@dataclass(frozen=True)
class _Part:
    """The places from `start` up to `stop` of a line, of which place 0 is before the first character."""

    line: EntropyLine
    start: int
    stop: int


def _panels(line: EntropyLine) -> Iterator[_Part]:
    places = len(line.text) + 1
    rows = math.ceil(places / _PER_PANEL)
    for row in range(rows):
        yield _Part(line, places * row // rows, places * (row + 1) // rows)


def _draw(panel: Axes, part: _Part) -> None:
    line, places = part.line, range(part.start, part.stop)
    panel.plot(places, [line.entropies[place] for place in places], color=COLOURS[0], linewidth=1.4, marker=".")
    for place in line.boundaries:
        if place in places:
            panel.axvline(place, color=COLOURS[1], linestyle=":", linewidth=1.4)
    panel.set_xticks(places, ["", *line.text][part.start : part.stop])
    panel.grid(axis="x", visible=False)
