"""The look of tables in the terminal that are no comparison of runs."""

from rich.box import SIMPLE_HEAD
from rich.table import Table


def bare_table(title: str, caption: str | None = None) -> Table:
    """A table without columns yet."""
    looks = {"title_justify": "left", "caption_justify": "left", "box": SIMPLE_HEAD, "pad_edge": False}
    return Table(title=title, caption=caption, collapse_padding=True, **looks)  # type: ignore[arg-type]
