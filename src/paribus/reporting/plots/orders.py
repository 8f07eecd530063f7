"""Plots of orderings: how alike the documents of a context are, how many there are, and how alike neighbours are."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from paribus.reporting.plots.looks import Looks
from paribus.reporting.plots.picture import Plot, picture

_WIDTH = 2.0 / 100
"""Cosines of one bar of `similarity_inside`, which counts from -1 to 1."""
SIMILARITY_PLOTS = ("similarity_inside", "similarity_along")
"""Names of the plots that show cosines."""


class _Row(Protocol):
    @property
    def label(self) -> str: ...

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

    return picture(curve, caption, caption, (9.2, 3.8), draw)


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
