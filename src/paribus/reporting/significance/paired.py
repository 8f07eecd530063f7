"""Is a difference between two runs larger than the luck of the items they were scored on?

The two runs answered the same items, so every test is paired: it looks at the item-by-item differences, always
`scores_a - scores_b`. Distributions are scipy's and McNemar's test is statsmodels'; this module chooses among tests,
and says what holds where differences have no spread.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE = 0.95
EXACT_UP_TO = 16
"""Items up to which a permutation test counts all sign patterns."""
EXACT_DISCORDANT = 25
"""Items that only one run got right, below which McNemar's test is exact."""
RESAMPLES = 9_999
ROUNDING = 1e-12
_BATCH = 4_000_000

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Test = Literal["auto", "t", "mcnemar", "bootstrap", "permutation"]


@dataclass(frozen=True)
class PairedTest:
    """The mean of `scores_a - scores_b` over items, its 95 % confidence interval, and the two-sided p-value."""

    difference: float
    low: float
    high: float
    p_value: float
    items: int
    test: str = "paired t"
    """Where the p-value comes from: `paired t`, `McNemar`, `paired bootstrap`, `permutation` or `sign flips`."""


def paired_test(scores_a: ArrayLike, scores_b: ArrayLike, *, test: Test = "auto") -> PairedTest:
    """Test of two runs' scores on the same items.

    Args:
        scores_a: shape (n,), the score of each item in run a.
        scores_b: shape (n,), the scores of the same items, in the same order, in run b.
        test: `auto` is McNemar's test where all scores are 0 or 1, else the paired t-test; `t`, `mcnemar`, `bootstrap`
            (bias-corrected and accelerated, 9,999 resamples) and `permutation` (of signs) are taken at their word.

    Returns:
        `difference` is mean(a) - mean(b), above zero where a scores higher; `low` and `high` bound its 95 % interval,
        of the bootstrap if that is the test, else Student's t of the differences with n - 1 degrees of freedom;
        `p_value` is two-sided, for "no difference". McNemar's test is exact (binomial) where fewer than 25 items are
        right in one run only, else chi-squared without continuity correction.

        Where all n differences are equal there is no spread. The interval is then the difference itself (unbounded for
        n = 1), and the p-value is exact: 1 for a difference of zero, otherwise that of flipping signs, 2 ** (1 - n).

    Raises:
        ValueError: the arrays are empty, not one-dimensional, of unequal length, or not finite; or `mcnemar` is asked
            for scores other than 0 and 1.
    """
    from scipy.special import stdtr, stdtrit  # scipy.stats, which has the t-test, takes half a second to load

    a, b = _checked(scores_a, scores_b)
    binary = test in ("auto", "mcnemar") and bool(np.isin([a, b], (0.0, 1.0)).all())
    if test == "mcnemar" and not binary:
        raise ValueError("McNemar's test needs scores that are 0 or 1; take test='t' or test='bootstrap'")
    differences, scale = a - b, _largest(a, b)
    if np.ptp(differences) <= ROUNDING * scale:
        base = _without_spread(differences, scale)
    else:
        freedom, mean = len(a) - 1, float(differences.mean())
        error = float(differences.std(ddof=1) / np.sqrt(len(a)))
        reach = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error
        p_value = 2 * float(stdtr(freedom, -abs(mean / error)))
        base = PairedTest(mean, mean - reach, mean + reach, p_value, len(a))
        if test == "bootstrap":
            return _bootstrap(base, differences)
    if binary:
        return replace(base, p_value=_mcnemar(a, b), test="McNemar")
    if test == "permutation":
        return replace(base, p_value=permutation_test(a, b), test="permutation")
    return base


