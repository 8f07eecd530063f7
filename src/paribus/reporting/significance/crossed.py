"""Would a difference between two rows show again, with other seeds and on other items?

The score of row r at seed s on item i is taken as m_r + (luck of the seed) + (luck of the items) + rest, where what a
seed and what an item do to one row and not to the other are random: crossed random effects. The mean difference of two
rows over S seeds and n items then has the variance

    V = MS_seeds / (S n) + MS_items / (S n) - MS_rest / (S n)

with the mean squares of the two-way table (seeds, items) of paired differences (Searle, Casella and McCulloch, Variance
Components, 1992, chapter 4). Two or three seeds say next to nothing about MS_seeds, so it is pooled: every row of
the table tells how far seeds move one row against the others. A pair whose own seeds differ by more than luck explains
keeps its own. The quantile of the test is Cochran and Cox's, that of the seeds and that of the items weighted by their
shares of V: Satterthwaite's degrees of freedom find too much where one variance has one or two of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paribus.reporting.significance.items import Matrix
from paribus.reporting.significance.quantile import OWN_PAIRS, TWO_SIDED, Quantile, is_wild

LEVEL = 0.05
"""Of a p-value below which a difference is called more than chance."""
OWN_NUMBERS = 0.05
"""`OWN_PAIRS` for the interval of a number alone."""
_ROUNDING = 1e-12
_FEWEST, _MOST, _WILD = 3, 64, 0.001


@dataclass(frozen=True)
class SeedVariance:
    """What seeds do to one row and not to others: the variance of a row's mean over items, and its degrees of freedom.

    A difference of two rows has twice this variance, at each seed.
    """

    variance: float
    freedom: float


@dataclass(frozen=True)
class CrossedTest:
    """The mean of `ours - theirs` over seeds and items, its 95 % confidence interval, and the two-sided p-value."""

    difference: float
    low: float
    high: float
    p_value: float
    seeds: int
    items: int
    error: float
    """Root of V, in the unit of the scores."""
    quantile: Quantile
    """Of what parts V is made, and how surely each is known."""

    @property
    def detectable(self) -> float:
        """The smallest true difference that a test with this V finds with a probability of 80 % at a level of 5 %."""
        return self.detectable_among(1)

    def detectable_among(self, tests: int) -> float:
        """The same where this is one of several tests, of which Holm finds it surely at 5 % by their number."""
        return self.quantile.detectable(LEVEL / tests) * self.error if self.error else 0.0


def pooled_variance(means: Matrix) -> SeedVariance | None:
    """The variance that seeds bring to one row and not to others, from rows' means over items.

    Args:
        means: shape (rows, seeds), NaN where a row lacks a seed.

    Returns:
        The residual mean square of `row + seed`, fitted by least squares, with as many degrees of freedom as there are
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
    found = means[rows, seeds]
    scale = float(np.abs(found).max()) or 1.0
    fitted, _, rank, _ = np.linalg.lstsq(design, found / scale, rcond=None)
    freedom = len(found) - int(rank)
    if freedom < 1:
        return None
    residuals = found / scale - design @ fitted
    return SeedVariance(float(residuals @ residuals) / freedom * scale**2, freedom)


def within_rows(means: Matrix) -> SeedVariance | None:
    """The variance of a row's mean over seeds: all that a seed does, also what it does to every row alike.

    `means` as those of `pooled_variance`; None where no row has two seeds. Every row is taken at its own seeds, each
    degree of freedom with the same weight. What is common to the rows is seen once a seed and not once a row, hence the
    degrees of freedom, by Satterthwaite: with the n_r seeds of row r, P (rows, seeds) where a row has a seed, and the
    share rho of the variance that is common,

        nu = sum(n_r - 1),  K = |diag(sum_r P_r) - P' diag(1 / n_r) P|^2,  freedom = nu / (1 + rho^2 (K / nu - 1)).

    Of a full table that is the usual sum of two mean squares. Where rows share too little to tell rho, it is one.
    """
    found = np.where(np.isfinite(means), means, np.nan)
    several = found[np.isfinite(found).sum(axis=1) > 1]
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


def _sum_of_squares(table: Matrix) -> float:
    """Of what is left of a full table without the means of its rows and of its columns."""
    left = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    return float(np.sum(left**2))


def steady(means: Matrix) -> npt.NDArray[np.bool_]:
    """Which rows, (rows,), are not among those that seeds move far beyond the others.

    `means` as those of `pooled_variance`. A wild row would hide what the others show, and they say nothing of it: it
    is judged by its own seeds. Wild is a row whose part of the residual mean square is more than luck makes of the
    others' in one of a thousand rows; only tables of up to 64 rows are looked through.
    """
    from scipy.special import fdtrc

    found = np.ones(len(means), dtype=bool)
    while _FEWEST <= found.sum() <= _MOST:
        kept = means[found]
        whole = pooled_variance(kept)
        if whole is None or whole.variance <= 0:
            break
        chances = []
        for row in range(len(kept)):
            others = pooled_variance(np.delete(kept, row, axis=0))
            if others is None or whole.freedom <= others.freedom:
                chances.append(1.0)
                continue
            freedom = whole.freedom - others.freedom
            own = max(whole.variance * whole.freedom - others.variance * others.freedom, 0.0) / freedom
            beyond = own / others.variance if others.variance > 0 else np.inf
            chances.append(float(fdtrc(freedom, others.freedom, beyond)))
        worst = int(np.argmin(chances))
        if chances[worst] >= _WILD:
            break
        found[np.flatnonzero(found)[worst]] = False
    return found


