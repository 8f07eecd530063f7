"""Student's t where two variances with few degrees of freedom each make up that of an estimate.

The variance V of a difference is that of its items and what the mean square of its seeds has above that of the rest.
Each of the two is known with its own degrees of freedom, and seeds are few.
"""

from dataclasses import dataclass

import numpy as np

from paribus.reporting.significance.paired import CONFIDENCE

POWER = 0.8
TWO_SIDED = (1 + CONFIDENCE) / 2
_SMALLEST = 1e-300
_SLACK = 1e-9
_GRID = 100


@dataclass(frozen=True)
class Quantile:
    """Cochran and Cox's reference distribution: Student's t of seeds and of items, weighted by their shares of V."""

    share: float
    seeds_freedom: float
    items_freedom: float
    seeds: float
    """The mean square of seeds in units of V."""
    rest: float
    """That of the rest, which the mean square of seeds has in it: `share` is what is above it."""

    def at(self, probability: float) -> float:
        """Quantile in standard errors."""
        from scipy.special import stdtrit

        of_seeds, of_items = (float(stdtrit(each, probability)) for each in (self.seeds_freedom, self.items_freedom))
        return self.share * of_seeds + (1 - self.share) * of_items

    @property
    def freedom(self) -> float:
        """Satterthwaite's degrees of freedom of V."""
        return 1 / (self.share**2 / self.seeds_freedom + (1 - self.share) ** 2 / self.items_freedom)

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
        """The difference, in units of the error, that a test at `level` finds with a probability of 80 %.

        Integrated over the sampling distribution of the seeds' mean square, of which that of this table is taken as the
        median, since with few seeds it usually lies below the true value.
        """
        from scipy.optimize import brentq
        from scipy.special import chdtri, ndtr, stdtrit

        quantiles = (np.arange(_GRID) + 0.5) / _GRID
        luck = chdtri(self.seeds_freedom, 1 - quantiles) / chdtri(self.seeds_freedom, 0.5)
        of_items = 1 - self.share
        of_seeds = np.maximum(self.seeds * luck - self.rest, 0.0)
        t_seeds, t_items = (float(stdtrit(each, 1 - level / 2)) for each in (self.seeds_freedom, self.items_freedom))
        variances = of_seeds + of_items
        weighted = of_seeds * t_seeds + of_items * t_items
        bounds = np.divide(weighted, np.sqrt(variances), out=np.zeros_like(weighted), where=variances > 0)
        expected = self.seeds * self.seeds_freedom / float(chdtri(self.seeds_freedom, 0.5))
        error = float(np.sqrt(max(expected - self.rest, 0.0) + of_items))

        def lacking(effect: float) -> float:
            return float(np.mean(ndtr((effect - bounds) / error) + ndtr((-effect - bounds) / error))) - POWER

        return float(brentq(lacking, 0.0, 2 * (float(bounds.max()) + error)))
