"""The main picture of a report: what each factor does to the measures that decide, with 95 % intervals."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from paribus.reporting.notes.summary import Finding
from paribus.reporting.plots.looks import looks_of
from paribus.reporting.plots.marks import mark
from paribus.reporting.plots.picture import Plot, picture
from paribus.reporting.table.column import Column
from paribus.reporting.table.comparison import Comparison
from paribus.reporting.table.layout import heading

NAME = "factors"
MOST = 24
"""Effects that are drawn, of all measures together."""
_INK = "#444444"
_UNITS = {"accuracy": "percentage points", "percent": "points", "perplexity": "bits"}


def factors_plot(comparison: Comparison, findings: Sequence[Finding]) -> Plot | None:
    """A panel a measure and a line an effect; None where there is no effect."""
    drawn = findings[:MOST]
    columns = [column for column in comparison.columns if any(each.effect.column == column.key for each in drawn)]
    if not drawn:
        return None
    panels = [(column, [each for each in drawn if each.effect.column == column.key]) for column in columns]

    def draw(figure: Figure) -> None:
        heights = [len(found) + 1 for _, found in panels]
        axes = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
        for panel, (column, found) in zip(axes, panels, strict=True):
            _panel(panel, column, found, comparison)

    left = f" The first {MOST} of {len(findings)}." if len(findings) > MOST else ""
    caption = (
        "What each factor does, over all values of the others: intervals over seeds and items of 95 % confidence, all "
        f"effects together. Filled: beyond chance, and not due to the text that was read.{left}"
    )
    told = " ".join(each.text for each in drawn)
    return picture(NAME, caption, told, (9.2, 0.5 * len(panels) + 0.6 + 0.36 * len(drawn)), draw)


def _panel(axes: Axes, column: Column, found: Sequence[Finding], comparison: Comparison) -> None:
    for place, finding in enumerate(found):
        effect, colour = finding.effect, _colour(finding, comparison)
        low, middle, high = (
            column.factor * number for number in (effect.test.low, effect.test.difference, effect.test.high)
        )
        ends = [] if finding.state == "unjudged" else [low, high]
        line = axes.plot(ends, [place] * len(ends), color=colour, linewidth=1.8)
        face = "#ffffff" if finding.state in ("reserved", "undecided", "unjudged") else colour
        shape = "d" if effect.contrast.kind == "interaction" else "o"
        line += axes.plot([middle], [place], shape, color=colour, markerfacecolor=face)
        mark(line, finding.text)
    axes.axvline(0, color="#444444", linewidth=1, zorder=0)
    axes.set_yticks(range(len(found)), [_name(finding, comparison) for finding in found])
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    better = {"lower": "; to the left is better", "higher": "; to the right is better"}.get(column.better or "", "")
    unit = f", {_UNITS[column.kind]}" if column.kind in _UNITS else ""
    axes.set_xlabel(f"difference in {heading(column)}{unit}{better}")


def _name(finding: Finding, comparison: Comparison) -> str:
    contrast = finding.effect.contrast
    joint = " × " if contrast.kind == "interaction" else " · "
    value, reference = (joint.join(map(comparison.name, side)) for side in (contrast.values, contrast.references))
    return value if contrast.kind == "interaction" else f"{value} against {reference}"


def _colour(finding: Finding, comparison: Comparison) -> str:
    """Colour of the value, where its factor is the coloured one."""
    contrast = finding.effect.contrast
    if len(contrast.factors) > 1:
        return _INK
    return looks_of(comparison).colour_of(contrast.factors[0], contrast.values[0]) or _INK
