"""Pictures that are laid out and written nowhere: a report with all of them takes longer than what is asked of it."""

from typing import Any

import pytest
from matplotlib.figure import Figure

from paribus.reporting.plots import picture

_EMPTY = b'<svg viewBox="0 0 1 1"></svg>'


class _Unwritten(Figure):
    def savefig(self, *given: Any, **named: Any) -> None:
        """Nothing."""


def undrawn_pictures(patch: pytest.MonkeyPatch) -> None:
    """Let every picture be empty, with its name, its caption and its words."""
    patch.setattr(picture, "Figure", _Unwritten)
    patch.setattr(picture, "_laid_out", lambda figure: figure)
    patch.setattr(picture, "_svg", lambda figure: _EMPTY)
    patch.setattr(picture, "_narrow", lambda height, draw: None)
