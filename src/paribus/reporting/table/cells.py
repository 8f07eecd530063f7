"""The numbers of one cell: mean, spreads, and the tests of its difference from the row it is compared with."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from paribus.reporting.significance.crossed import CrossedTest, SeedVariance, half_width, within_rows
from paribus.reporting.significance.items import Matrix, PairedTest, Vector, standard_errors
from paribus.reporting.table.column import Column
from paribus.reporting.table.measures import finite, perplexity

Values = Mapping[int, Matrix]
"""By seed: shape (checkpoints, items)."""
Cells = dict[str, "Cell"]
"""By column key."""


@dataclass(frozen=True)
class Cell:
    """One number of the table. `value` is None where there is none, and NaN where a run produced NaN."""

    value: float | None = None
    """Mean over items, checkpoints and seeds; of a perplexity 2 to the power of that."""
    half_width: float | None = None
    """Half of the 95 % interval of `value`."""
    over: Literal["items", "seeds"] | None = None
    """What the interval is over: `items` alone, or `seeds` and items; what seeds do is pooled over the rows."""
    seed_spread: float | None = None
    """Standard deviation over the seeds' means."""
    checkpoint_spread: float | None = None
    """Standard deviation of the mean over the last checkpoints of a run; root of the mean variance of several seeds."""
    error: float | None = None
    """Standard error of the mean over items, each item's score averaged over checkpoints and seeds."""
    items: int = 0
    fewest: int = 0
    """Items of the smallest task of a mean; of all else `items`."""
    fitting: bool = False
    """Whether `fewest` counts the items alone whose prompt fits every run; all are scored."""
    seeds: int = 0
    start: str | None = None
    """The checkpoint that the row goes on from, None for random weights: seeds vary the continuation alone."""
    lossy: bool = False
    """Whether the bits are of a model whose tokenizer loses some of the text that they are divided by."""
    checkpoints: int = 0
    best: bool = False
    test: PairedTest | None = None
    """Over the items of these very models, of a perplexity in bits; None for a baseline row and for what is not scored
    by item."""
    crossed: CrossedTest | None = None
    """Over seeds and items where both rows have two seeds or more; over items of what no model was trained for."""
    p_adjusted: float | None = None
    """`p_value` adjusted over all that decides; None for what does not, and where there are too few seeds to judge."""
    of_factors: bool = False
    """True if effects of factors decide, and the row's own difference is none of them: it has no interval."""
    plain_p: float | None = None
    """Of the unpaired t-test over the means of each seed and checkpoint, where it is wanted."""

    @property
    def ground(self) -> tuple[str | None, bool]:
        """What two numbers must have alike for their difference to be judged."""
        return self.start, self.lossy

    @property
    def difference(self) -> float | None:
        """From the row it is compared with: over the seeds that both have; where these are fewer than two, over all."""
        found = self.crossed or self.test
        return found.difference if found else None

    @property
    def judged(self) -> CrossedTest | None:
        """`crossed` where more may be said than the difference."""
        return self.crossed if self.crossed and self.crossed.sufficient and not self.of_factors else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the difference: of 95 % confidence, for what decides over all that is decided together."""
        return (self.judged.low, self.judged.high) if self.judged else None

    @property
    def p_value(self) -> float | None:
        """Two-sided, of the difference by itself."""
        return self.judged.p_value if self.judged else None

    @property
    def detectable(self) -> float | None:
        """The smallest true difference that is found with a probability of 80 %, as surely as `interval` is known."""
        return self.judged.detectable if self.judged else None


def item_averages(values: Sequence[Mapping[str, Values]]) -> list[dict[str, Vector]]:
    """Each item's score (items,), averaged over checkpoints and seeds, of every row and column that has any."""
    return [{key: _over_items(list(seeds.values())) for key, seeds in row.items() if seeds} for row in values]


