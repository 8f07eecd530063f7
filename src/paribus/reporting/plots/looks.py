"""What rows look like in every picture: a colour a value of one factor, a shape a combination of the others' values."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from paribus.reporting.table.comparison import Comparison

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#101010", "#8C8C8C")
"""Those of Okabe and Ito, which colour-blind readers tell apart."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
SIGNS = ("●", "■", "▲", "◆", "▼", "✚", "✖", "★")
"""The markers as characters, for a text."""
Dashes = str | tuple[int, tuple[int, ...]]
"""Of a line, as matplotlib takes it: a name, or where it begins in lengths of lines and gaps."""
DASHES: tuple[Dashes, ...] = (
    "-", "--", ":", "-.", (0, (7, 1, 1, 1, 1, 1)), (0, (1, 4)), (0, (9, 4)), (0, (4, 1, 2, 1)),
)  # fmt: skip
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "|||", "---", "OO")
_AMOUNTS = ("model", "budget")
"""Groups of factors that pictures have along an axis, so that lines run over their values."""


@dataclass(frozen=True)
class Look:
    """Of one row."""

    colour: str
    shape: int = 0

    @property
    def marker(self) -> str:
        """Of a point."""
        return MARKERS[self.shape % len(MARKERS)]

    @property
    def sign(self) -> str:
        """The same as a character."""
        return SIGNS[self.shape % len(SIGNS)]

    @property
    def dashes(self) -> Dashes:
        """Of a line."""
        return DASHES[self.shape % len(DASHES)]

    @property
    def hatch(self) -> str:
        """Of a bar."""
        return HATCHES[self.shape % len(HATCHES)]


class Looks:
    """The looks of rows that are given by their values of `factors`, in their order.

    Coloured is the factor with the most values, the first of several, and none of sizes and budgets beside another.
    Where no other factor varies, shapes differ with the colours. Where the others have more combinations than there are
    shapes, none is coloured, and each row has a look of its own.
    """

    def __init__(self, factors: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self._values = [list(dict.fromkeys(row[place] for row in rows)) for place in range(len(factors))]
        self._factors = tuple(factors)
        varied = [place for place, values in enumerate(self._values) if len(values) > 1]
        self._rows = list(dict.fromkeys(map(tuple, rows)))
        self._coloured = max(varied, key=self._rank, default=None)
        self._others = list(dict.fromkeys(map(self._beside, rows)))
        if self._coloured is not None and len(self._others) > 1 and self._shapes(self._coloured) > len(MARKERS):
            self._coloured = None

    def of(self, row: Sequence[str]) -> Look:
        """The look of one of the rows."""
        if self._coloured is None:
            place = self._rows.index(tuple(row))
            return Look(COLOURS[place % len(COLOURS)], place // len(COLOURS))
        value = self._values[self._coloured].index(row[self._coloured])
        again = value // len(COLOURS)
        alone = len(self._others) == 1
        shape = value + again if alone else self._others.index(self._beside(row)) + again * len(self._others)
        return Look(COLOURS[value % len(COLOURS)], shape)

    def colour_of(self, factor: str, value: str) -> str | None:
        """The colour of a factor's value; None where another factor is coloured."""
        if self._coloured is None or self._factors[self._coloured] != factor:
            return None
        return COLOURS[self._values[self._coloured].index(value) % len(COLOURS)]

    @property
    def told(self) -> tuple[str | None, tuple[str, ...]]:
        """The factor that colours stand for, and those that shapes do; none of the latter where it varies alone."""
        if self._coloured is None:
            return None, ()
        coloured = self._factors[self._coloured]
        varied = (factor for factor, values in zip(self._factors, self._values, strict=True) if len(values) > 1)
        return coloured, tuple(factor for factor in varied if factor != coloured)

    def _rank(self, place: int) -> tuple[bool, int, int]:
        amount = self._factors[place].split(".")[0] in _AMOUNTS
        return not amount, len(self._values[place]), -place

    def _shapes(self, coloured: int) -> int:
        """How many tell the rows of a colour apart."""
        return len(self._others) * math.ceil(len(self._values[coloured]) / len(COLOURS))

    def _beside(self, row: Sequence[str]) -> tuple[str, ...]:
        return tuple(value for place, value in enumerate(row) if place != self._coloured)


def looks_of(comparison: Comparison) -> Looks:
    """Of the rows of a comparison, finished or not: what is still missing changes no colour when it comes."""
    return Looks(comparison.factors, [row.labels for row in comparison.rows])
