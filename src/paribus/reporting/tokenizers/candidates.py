"""What candidate spans score, as a table, histograms and a picture: Figure 2 of arXiv 2506.15889."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from rich.table import Table

from paribus.reporting.formats.markdown import markdown, markdown_lines, markdown_picture
from paribus.reporting.plots.candidates import Histograms, Reals, candidates_plot
from paribus.reporting.plots.picture import Plot, style
from paribus.reporting.tokenizers.terminal import plain_table
from paribus.store import files

INFORMATION, LEFT, RIGHT = "mutual information", "left entropy", "right entropy"
_QUANTILES = (0.0, 0.05, 0.5, 0.95, 1.0)
_HEADINGS = ("bits", "least", "5 %", "median", "mean", "95 %", "greatest")


@dataclass(frozen=True)
class CandidateScores:
    """Of every candidate, once whatever its frequency, bits; arrays of shape (n,) with n of at least 1."""

    information: Reals
    """The smallest pointwise mutual information of two adjacent characters in it."""
    left_entropy: Reals
    right_entropy: Reals
    """Entropy of the characters before and after it."""
    by_length: Mapping[int, int]
    """Candidates by their length in characters."""


def write_candidate_report(found: CandidateScores, directory: Path, *, title: str, text: str, width: int) -> Table:
    """Write `candidates.md`, `candidates.csv` (histograms) and `plots/` into `directory`; the table for a terminal
    of `width`. `text` says what the candidates are of.
    """
    quantities = {INFORMATION: found.information, LEFT: found.left_entropy, RIGHT: found.right_entropy}
    histograms = Histograms.of(quantities)
    with mpl.rc_context(style()):
        plot = candidates_plot(histograms, text)
    lines = [_HEADINGS, *((name, *map(_shown, _numbers(values))) for name, values in quantities.items())]
    note = _note(found, text)
    plot.write(directory / "plots")
    files.write_text(directory / "candidates.md", _page(title, lines, note, plot))
    files.write_text(directory / "candidates.csv", _csv(histograms))
    return plain_table(title, lines, width, note)


def _numbers(values: Reals) -> list[float]:
    """The smallest, quantiles and the mean, the largest."""
    least, low, median, high, greatest = np.quantile(values, _QUANTILES).tolist()
    return [least, low, median, float(values.mean()), high, greatest]


def _shown(value: float) -> str:
    # Adding 0.0 makes a plain zero of the negative one.
    return f"{round(value, 3) + 0.0:.3f}"


def _note(found: CandidateScores, text: str) -> str:
    lengths = ", ".join(f"{count:,} of {length} characters" for length, count in sorted(found.by_length.items()))
    return f"{len(found.information):,} candidates of {text}: {lengths}. Each counts once, however often it occurs."


def _page(title: str, lines: Sequence[Sequence[str]], note: str, plot: Plot) -> str:
    parts = [f"# {markdown(title)}", markdown_lines(lines), markdown(note), markdown_picture(plot)]
    return "\n\n".join(parts) + "\n"


def _csv(histograms: Histograms) -> str:
    """A row a quantity and bin; `low` and `high` are its edges in bits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["quantity", "low", "high", "candidates"])
    for name, counts in histograms.counts.items():
        edges = histograms.edges.tolist()
        writer.writerows(zip([name] * len(counts), edges[:-1], edges[1:], counts.tolist(), strict=True))
    return text.getvalue()
