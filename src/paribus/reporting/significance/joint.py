"""Several contrasts of one table judged in one step, so that p-value, interval and detectable difference agree.

The contrasts of a measure have a joint distribution of Student's t, whose correlation is that of their weights. Its
tail turns a p-value into the chance that any of them reaches it (Hothorn, Bretz and Westfall 2008, Biometrical Journal
50).
Measures are independent questions that may depend on each other in any way: Bonferroni.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from paribus.reporting.significance.crossed import LEVEL, Estimate
from paribus.reporting.significance.paired import Matrix

_MOST = 20
"""Contrasts whose joint distribution is integrated, in some 40 ms a point; of more Bonferroni's bound is taken."""
_BOUND = 1e-4
"""Chances below which Bonferroni's bound is taken: an integral has an error of 1e-5, of 20 contrasts 2e-4."""
_SEED = 0

Weights = Mapping[int, float]
"""Weight of each arm by its row; they add up to 0."""


def judged_together(
    tests: Sequence[Estimate], weights: Sequence[Weights], measures: int
) -> list[tuple[Estimate, float]]:
    """Adjust the levels and p-values of one measure's tests; `measures` is Bonferroni's factor."""
    if not tests:
        return []
    rule = _Rule(_correlation(weights), max(test.quantile.freedom for test in tests), len(tests), measures)
    level = rule.level()
    return [(replace(test, level=level), rule.adjusted(test.p_value)) for test in tests]


class _Rule:
    """Family-wise adjustment of the p-value of one test.

    Levels of single tests are compared and not their t, whose degrees of freedom may differ. The largest of these are
    conservative: with fewer, all tests would share one random scale, and so depend on each other more.
    """

    def __init__(self, correlation: Matrix | None, freedom: float, tests: int, measures: int) -> None:
        self._correlation, self._freedom, self._tests, self._measures = correlation, freedom, tests, measures

    def adjusted(self, p_value: float) -> float:
        """The adjusted p-value."""
        return min(1.0, self._measures * self._any(p_value))

    def level(self) -> float:
        """The p-value of one test that is adjusted to 0.05."""
        from scipy.optimize import brentq

        wanted = LEVEL / self._measures
        if self._correlation is None:
            return wanted / self._tests

        def beyond(logarithm: float) -> float:
            return self._any(float(np.exp(logarithm))) - wanted

        return float(np.exp(brentq(beyond, np.log(wanted / self._tests) - 1e-3, np.log(wanted) + 1e-3, xtol=1e-4)))

    def _any(self, p_value: float) -> float:
        """The chance that any of the tests has at most this p-value where nothing differs."""
        from scipy.special import stdtrit
        from scipy.stats import multivariate_t

        bound = self._tests * p_value
        if self._correlation is None or bound < _BOUND:
            return bound
        reach = np.full(self._tests, float(stdtrit(self._freedom, 1 - p_value / 2)))
        joint = multivariate_t(np.zeros(self._tests), self._correlation, self._freedom)
        return max(p_value, min(bound, 1 - float(joint.cdf(reach, lower_limit=-reach, random_state=_SEED))))


def _correlation(weights: Sequence[Weights]) -> Matrix | None:
    """Correlation of contrasts of arms that luck moves alike; None for one, for many, and where it is singular."""
    arms = sorted({arm for each in weights for arm in each})
    table = np.array([[each.get(arm, 0.0) for arm in arms] for each in weights])
    if not 1 < len(table) <= _MOST or np.linalg.matrix_rank(table) < len(table):
        return None
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    correlation: Matrix = table @ table.T
    return correlation
