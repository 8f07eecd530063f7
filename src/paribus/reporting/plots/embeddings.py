"""A flat picture of each row's token embeddings, coloured by how often the tokens occur."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from paribus.reporting.plots.picture import Plot, picture
from paribus.reporting.table.comparison import Comparison, ComparisonRow
from paribus.reporting.table.frame import RunRecord

TABLE = "embeddings.parquet"
ALONE = "only here"
_CLASSES = {
    "unused": "#8C8C8C",
    "rare": "#DDA6EE",
    "medium": "#B565D9",
    "frequent": "#7B2CBF",
    ALONE: "#C1121F",
}
"""Their colours, those below first; none is that of a factor's value."""
_POINTS = 1_500
"""Tokens of a class that a panel has room for."""
_MOST_PANELS, _COLUMNS = 8, 4


@dataclass(frozen=True)
class _Cloud:
    """The projected tokens of one row by class, (tokens, 2) each, and the uniformity of its embeddings."""

    name: str
    points: Mapping[str, NDArray[np.float32]]
    uniformity: Mapping[str, float | None]


def embedding_plot(
    comparison: Comparison, rows: Sequence[ComparisonRow], own: Mapping[str, Collection[int]]
) -> Plot | None:
    """A panel for each row, of the run of its first seed; None where no run has the file.

    `own` has, by identifier of a run, the ids of tokens that no other vocabulary of the comparison has: with BPE and
    Scaffold-BPE the scaffold tokens in the panel of the one, and what replaced them in that of the other (Scaffold-BPE,
    Figure 6).
    """
    clouds = [cloud for row in rows if (cloud := _cloud(comparison, row, own)) is not None]
    shown = clouds[:_MOST_PANELS]
    if not shown:
        return None
    columns = min(_COLUMNS, len(shown))
    lines = math.ceil(len(shown) / columns)

    def draw(figure: Figure) -> None:
        panels = figure.subplots(lines, columns, squeeze=False).ravel()
        for panel, cloud in zip(panels, shown, strict=False):
            _scatter(panel, cloud)
        for panel in panels[len(shown) :]:
            panel.remove()
        most = max(panels[: len(shown)], key=lambda panel: len(panel.get_legend_handles_labels()[1]))
        handles, labels = most.get_legend_handles_labels()
        figure.legend(
            handles[::-1], labels[::-1], loc="outside lower center", fontsize=9, ncols=len(handles), markerscale=3
        )

    several = any(len(row.runs) > 1 for row in rows)
    caption = "Input embeddings of the tokens at the last checkpoint on their first two principal components"
    caption += f"{', of the first seed' if several else ''}; scales differ. Frequent, medium, rare: thirds of the "
    caption += "tokens that occur in the held-out text, by how often; unused: those that do not occur there. U: "
    caption += "uniformity of those that occur: 0 where all have one direction, about −4 for random ones."
    if any(len(cloud.points[ALONE]) for cloud in shown):
        caption += f" {ALONE.capitalize()}: tokens that occur and that no other vocabulary of the table has."
    if len(clouds) > len(shown):
        caption += f" The first {len(shown)} of {len(clouds)} rows."
    told = "; ".join(f"{cloud.name}: {_told(cloud.uniformity)}" for cloud in shown)
    size = (max(4.5, 2.6 * columns), 2.9 * lines + 0.4)
    return picture("embeddings", caption, f"{caption} Uniformity of {told}.", size, draw)


def _first(row: ComparisonRow) -> RunRecord:
    return min(row.runs, key=lambda run: run.seed)


def _table(run: RunRecord) -> Path | None:
    path = run.scores / TABLE if run.scores else None
    return path if path and path.is_file() else None


def _cloud(comparison: Comparison, row: ComparisonRow, own: Mapping[str, Collection[int]]) -> _Cloud | None:
    run = _first(row)
    scores, path = comparison.scores.get(run.run_id), _table(run)
    if scores is None or path is None or not scores.uniformity:
        return None
    try:
        table = pq.read_table(path, columns=["id", "class", "x", "y"])
    except (pa.ArrowException, KeyError):
        return None
    names = table["class"].to_numpy(zero_copy_only=False)
    places = np.column_stack([table["x"].to_numpy(), table["y"].to_numpy()])
    alone = np.isin(table["id"].to_numpy(), list(own.get(run.run_id, ()))) & (names != "unused")
    points = {name: _thinned(places[(names == name) & ~alone]) for name in _CLASSES if name != ALONE}
    points[ALONE] = _thinned(places[alone])
    return _Cloud(comparison.row_name(row), points, scores.uniformity)


def _thinned(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Points evenly spaced among all of them, so that the same are shown each time."""
    if len(points) <= _POINTS:
        return points
    return points[np.linspace(0, len(points) - 1, _POINTS).round().astype(np.int64)]


def _scatter(axes: Axes, cloud: _Cloud) -> None:
    """The dots are pixels in the SVG, too: thousands of them would make a page heavy."""
    for name, points in cloud.points.items():
        if name == ALONE and not len(points):
            continue
        axes.scatter(
            points[:, 0], points[:, 1], s=3, color=_CLASSES[name], alpha=0.6, linewidths=0, label=name, rasterized=True
        )
    used = cloud.uniformity.get("used")
    shown = "" if used is None else f"\nU = {used:.2f}".replace("-", "−")
    axes.set_title(cloud.name + shown, fontsize=9)
    axes.set_xticks([])
    axes.set_yticks([])


def _told(uniformity: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in uniformity.items() if value is not None)