def permutation_test(scores_a: ArrayLike, scores_b: ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """Two-sided p-value of the paired sign-flip permutation test on the mean difference (`scipy.stats`).

    It assumes no distribution, so it is the check of `paired_test` on few items. Up to 16 differing items all sign
    patterns are counted and the p-value is exact; above, `resamples` patterns are drawn with `seed` and the p-value is
    (hits + 1) / (resamples + 1), which is never zero.

    Raises:
        ValueError: as `paired_test`.
    """
    from scipy import stats

    a, b = _checked(scores_a, scores_b)
    differences = (a - b)[np.abs(a - b) > ROUNDING * _largest(a, b)]
    if not len(differences):
        return 1.0
    result = stats.permutation_test(
        (differences,), _mean, permutation_type="samples", vectorized=True, rng=np.random.default_rng(seed),
        n_resamples=np.inf if len(differences) <= EXACT_UP_TO else resamples, batch=max(1, _BATCH // len(differences)),
    )  # fmt: skip
    return float(result.pvalue)


def unpaired_t_test(sample_a: ArrayLike, sample_b: ArrayLike) -> float | None:
    """Two-sided p-value of the plain t-test of two independent samples, shapes (n,) and (m,); None without spread.

    It is what papers call "t-test" without further words; it ignores that the same items were scored.
    """
    from scipy import stats

    a, b = np.asarray(sample_a, dtype=np.float64), np.asarray(sample_b, dtype=np.float64)
    if min(len(a), len(b)) < 2 or np.ptp(a) + np.ptp(b) <= ROUNDING * _largest(a, b):
        return None
    return float(stats.ttest_ind(a, b).pvalue)


def _mean(differences: Any, axis: int = -1) -> Any:
    return np.mean(differences, axis=axis)


def _checked(scores_a: ArrayLike, scores_b: ArrayLike) -> tuple[Vector, Vector]:
    a, b = np.asarray(scores_a, dtype=np.float64), np.asarray(scores_b, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(
            f"a paired test needs two arrays of one dimension and equal length, not {a.shape} and {b.shape}"
        )
    if not len(a):
        raise ValueError("a paired test needs at least one item")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("a paired test needs finite scores; leave out or repair the items that are NaN or infinite")
    return a, b


def _largest(a: Vector, b: Vector) -> float:
    return float(max(np.abs(a).max(), np.abs(b).max()))


def _mcnemar(a: Vector, b: Vector) -> float:
    from statsmodels.stats.contingency_tables import mcnemar

    only_a, only_b = int(np.sum(a > b)), int(np.sum(b > a))
    both = int(np.sum((a == 1) & (b == 1)))
    table = [[both, only_a], [only_b, len(a) - both - only_a - only_b]]
    return float(mcnemar(table, exact=only_a + only_b < EXACT_DISCORDANT, correction=False).pvalue)


def _bootstrap(base: PairedTest, differences: Vector) -> PairedTest:
    """The BCa interval; the p-value is that of the bootstrap with the differences centred on zero."""
    from scipy import stats

    result = stats.bootstrap(
        (differences,), _mean, confidence_level=CONFIDENCE, n_resamples=RESAMPLES, method="BCa", vectorized=True,
        batch=max(1, _BATCH // len(differences)), rng=np.random.default_rng(0),
    )  # fmt: skip
    away = np.abs(result.bootstrap_distribution - base.difference) >= abs(base.difference)
    low, high = (float(bound) for bound in result.confidence_interval)
    p_value = (int(away.sum()) + 1) / (RESAMPLES + 1)
    return replace(base, low=low, high=high, p_value=p_value, test="paired bootstrap")


def _without_spread(differences: Vector, scale: float) -> PairedTest:
    from scipy import stats

    items, mean = len(differences), float(np.mean(differences))
    if abs(mean) <= ROUNDING * scale:
        mean = 0.0
    low, high = (mean, mean) if items > 1 else (float("-inf"), float("inf"))
    p_value = 1.0 if mean == 0 else float(stats.binomtest(items, items).pvalue)
    return PairedTest(mean, low, high, p_value, items, "sign flips")
