"""What a picture says of its lines, points and areas, and which row of the table each belongs to.

Matplotlib writes an artist's identifier as that of its group in the SVG. Here it carries what is said, and becomes
attributes of the group: `data-told`, `data-row` (from 1, as the page counts rows), and `data-axes` of a panel, from
which a page works out the number at a place of a line.
"""

import html
import json
import re
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote, unquote

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_GROUP = re.compile(r'<g id="(said:[^"]*)">')
_POINTS = 72
"""Of an SVG, an inch."""


def mark(artists: Sequence[Artist], told: str, row: int | None = None) -> None:
    """Say `told` of the artists; `row` is the place of their row among those of the comparison, if they have one."""
    for artist in artists:
        artist.set_gid(_gid([told, row]))


def measure(axes: Axes, x: str, y: str, *, scale: float = 1.0, ticks: Sequence[str] = ()) -> None:
    """Let numbers be read from the lines of a panel: what both axes say, and an x that is shown times `scale`.

    `ticks` are names of the places 0, 1, 2, ... along x, where it has no numbers.
    """
    axes.set_gid(_gid({"x": x, "y": y, "scale": scale, "ticks": list(ticks)}))


def finish(figure: Figure) -> None:
    """Mark the names in legends as their lines, and say where panels lie, once everything is laid out."""
    # Names that a table shows may be equal: a legend has them in the order in which they are drawn.
    rows: dict[str, deque[int | None]] = defaultdict(deque)
    for label, gid in (said for axes in figure.axes for said in _said(axes)):
        if gid:
            rows[label].append(_said_by(gid)[1])
    for legend in figure.legends:
        for handle, name in zip(legend.legend_handles, legend.get_texts(), strict=True):
            # A long one stands in several lines.
            if found := rows.get(label := name.get_text().replace("\n", "")):
                mark([each for each in (handle, name) if each is not None], label, found.popleft())
    for axes in figure.axes:
        if gid := axes.get_gid():
            axes.set_gid(_gid(_said_by(gid) | _place(axes, figure)))


def attributes(svg: str) -> str:
    """The SVG with what is said as attributes in place of identifiers."""
    return _GROUP.sub(lambda found: f"<g {_attributes(_said_by(found[1]))}>", svg)


def _gid(said: object) -> str:
    """Without anything that an attribute would have to escape."""
    return f"said:{quote(json.dumps(said))}"


def _said_by(gid: str) -> Any:
    return json.loads(unquote(gid.removeprefix("said:")))


def _said(axes: Axes) -> Iterator[tuple[str, str | None]]:
    """Labels of what a legend may name, and what is said of it."""
    for artist in (*axes.lines, *axes.collections):
        yield str(artist.get_label()), artist.get_gid()
    for container in axes.containers:
        yield str(container.get_label()), container.get_children()[0].get_gid()


def _place(axes: Axes, figure: Figure) -> dict[str, object]:
    """Of both axes the ends in the SVG and in numbers, and whether logarithms are shown."""
    width, height = (_POINTS * inches for inches in figure.get_size_inches())
    box = axes.get_position()
    return {
        "ends": [[width * box.x0, width * box.x1], [height * (1 - box.y0), height * (1 - box.y1)]],
        "limits": [list(map(float, axes.get_xlim())), list(map(float, axes.get_ylim()))],
        "logarithmic": [axes.get_xscale() == "log", axes.get_yscale() == "log"],
    }


def _attributes(found: Any) -> str:
    if isinstance(found, dict):
        return f'data-axes="{html.escape(json.dumps(found))}"'
    told, row = found
    own = f' data-row="{row + 1}"' if row is not None else ""
    return f'class="mark" data-told="{html.escape(told)}"{own}'
