"""Plots of orderings: how alike documents of a context are, how many there are, and how that goes along the order."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from paribus.reporting.plots.looks import COLOURS, Looks
from paribus.reporting.plots.picture import Plot, picture

_WIDTH = 2.0 / 100
"""Cosines of one bar of `similarity_inside`, which counts from -1 to 1."""
SIMILARITY_PLOTS = ("similarity_inside", "similarity_along", "similarity", "counts")
"""Names of the plots that show cosines."""


class _Row(Protocol):
    @property
    def label(self) -> str: ...

    @property
    def numbers(self) -> Mapping[str, float | int | None]: ...

    @property
    def curves(self) -> Mapping[str, Sequence[float]]: ...


def order_plots(rows: Sequence[_Row]) -> list[Plot]:
    """All plots for which there is something to show."""
    return [
        _lines(
            rows,
            "similarity_inside",
            "Contexts by the mean cosine of two of their documents.",
            ("mean cosine of two documents of a context", "share of contexts (%)"),
            _shares,
        ),
        _lines(
            rows,
            "contexts_of_documents",
            "Contexts by the number of documents they hold.",
            ("documents in a context", "share of contexts (%)"),
            _counts,
        ),
        _lines(
            rows,
            "similarity_along",
            "Mean cosine of documents that follow each other, along the order.",
            ("part of the order (%)", "mean cosine with the next document"),
            _along,
        ),
        _bars(rows),
        _positions(rows),
        _counts_of(rows),
    ]


def _lines(
    rows: Sequence[_Row],
    curve: str,
    caption: str,
    axes_labels: tuple[str, str],
    points: Callable[[Sequence[float]], tuple[list[float], list[float]]],
) -> Plot:
    def draw(figure: Figure) -> None:
        axes, looks = figure.subplots(), Looks(["row"], [[row.label] for row in rows])
        for row in rows:
            look = looks.of([row.label])
            drawstyle = "steps-mid" if curve == "contexts_of_documents" else "default"
            options: dict[str, Any] = {"color": look.colour, "linewidth": 1.6, "drawstyle": drawstyle}
            axes.plot(*points(row.curves[curve]), linestyle=look.dashes, label=row.label, **options)
        if curve == "similarity_inside":
            label = f"{rows[0].label} in random order"
            axes.plot(*points(rows[0].curves["similarity_shuffled"]), color="#8C8C8C", linewidth=1, label=label)
        if curve == "contexts_of_documents":
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(axes_labels[0])
        axes.set_ylabel(axes_labels[1])
        figure.legend(loc="outside right center", fontsize=9)

    return picture(curve, caption, caption, (9.2, 3.8), draw, foldable=False)


def _shares(counts: Sequence[float]) -> tuple[list[float], list[float]]:
    """Middle of each bar that is not beside an empty end, and its share; nothing where nothing was counted."""
    filled = [place for place, count in enumerate(counts) if count]
    if not filled:
        return [], []
    places, total = range(max(0, filled[0] - 1), min(len(counts), filled[-1] + 2)), sum(counts)
    return [-1 + (place + 0.5) * _WIDTH for place in places], [100 * counts[place] / total for place in places]


def _counts(counts: Sequence[float]) -> tuple[list[float], list[float]]:
    total = sum(counts) or 1
    return [float(place) for place in range(1, len(counts))], [100 * count / total for count in counts[1:]]


def _along(values: Sequence[float]) -> tuple[list[float], list[float]]:
    told = [(100 * (place + 0.5) / len(values), value) for place, value in enumerate(values) if value is not None]
    return [place for place, _ in told], [value for _, value in told]


def _bars(rows: Sequence[_Row]) -> Plot:
    """Similarity inside contexts beside that of random documents and of the context trained on next."""
    names = {
        "similarity_inside": "in a context",
        "similarity_shuffled": "in random order",
        "similarity_following": "with the next",
        "similarity_random": "random",
    }

    def draw(figure: Figure) -> None:
        axes: Axes = figure.subplots()
        for place, (name, heading) in enumerate(names.items()):
            places = [number + 0.2 * (place - 1.5) for number in range(len(rows))]
            values = [row.numbers.get(name) for row in rows]
            axes.barh(places, [_bar(value) for value in values], 0.18, color=COLOURS[place], label=heading)
            for height in (height for height, value in zip(places, values, strict=True) if value is None):
                axes.text(0.0, height, " –", va="center", fontsize=8)
        axes.set_yticks(range(len(rows)), [row.label for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel("mean cosine")
        axes.grid(axis="y", visible=False)
        figure.legend(loc="outside right center", fontsize=9)

    caption = (
        "Mean cosine of two documents of a context, were the documents in random order too; of documents of "
        "consecutive contexts, and of contexts drawn at random."
    )
    told = [
        f"{row.label}: " + ", ".join(f"{names[name]} {_told(row.numbers.get(name))}" for name in names) for row in rows
    ]
    return picture(
        "similarity", caption, f"{caption} {'; '.join(told)}.", (9.2, 0.9 + 0.55 * len(rows)), draw, foldable=False
    )


def _positions(rows: Sequence[_Row]) -> Plot:
    """Where in the corpus the documents of an order lie: a point for each of a thousand places."""

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, len(rows), sharey=True, squeeze=False)[0]
        for panel, row in zip(panels, rows, strict=True):
            found = row.curves["positions"]
            places = [100 * place / max(1, len(found)) for place in range(len(found))]
            panel.plot(places, [100 * position for position in found], ".", markersize=2, color=COLOURS[0])
            panel.set_title(row.label, fontsize=8)
            panel.set_xlabel("order (%)", fontsize=8)
        panels[0].set_ylabel("place in the corpus (%)")

    caption = "Where in the corpus the documents lie that an order reads, from its begin to its end."
    return picture("positions", caption, caption, (max(4.0, 1.7 * len(rows)), 2.6), draw, foldable=False)


def _counts_of(rows: Sequence[_Row]) -> Plot:
    """Jumps and removed documents as shares, and the mean weight of a step."""
    panels: dict[str, Callable[[_Row], float | None]] = {
        "documents reached by a jump (%)": lambda row: _share(row, "jumps", "documents"),
        "mean weight of a step of the path": lambda row: row.numbers.get("mean_similarity_of_adjacent"),
        "documents removed (%)": lambda row: _share(row, "removed", "documents", "removed"),
    }

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, len(panels), sharey=True)
        for axis, (heading, value) in zip(axes, panels.items(), strict=True):
            values = [value(row) for row in rows]
            axis.barh(range(len(rows)), [_bar(found) for found in values], 0.6, color=COLOURS[0])
            for number, found in enumerate(values):
                axis.text(found or 0.0, number, " –" if found is None else f" {found:.3g}", va="center", fontsize=8)
            axis.set_xlabel(heading, fontsize=8)
            axis.margins(x=0.25)
            if all(found is None for found in values):
                axis.set_xticks([])
            axis.grid(axis="y", visible=False)
        axes[0].set_yticks(range(len(rows)), [row.label for row in rows])
        axes[0].set_ylim(len(rows) - 0.5, -0.5)

    caption = "Jumps, the weight of the path's steps (a jump weighs 0), and removed documents."
    return picture("counts", caption, caption, (9.2, 0.9 + 0.4 * len(rows)), draw, foldable=False)


def _bar(value: float | None) -> float:
    """Length of a bar; of no number none is drawn."""
    return math.nan if value is None else value


def _told(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _share(row: _Row, name: str, *of: str) -> float | None:
    """A number in percent of the sum of others; None where the row has none."""
    value = row.numbers.get(name)
    whole = sum(float(row.numbers.get(other) or 0) for other in of)
    return None if value is None or not whole else 100 * float(value) / whole
