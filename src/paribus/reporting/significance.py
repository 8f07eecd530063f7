"""Tests of differences: of two rows over items, of contrasts over seeds and items, and of several in one step.

Two rows answered the same items, so `paired_test` looks at the item-by-item differences, always `scores_a - scores_b`.
Distributions are scipy's and McNemar's test is statsmodels'; what is here chooses among tests, and says what holds
where differences have no spread.

`crossed_test` has seeds and items as crossed random effects: would a contrast of arms show with others again? The score
of an arm at a seed on an item is the arm's mean, an effect of arm and seed, an effect of arm and item, and a residual.
A contrast of arms, such as the difference of two, over S seeds and n items then has the variance

    V = MS_items / (S n) + max(MS_seeds - MS_residual, 0) / (S n)

with the mean squares of its two-way table (seeds, items) (Searle, Casella and McCulloch, Variance Components, 1992,
chapter 4). Two or three seeds say next to nothing about MS_seeds, so it is moderated by what the rest of the table says
(`moderated`). The quantile of the test is Cochran and Cox's, that of the seeds and that of the items weighted by their
shares of V: Satterthwaite's degrees of freedom are anti-conservative where one variance has one or two of them.

`judged_together` adjusts several contrasts in one step, so that p-value, interval and detectable difference agree.
Those of a measure have a joint distribution of Student's t, whose correlation is that of their weights. Its tail turns
a p-value into the chance that any of them reaches it (Hothorn, Bretz and Westfall 2008, Biometrical Journal 50).
Measures are separate questions whose dependence is not known, so Bonferroni's correction is applied across them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paribus.reporting.measures import SEEDS_TO_JUDGE

CONFIDENCE = 0.95
EXACT_UP_TO = 16
"""Items up to which a permutation test counts all sign patterns."""
EXACT_DISCORDANT = 25
"""Items that only one run got right, below which McNemar's test is exact."""
RESAMPLES = 9_999
ROUNDING = 1e-12
_BATCH = 4_000_000
LEVEL = 0.05
"""p-value below which a difference is called more than chance."""
POWER = 0.8
TWO_SIDED = (1 + CONFIDENCE) / 2
_FEWEST_ARMS, _MOST_ARMS, _OUTLIER_P = 3, 64, 0.001
_SMALLEST = 1e-300
_BRACKET = 1e-9
_QUADRATURE_POINTS = 100
_MOST_CONTRASTS = 20
"""Contrasts whose joint distribution is integrated, in some 40 ms a point; of more Bonferroni's bound is taken."""
_BOUND = 1e-4
"""Bonferroni's bound is taken itself below this: an integral has an error of 1e-5, of 20 contrasts 2e-4."""
_SEED = 0

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Test = Literal["auto", "t", "mcnemar", "bootstrap", "permutation"]
Weights = Mapping[int, float]
"""Weight of each arm by its row; they add up to 0."""


@dataclass(frozen=True)
class PairedTest:
    """The mean of `scores_a - scores_b` over items, its 95 % confidence interval, and the two-sided p-value."""

    difference: float
    low: float
    high: float
    p_value: float
    items: int
    test: str = "paired t"
    """Source of the p-value: `paired t`, `McNemar`, `paired bootstrap`, `permutation` or `sign flips`."""


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


@dataclass(frozen=True)
class SeedVariance:
    """An estimated variance between seeds, of a mean over items, and its degrees of freedom.

    That of a contrast is an arm's times the sum of the squared weights.
    """

    variance: float
    freedom: float

    def times(self, factor: float) -> "SeedVariance":
        """Scale the variance; the degrees of freedom are the same."""
        return SeedVariance(self.variance * factor, self.freedom)


@dataclass(frozen=True)
class Quantile:
    """Cochran and Cox's reference distribution: Student's t of seeds and of items, weighted by their shares of V."""

    share: float
    """Share of V that seeds bring: what `seeds` has above `rest`, at least 0."""
    seeds_freedom: float
    items_freedom: float
    seeds: float
    """The mean square of seeds in units of V."""
    rest: float
    """The residual mean square in units of V, which `seeds` contains."""

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
        if above(low - _BRACKET) < 0:
            return _SMALLEST
        return min(1.0, float(np.exp(brentq(above, low - _BRACKET, high + _BRACKET))))

    def detectable(self, level: float) -> float:
        """The difference, in units of the error, that a test at `level` finds with a probability of 80 %.

        Integrated over the sampling distribution of the seeds' mean square, of which that of this table is taken as the
        median, since with few seeds it usually lies below the true value.
        """
        from scipy.optimize import brentq
        from scipy.special import chdtri, ndtr, stdtrit

        quantiles = (np.arange(_QUADRATURE_POINTS) + 0.5) / _QUADRATURE_POINTS
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


