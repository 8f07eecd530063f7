"""Tables of scores that are drawn with known variances, and weights of contrasts between their rows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paribus.reporting.significance import Estimate, Quantile, SeedVariance, crossed_test, pooled_variance

Table = NDArray[np.float64]

FACTORIAL = [{0: -0.5, 1: -0.5, 2: 0.5, 3: 0.5}, {0: -0.5, 1: 0.5, 2: -0.5, 3: 0.5}, {0: 1.0, 1: -1.0, 2: -1.0, 3: 1.0}]
MANY_TO_ONE = [{0: -1.0, arm: 1.0} for arm in (1, 2, 3)]
ALL_PAIRS = [{0: -1.0, 1: 1.0}, {0: -1.0, 2: 1.0}, {1: -1.0, 2: 1.0}]


@dataclass(frozen=True)
class Tables:
    """Tables of arms whose difference has the variance 1, a `share` of it from seeds."""

    rows: int
    seeds: int
    share: float
    items: int = 40
    seed_item_share: float = 0.3
    """Share of the items' variance that is drawn anew for each seed."""

    def table(self, generator: np.random.Generator, difference: float = 0.0) -> Table:
        """(rows, seeds, items); the second row is higher by `difference`."""
        part = (1 - self.share) * self.items / 2
        shape = (self.rows, self.seeds, self.items)
        table = generator.normal(0, 2, (1, self.seeds, 1)) + generator.normal(0, 3, (1, 1, self.items))
        table = table + np.sqrt(self.share * self.seeds / 2) * generator.normal(size=(self.rows, self.seeds, 1))
        table = table + np.sqrt(part * (1 - self.seed_item_share)) * generator.normal(size=(self.rows, 1, self.items))
        table = table + np.sqrt(part * self.seed_item_share * self.seeds) * generator.normal(size=shape)
        table[1] += difference
        return table


def difference_of(ours: Table, theirs: Table, pooled: SeedVariance | None = None) -> Estimate:
    """The test of two rows, each (seeds, items)."""
    scale = float(max(np.abs(ours).max(), np.abs(theirs).max()))
    return crossed_test(ours - theirs, scale, pooled and pooled.times(2))


def compared(table: Table) -> Estimate:
    """The test of the second row against the first, with the seeds of all."""
    return difference_of(table[1], table[0], pooled_variance(table.mean(axis=2)))


def with_p_value(p_value: float, freedom: float = 6.0) -> Estimate:
    """A test with this p-value."""
    quantile = Quantile(1.0, freedom, freedom, seeds=1.0, rest=0.0)
    return Estimate(-quantile.at(p_value / 2), 1.0, p_value, quantile, 4, 40)
