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
    """Adjust the levels and p-values of one measure's tests; `measures` is Bonferroni's factor.

    Levels of single tests are compared and not their t, whose degrees of freedom may differ. The largest of these are
    conservative: with fewer, all tests would share one random scale, and so depend on each other more.
    """
    from scipy.optimize import brentq
    from scipy.special import stdtrit
    from scipy.stats import multivariate_t

    if not tests:
        return []
    correlation, freedom = _correlation(weights), max(test.quantile.freedom for test in tests)

    def chance(p_value: float) -> float:
        """Chance that any of the tests has at most this p-value where nothing differs."""
        bound = len(tests) * p_value
        if correlation is None or bound < _BOUND:
            return bound
        reach = np.full(len(tests), float(stdtrit(freedom, 1 - p_value / 2)))
        joint = multivariate_t(np.zeros(len(tests)), correlation, freedom)
        return max(p_value, min(bound, 1 - float(joint.cdf(reach, lower_limit=-reach, random_state=_SEED))))

    def beyond(logarithm: float) -> float:
        return chance(float(np.exp(logarithm))) - whole

    whole = LEVEL / measures
    level = whole / len(tests)
    if correlation is not None:
        level = float(np.exp(brentq(beyond, np.log(level) - 1e-3, np.log(whole) + 1e-3, xtol=1e-4)))
    return [(replace(test, level=level), min(1.0, measures * chance(test.p_value))) for test in tests]


def _correlation(weights: Sequence[Weights]) -> Matrix | None:
    """Correlation of contrasts of arms that luck moves alike; None for one, for many, and where it is singular."""
    arms = sorted({arm for each in weights for arm in each})
    table = np.array([[each.get(arm, 0.0) for arm in arms] for each in weights])
    if not 1 < len(table) <= _MOST or np.linalg.matrix_rank(table) < len(table):
        return None
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    correlation: Matrix = table @ table.T
    return correlation