@dataclass(frozen=True)
class Estimate:
    """The mean of a contrast over seeds and items with its two-sided p-value, judged by itself at `level`."""

    difference: float
    error: float
    """Standard error of `difference`, in the unit of the scores; 0 where nothing varies, and nothing can be judged."""
    p_value: float
    quantile: Quantile
    """Reference distribution of difference / error."""
    seeds: int
    items: int
    level: float = LEVEL
    """Significance level of this test: below 0.05 for one of several that are judged together."""

    @property
    def sufficient(self) -> bool:
        """True if scores vary, over `SEEDS_TO_JUDGE` seeds or more, or over one where they are of items alone."""
        return self.error > 0 and (self.seeds == 1 or self.seeds >= SEEDS_TO_JUDGE)

    @property
    def half_width(self) -> float:
        """Half of the interval of confidence 1 - `level`, which leaves out 0 where the p-value is below `level`."""
        return self.quantile.at(1 - self.level / 2) * self.error

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.difference - self.half_width

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.difference + self.half_width

    @property
    def detectable(self) -> float:
        """The smallest true difference that is found at `level` with a probability of 80 %."""
        return self.quantile.detectable(self.level) * self.error


def moderated(own: SeedVariance, others: SeedVariance | None) -> SeedVariance:
    """The variance of a contrast by its own seeds and by what seeds do to the rest of the table.

    Empirical Bayes (Smyth 2004, Statistical Applications in Genetics and Molecular Biology 3): the mean of both,
    weighted by degrees of freedom, which add up. The prior has those of `others`, times the chance that equal variances
    differ at least so much: a contrast that seeds move further than the rest is more and more judged by its own seeds.
    """
    from scipy.special import fdtrc

    if others is None or others.freedom <= 0 or (own.freedom > 0 and others.variance <= 0):
        return own
    if own.freedom <= 0:
        return others
    prior = others.freedom * float(fdtrc(own.freedom, others.freedom, own.variance / others.variance))
    freedom = own.freedom + prior
    return SeedVariance((own.variance * own.freedom + others.variance * prior) / freedom, freedom)


def pooled_variance(means: Matrix) -> SeedVariance | None:
    """The variance of arm by seed, what seeds bring to one arm and not to others, from arms' means over items.

    Args:
        means: shape (arms, seeds), NaN where an arm lacks a seed.

    Returns:
        The residual mean square of `arm + seed`, fitted by least squares, with as many degrees of freedom as there are
        numbers beyond what the fit takes; None where it takes them all.
    """
    present = np.isfinite(means)
    if not present.any():
        return None
    if present.all():  # the fit of a full table is its means
        freedom = (means.shape[0] - 1) * (means.shape[1] - 1)
        return SeedVariance(_sum_of_squares(means) / freedom, freedom) if freedom else None
    rows, seeds = np.nonzero(present)
    design = np.concatenate([np.eye(means.shape[0])[rows], np.eye(means.shape[1])[seeds]], axis=1)
    numbers = means[rows, seeds]
    scale = float(np.abs(numbers).max()) or 1.0
    fitted, _, rank, _ = np.linalg.lstsq(design, numbers / scale, rcond=None)
    freedom = len(numbers) - int(rank)
    if freedom < 1:
        return None
    residuals = numbers / scale - design @ fitted
    return SeedVariance(float(residuals @ residuals) / freedom * scale**2, freedom)


def within_rows(means: Matrix) -> SeedVariance | None:
    """The variance between seeds within an arm, with the part that is common to all arms.

    `means` as those of `pooled_variance`; None where no arm has two seeds. Every arm is taken at its own seeds, each
    degree of freedom with the same weight. What is common to the arms is seen once a seed and not once an arm, hence
    the degrees of freedom, by Satterthwaite: with the n_r seeds of arm r, P (arms, seeds) where an arm has a seed, and
    the share rho of the variance that is common,

        nu = sum(n_r - 1),  K = |diag(sum_r P_r) - P' diag(1 / n_r) P|^2,  freedom = nu / (1 + rho^2 (K / nu - 1)).

    Of a full table that is the usual sum of two mean squares. Where arms share too little to tell rho, it is one.
    """
    numbers = np.where(np.isfinite(means), means, np.nan)
    several = numbers[np.isfinite(numbers).sum(axis=1) > 1]
    if not len(several):
        return None
    present = np.isfinite(several)
    counts = present.sum(axis=1, keepdims=True)
    own = float(np.sum(counts - 1))
    variance = float(np.nansum((several - np.nanmean(several, axis=1, keepdims=True)) ** 2)) / own
    if variance <= 0:
        return SeedVariance(0.0, own)
    apart = pooled_variance(several)
    common = 1.0 if apart is None else min(1.0, abs(1 - apart.variance / variance))
    overlap = np.diag(present.sum(axis=0)) - present.T @ (present / counts)
    return SeedVariance(variance, own / (1 + common**2 * (float(np.sum(overlap**2)) / own - 1)))


