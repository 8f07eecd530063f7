"""Pictures that are written nowhere: a report with all of them takes longer than what is asked of it."""

from typing import Any

import pytest
from matplotlib.figure import Figure

from paribus.reporting import plots

_EMPTY = b'<svg viewBox="0 0 1 1"></svg>'


class _Unwritten(Figure):
    def savefig(self, file: Any, **named: Any) -> None:
        """Write an empty picture."""
        file.write(_EMPTY)


def undrawn_pictures(patch: pytest.MonkeyPatch) -> None:
    """Let every picture be empty, with its name, its caption and its words."""
    patch.setattr(plots, "_Figure", _Unwritten)
    patch.setattr(plots, "_lay_out", lambda figure: None)
    patch.setattr(_Unwritten, "fold", lambda figure: None, raising=False)