def cells_of(values: Sequence[Mapping[str, Values]], averages: Sequence[Mapping[str, Vector]]) -> list[Cells]:
    """The cells of rows: by column key, from each seed's values; (1, 1) for a number of the whole run.

    `averages` are those of the items of the same values.
    """
    places = [(row, key) for row, found in enumerate(averages) for key in found]
    seeds = [list(values[row][key].values()) for row, key in places]
    within = {key: within_rows(seed_means([row[key] for row in values])) for key in dict.fromkeys(k for _, k in places)}
    means = [np.array([each.mean(axis=1) for each in found]) for found in seeds]
    errors = standard_errors([averages[row][key] for row, key in places])
    rows: list[Cells] = [{key: Cell() for key in by_column} for by_column in values]
    for alike in _by_shape(means):
        for index, spreads in zip(alike, _spreads(np.stack([means[index] for index in alike])), strict=True):
            row, key = places[index]
            rows[row][key] = _cell(spreads, errors[index], seeds[index], within[key])
    return rows


def seed_means(rows: Sequence[Values]) -> Matrix:
    """(rows, seeds) of one column, averaged over items and checkpoints; NaN where a row lacks a seed."""
    seeds = sorted({seed for row in rows for seed in row})
    means = [[float(row[seed].mean()) if seed in row else math.nan for seed in seeds] for row in rows]
    return np.array(means).reshape(len(rows), len(seeds))


def _by_shape(means: Sequence[Matrix]) -> list[list[int]]:
    groups: dict[tuple[int, ...], list[int]] = {}
    for index, found in enumerate(means):
        groups.setdefault(found.shape, []).append(index)
    return list(groups.values())


def _spreads(means: Matrix) -> list[tuple[float, float | None, float | None]]:
    """Mean, standard deviation over seeds and over checkpoints of each of (cells, seeds, checkpoints)."""
    cells, seeds, checkpoints = means.shape
    nothing: list[float | None] = [None] * cells
    with np.errstate(invalid="ignore"):  # of runs with infinite scores
        over_seeds = np.std(means.mean(axis=2), axis=1, ddof=1).tolist() if seeds > 1 else nothing
        steps = np.sqrt(np.mean(np.var(means, axis=2, ddof=1), axis=1)).tolist() if checkpoints > 1 else nothing
        return list(zip(means.reshape(cells, -1).mean(axis=1).tolist(), over_seeds, steps, strict=True))


def _cell(
    spreads: tuple[float, float | None, float | None],
    error: float | None,
    seeds: Sequence[Matrix],
    within: SeedVariance | None,
) -> Cell:
    value, over_seeds, steps = spreads
    checkpoints, items = seeds[0].shape
    counts = {"items": items, "fewest": items, "seeds": len(seeds), "checkpoints": checkpoints}
    if not math.isfinite(value):
        return Cell(value=value, **counts)
    half = half_width(np.stack([found.mean(axis=0) for found in seeds]), within)
    over: Literal["items", "seeds"] | None = None if half is None else "items" if within is None else "seeds"
    return Cell(value, half, over, over_seeds, steps, error, **counts)


def _over_items(seeds: Sequence[Matrix]) -> Vector:
    if len(seeds) == 1 and seeds[0].shape[0] == 1:
        return np.asarray(seeds[0][0])
    mean: Vector = np.mean([values.mean(axis=0) for values in seeds], axis=0)
    return mean


def shown(cells: Sequence[Mapping[str, Cell]], columns: Sequence[Column]) -> list[Cells]:
    """Cells of a perplexity with 2 to the power of their bits; its spreads are to first order (delta method).

    Tests, their intervals and what they could have found stay in bits.
    """
    perplexities = [column.key for column in columns if column.kind == "perplexity"]
    return [dict(row) | {key: _perplexity(row[key]) for key in perplexities} for row in cells]


def _perplexity(cell: Cell) -> Cell:
    if cell.value is None or not finite(cell.value):
        return cell
    value = perplexity(cell.value)
    half, seeds, steps, error = (
        None if bits is None else value * math.log(2) * bits
        for bits in (cell.half_width, cell.seed_spread, cell.checkpoint_spread, cell.error)
    )
    return replace(cell, value=value, half_width=half, seed_spread=seeds, checkpoint_spread=steps, error=error)