def steady(means: Matrix) -> NDArray[np.bool_]:
    """Mask, (arms,), of the arms whose variance between seeds may be pooled; others are judged by their own.

    `means` as those of `pooled_variance`. The worst arm is left out, again and again, while an F-test of its part of
    the residual mean square against that of the others has p < 0.001 and 3 to 64 arms are left.
    """
    from scipy.special import fdtrc

    mask = np.ones(len(means), dtype=bool)
    while _FEWEST_ARMS <= mask.sum() <= _MOST_ARMS:
        included = means[mask]
        whole = pooled_variance(included)
        if whole is None or whole.variance <= 0:
            break
        chances = []
        for row in range(len(included)):
            rest = pooled_variance(np.delete(included, row, axis=0))
            if rest is None or whole.freedom <= rest.freedom:
                chances.append(1.0)
                continue
            own = _subtract(whole, rest)
            beyond = own.variance / rest.variance if rest.variance > 0 else np.inf
            chances.append(float(fdtrc(own.freedom, rest.freedom, beyond)))
        worst = int(np.argmin(chances))
        if chances[worst] >= _OUTLIER_P:
            break
        mask[np.flatnonzero(mask)[worst]] = False
    return mask


def half_width(values: Matrix, pooled: SeedVariance | None) -> float | None:
    """Half of the 95 % interval of the mean of `values`, shape (seeds, items).

    `pooled` is what seeds do within arms, for items of a trained model; without it, and with one seed, the interval is
    over items alone. None where nothing is known of the spread: one number.
    """
    if values.size < 2 and pooled is None:
        return None
    own = _own(values)
    rest = None if pooled is None else SeedVariance(pooled.variance, pooled.freedom - own.freedom)
    variance, quantile = _variance(values, moderated(own, rest))
    return quantile.at(TWO_SIDED) * float(np.sqrt(variance))


def crossed_test(contrast: Matrix, scale: float, pooled: SeedVariance | None) -> Estimate:
    """Test that the mean of a contrast of arms is 0.

    Args:
        contrast: shape (seeds, items), the weighted sum of the arms' scores at each; one seed of items alone.
        scale: the largest size of those scores, to which rounding is relative.
        pooled: what the arms of the table tell of the contrast's variance at one seed; None judges it by itself.
    """
    seeds, items = contrast.shape
    mean, own = float(contrast.mean()), _own(contrast)
    variance, quantile = _variance(contrast, moderated(own, None if pooled is None else _subtract(pooled, own)))
    if variance <= (ROUNDING * scale) ** 2:  # what varies may be of single items at single seeds
        variance = _parts(contrast)[2]
    if variance <= (ROUNDING * scale) ** 2:  # nothing varies, and so nothing is known of what others would give
        return Estimate(mean if abs(mean) > ROUNDING * scale else 0.0, 0.0, 1.0, quantile, seeds, items)
    error = float(np.sqrt(variance))
    return Estimate(mean, error, quantile.p_value(abs(mean) / error), quantile, seeds, items)


def _sum_of_squares(table: Matrix) -> float:
    residuals = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    return float(np.sum(residuals**2))


def _subtract(whole: SeedVariance, part: SeedVariance) -> SeedVariance:
    """The variance of `whole`, a mean weighted by degrees of freedom, without `part`."""
    freedom = whole.freedom - part.freedom
    squares = max(whole.variance * whole.freedom - part.variance * part.freedom, 0.0)
    return SeedVariance(squares / freedom if freedom > 0 else 0.0, freedom)


def _parts(values: Matrix) -> tuple[float, float, float]:
    """Mean squares of seeds, of items and of the residual, each divided by the number of cells."""
    seeds, items = values.shape
    by_seed = float(np.var(values.mean(axis=1), ddof=1)) / seeds if seeds > 1 else 0.0
    by_item = float(np.var(values.mean(axis=0), ddof=1)) / items if items > 1 else 0.0
    if min(seeds, items) < 2:
        return by_seed, by_item, 0.0
    rest = _sum_of_squares(values) / ((seeds - 1) * (items - 1)) / (seeds * items)
    return by_seed, by_item, rest


def _own(values: Matrix) -> SeedVariance:
    return SeedVariance(_parts(values)[0] * len(values), len(values) - 1)


def _variance(values: Matrix, at_a_seed: SeedVariance) -> tuple[float, Quantile]:
    """V of the mean of (seeds, items), and the quantile by its parts; `at_a_seed` is of the mean at one seed."""
    seeds, items = values.shape
    _, by_item, rest = _parts(values)
    by_seed = at_a_seed.variance / seeds
    above = max(by_seed - rest, 0.0)
    unit = by_item + above or 1.0
    freedoms = max(at_a_seed.freedom, 1), max(items - 1, 1)
    return by_item + above, Quantile(above / unit, *freedoms, seeds=by_seed / unit, rest=rest / unit)


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
    """Correlation of contrasts of independent arms of equal variance; None for one, for many, where it is singular."""
    arms = sorted({arm for each in weights for arm in each})
    table = np.array([[each.get(arm, 0.0) for arm in arms] for each in weights])
    if not 1 < len(table) <= _MOST_CONTRASTS or np.linalg.matrix_rank(table) < len(table):
        return None
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    correlation: Matrix = table @ table.T
    return correlation
