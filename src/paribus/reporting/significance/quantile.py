"""From how surely a variance is known to a quantile, a p-value and the difference that a test can find.

The variance V of a difference is that of its items and what the mean square of its seeds has above that of the rest.
Each of the two is known with its own degrees of freedom, and seeds are few.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from paribus.reporting.significance.items import CONFIDENCE, Vector

POWER = 0.8
OWN_PAIRS = 0.25
"""Of pairs whose seeds vary as all others' do, the share that keeps its own variance for safety."""
TWO_SIDED = (1 + CONFIDENCE) / 2
_SMALLEST = 1e-300
_SLACK = 1e-9
_GRID = 25


def is_wild(own: Any, pooled: Any, own_freedom: float, freedom: float, own_share: float) -> Any:
    """Where a pair's own variance is more than luck makes of that of the others, the rest of the pooled one."""
    from scipy.special import fdtri

    left = freedom - own_freedom
    of_others = np.maximum(pooled * freedom - own * own_freedom, 0.0) / left
    return own > of_others * float(fdtri(own_freedom, left, 1 - own_share))


class _Luck(NamedTuple):
    """What tables of seeds show where their mean square is 1, each as probable as the others."""

    found: Vector
    """The mean squares that the test takes."""
    quantiles: Vector
    """Student's t that it takes with each."""
    middle: float
    """A table that shows this stands in the middle of all, by the difference that it calls detectable."""


@dataclass(frozen=True)
class Quantile:
    """Cochran and Cox's: Student's t of the seeds' degrees of freedom and of the items', by the share of seeds in V."""

    share: float
    seeds_freedom: float
    items_freedom: float
    seeds: float = 0.0
    """The mean square of seeds in units of V."""
    rest: float = 0.0
    """That of the rest, which the mean square of seeds has in it: `share` is what is above it."""
    own_freedom: float | None = None
    """Where the seeds' part is pooled, the degrees of freedom of the pair's own, which might have been taken."""

    def at(self, probability: float) -> float:
        """The number of errors that an estimate stays below with that probability."""
        from scipy.special import stdtrit

        of_seeds, of_items = (float(stdtrit(each, probability)) for each in (self.seeds_freedom, self.items_freedom))
        return self.share * of_seeds + (1 - self.share) * of_items

    def p_value(self, statistic: float) -> float:
        """Two-sided: the level at which `statistic` is the quantile; it lies between those of the two parts."""
        from scipy.optimize import brentq
        from scipy.special import stdtr

        bounds = sorted(2 * float(stdtr(each, -statistic)) for each in (self.seeds_freedom, self.items_freedom))
        if bounds[0] == bounds[1] or self.share in (0.0, 1.0):
            return 2 * float(stdtr(self.seeds_freedom if self.share > 0 else self.items_freedom, -statistic))

        def above(logarithm: float) -> float:
            return -self.at(float(np.exp(logarithm)) / 2) - statistic

        low, high = (float(np.log(max(bound, _SMALLEST))) for bound in bounds)
        if above(low - _SLACK) < 0:
            return _SMALLEST
        return min(1.0, float(np.exp(brentq(above, low - _SLACK, high + _SLACK))))

    def detectable(self, level: float) -> float:
        """In units of the error: where the test at `level` has 80 % power, over what luck makes of the seeds' part.

        This table is taken for the one in the middle of all such tables, since few seeds mostly show less than there
        is: half of the tables call at most the true number detectable.
        """
        from scipy.optimize import brentq
        from scipy.special import ndtr

        luck = self._luck(1 - level / 2)
        mean_square = self.seeds / luck.middle
        true = float(np.sqrt(max(mean_square - self.rest, 0.0) + 1 - self.share))
        of_seeds = np.maximum(mean_square * luck.found - self.rest, 0.0)
        bounds = self._bounds(of_seeds, luck.quantiles, 1 - level / 2)

        def lacking(effect: float) -> float:
            return float(np.mean(ndtr((effect - bounds) / true) + ndtr((-effect - bounds) / true))) - POWER

        return float(brentq(lacking, 0.0, 2 * (float(bounds.max()) + true)))

    def _luck(self, probability: float) -> _Luck:
        from scipy.special import stdtrit

        quantile = float(stdtrit(self.seeds_freedom, probability))
        if self.own_freedom is None:
            found = _of_luck(self.seeds_freedom, _steps(4 * _GRID)) / self.seeds_freedom
            return _Luck(found, np.full(len(found), quantile), _of_luck(self.seeds_freedom, 0.5) / self.seeds_freedom)
        left = self.seeds_freedom - self.own_freedom
        own, others = np.meshgrid(_of_luck(self.own_freedom, _steps(_GRID)), _of_luck(left, _steps(_GRID)))
        pooled = (own + others) / self.seeds_freedom
        own = own / self.own_freedom
        alone = is_wild(own, pooled, self.own_freedom, self.seeds_freedom, OWN_PAIRS)
        quantiles = np.where(alone, float(stdtrit(self.own_freedom, probability)), quantile)
        # Pairs that keep their own, larger variance call more detectable than all others: the middle lies below them.
        middle = float(np.quantile(pooled[~alone], 0.5 / (1 - OWN_PAIRS)))
        return _Luck(np.where(alone, own, pooled).ravel(), quantiles.ravel(), middle)

    def _bounds(self, of_seeds: Vector, quantiles: Vector, probability: float) -> Vector:
        """Differences above which the test finds one, by the seeds' part of V and its quantiles."""
        from scipy.special import stdtrit

        of_items = 1 - self.share
        weighted = of_seeds * quantiles + of_items * float(stdtrit(self.items_freedom, probability))
        variances = of_seeds + of_items
        bounds: Vector = np.divide(weighted, np.sqrt(variances), out=np.zeros_like(weighted), where=variances > 0)
        return bounds


def _steps(count: int) -> Vector:
    """Probabilities from 0 to 1, the middles of as many equal steps."""
    found: Vector = (np.arange(count) + 0.5) / count
    return found


def _of_luck(freedom: float, probability: Any) -> Any:
    """Quantiles of a chi-squared variable."""
    from scipy.special import chdtri

    return chdtri(freedom, 1 - probability)
