"""What a picture says of its lines, points and areas, and which row of the table each belongs to.

Matplotlib writes an artist's identifier as that of its group in the SVG. Here it carries what is said, which becomes
the group's title, shown by browsers under the pointer, and its `data-row`, from 1, as the page counts rows.
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


def mark(artists: Sequence[Artist], told: str, row: int | None = None) -> None:
    """Say `told` of the artists; `row` is the place of their row among those of the comparison, if they have one."""
    for artist in artists:
        # Without anything that an attribute would have to escape.
        artist.set_gid(f"said:{quote(json.dumps([told, row]))}")


def mark_legends(figure: Figure) -> None:
    """Mark the names in legends as their lines."""
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


def with_titles(svg: str) -> str:
    """Replace the identifiers of an SVG by what they say."""
    return _GROUP.sub(lambda found: _titled(*_said_by(found[1])), svg)


def _said_by(gid: str) -> Any:
    return json.loads(unquote(gid.removeprefix("said:")))


def _said(axes: Axes) -> Iterator[tuple[str, str | None]]:
    """Labels of what a legend may name, and what is said of it."""
    for artist in (*axes.lines, *axes.collections):
        yield str(artist.get_label()), artist.get_gid()
    for container in axes.containers:
        yield str(container.get_label()), container.get_children()[0].get_gid()


def _titled(told: str, row: int | None) -> str:
    own = f' data-row="{row + 1}"' if row is not None else ""
    return f'<g class="mark"{own}><title>{html.escape(told)}</title>'