def half_width(values: Matrix, pooled: SeedVariance | None) -> float | None:
    """Half of the 95 % interval of the mean of `values`, shape (seeds, items).

    `pooled` is what seeds do within rows, for items of a trained model; without it, and with one seed, the interval is
    over items alone. None where nothing is known of the spread: one number.
    """
    if values.size < 2 and pooled is None:
        return None
    variance, quantile = _variance(values, pooled, OWN_NUMBERS)
    return quantile.at(TWO_SIDED) * float(np.sqrt(variance))


def crossed_tests(pairs: Sequence[tuple[Matrix, Matrix]], pooled: Sequence[SeedVariance | None]) -> list[CrossedTest]:
    """Tests of two rows each on the same seeds and items.

    Args:
        pairs: two arrays of shape (seeds, items) each, row by row the same seeds and column by column the same items;
            two seeds or more.
        pooled: what all rows of the table tell of seeds, for each pair; None judges a pair by itself.

    Raises:
        ValueError: arrays of unequal shape, or with fewer than two seeds.
    """
    return [_crossed_test(ours, theirs, pool) for (ours, theirs), pool in zip(pairs, pooled, strict=True)]


def _crossed_test(ours: Matrix, theirs: Matrix, pooled: SeedVariance | None) -> CrossedTest:
    if ours.shape != theirs.shape or ours.ndim != 2 or len(ours) < 2:
        raise ValueError(
            f"two arrays (seeds, items) of equal shape and two seeds or more, not {ours.shape}, {theirs.shape}"
        )
    differences = ours - theirs
    seeds, items = differences.shape
    mean = float(differences.mean())
    twice = None if pooled is None else SeedVariance(2 * pooled.variance, pooled.freedom)
    variance, quantile = _variance(differences, twice, OWN_PAIRS)
    scale = float(max(np.abs(ours).max(), np.abs(theirs).max()))
    if variance <= (_ROUNDING * scale) ** 2:  # what varies may be of single items at single seeds
        variance = _parts(differences)[2]
    if variance <= (_ROUNDING * scale) ** 2:
        return _without_spread(mean if abs(mean) > _ROUNDING * scale else 0.0, seeds, items)
    error = float(np.sqrt(variance))
    half = quantile.at(TWO_SIDED) * error
    p_value = quantile.p_value(abs(mean) / error)
    return CrossedTest(mean, mean - half, mean + half, p_value, seeds, items, error, quantile)


def _parts(differences: Matrix) -> tuple[float, float, float]:
    """Mean squares of seeds, of items and of the rest, each divided by the number of cells: their parts of V."""
    seeds, items = differences.shape
    by_seed = float(np.var(differences.mean(axis=1), ddof=1)) / seeds if seeds > 1 else 0.0
    by_item = float(np.var(differences.mean(axis=0), ddof=1)) / items if items > 1 else 0.0
    if min(seeds, items) < 2:
        return by_seed, by_item, 0.0
    rest = _sum_of_squares(differences) / ((seeds - 1) * (items - 1)) / (seeds * items)
    return by_seed, by_item, rest


def _variance(values: Matrix, pooled: SeedVariance | None, own_share: float) -> tuple[float, Quantile]:
    """V of the mean of (seeds, items), and the quantile by its parts.

    The seeds' part is `pooled`, the variance of a mean at one seed, unless the values' own is more than luck explains:
    more than that of a share `own_share` of all whose seeds vary alike.
    """
    seeds, items = values.shape
    by_seed, by_item, rest = _parts(values)
    freedom: float = max(seeds - 1, 1)
    own_freedom = None
    if pooled is not None:
        of_all = pooled.variance / seeds
        guarded = seeds > 1 and pooled.freedom - freedom >= 1
        if not guarded or not is_wild(by_seed, of_all, freedom, pooled.freedom, own_share):
            by_seed, freedom, own_freedom = of_all, pooled.freedom, (freedom if guarded else None)
    above = max(by_seed - rest, 0.0)
    variance = by_item + above
    unit = variance or 1.0
    return variance, Quantile(
        above / unit, freedom, max(items - 1, 1), seeds=by_seed / unit, rest=rest / unit, own_freedom=own_freedom
    )


def _without_spread(mean: float, seeds: int, items: int) -> CrossedTest:
    """Where nothing varies the interval is the difference itself, and p that of flipping the signs of seeds."""
    p_value = 1.0 if mean == 0 else 2.0 ** (1 - seeds)
    return CrossedTest(mean, mean, mean, p_value, seeds, items, 0.0, Quantile(0.0, seeds - 1, max(items - 1, 1)))
