"""Predictive entropy along lines of text, as numbers and a picture: Figures 3 and 5 of arXiv 2506.15889."""

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

from paribus.reporting.plots.entropy import EntropyLine, entropy_plot
from paribus.reporting.plots.picture import style
from paribus.store import files


def write_entropy_report(lines: Sequence[EntropyLine], directory: Path) -> None:
    """Write `entropy.csv` and `plots/entropy.svg` into `directory`."""
    with mpl.rc_context(style()):
        plot = entropy_plot(lines)
    plot.write(directory / "plots")
    files.write_text(directory / "entropy.csv", _csv(lines))


def _csv(lines: Sequence[EntropyLine]) -> str:
    """A row a character: line from 1, place in it from 1, bits after it, whether a piece ends there.

    Place 0, without a character, is before the first one, where the model gives that. The end of a line ends a piece.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["line", "place", "character", "entropy", "boundary"])
    for number, line in enumerate(lines, start=1):
        ends = {*line.boundaries, len(line.text)}
        for place, (character, entropy) in enumerate(zip(["", *line.text], line.entropies, strict=True)):
            if not math.isnan(entropy):
                writer.writerow([number, place, character, f"{entropy:.4f}", "yes" if place in ends else "no"])
    return text.getvalue()
