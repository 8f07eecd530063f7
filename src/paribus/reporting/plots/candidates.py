"""Plot of what candidate spans score: mutual information and branching entropies on one scale.

*Entropy-Driven Pre-Tokenization for Byte-Pair Encoding*, arXiv 2506.15889, Figure 2.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from paribus.reporting.plots.looks import COLOURS
from paribus.reporting.plots.picture import Plot, picture

Reals = npt.NDArray[np.float64]
_MOST_BARS = 64
"""Of one quantity."""
_DECIMALS = 9


@dataclass(frozen=True)
class Histograms:
    """How many candidates lie in bins of one width, of several quantities on one scale."""

    edges: Reals
    """Bits, shape (bins + 1,), ascending; a bin holds its lower edge, the last one both."""
    counts: Mapping[str, npt.NDArray[np.int64]]
    """Candidates in each bin by quantity, shape (bins,)."""

    @classmethod
    def of(cls, quantities: Mapping[str, Reals]) -> "Histograms":
        """Bins of a power of two in width, as few as cover all `quantities`; each has at least one value."""
        # An entropy of 0 comes out as -2e-16 here and there.
        quantities = {name: np.round(values, _DECIMALS) for name, values in quantities.items()}
        low = min(float(values.min()) for values in quantities.values())
        high = max(float(values.max()) for values in quantities.values())
        width = 2.0 ** math.ceil(math.log2(max(high - low, 1.0) / (_MOST_BARS - 2)))
        first, last = math.floor(low / width), math.floor(high / width) + 1
        edges = width * np.arange(first, last + 1, dtype=np.float64)
        return cls(edges, {name: np.histogram(values, edges)[0] for name, values in quantities.items()})


def candidates_plot(histograms: Histograms, text: str) -> Plot:
    """A panel a quantity, with one axis of bits below all, so that their ranges can be compared."""
    edges, counts = histograms.edges, histograms.counts

    def draw(figure: Figure) -> None:
        panels = figure.subplots(len(counts), 1, sharex=True, squeeze=False)[:, 0]
        for place, (panel, (name, found)) in enumerate(zip(panels, counts.items(), strict=True)):
            heights = 100 * found / found.sum()
            panel.bar(edges[:-1], heights, np.diff(edges), align="edge", color=COLOURS[place % len(COLOURS)])
            panel.set_title(name)
            panel.set_ylabel("candidates (%)")
            panel.grid(axis="x", visible=False)
        panels[-1].set_xlabel("bits")

    caption = f"Candidate spans of {text} by mutual information and by the entropies of what stands beside them."
    told = "; ".join(f"{name}: {_told(edges, found)}" for name, found in counts.items())
    return picture("candidates", caption, f"{caption} {told}.", (7.0, 2.1 * len(counts) + 0.4), draw)


def _told(edges: Reals, counts: npt.NDArray[np.int64]) -> str:
    filled = np.flatnonzero(counts)
    most = int(counts.argmax())
    return f"{edges[filled[0]]:g} to {edges[filled[-1] + 1]:g} bits, most of them from {edges[most]:g} bits"
