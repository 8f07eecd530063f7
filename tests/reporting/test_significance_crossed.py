"""The test over seeds and items against slow references, and how often it is wrong on simulated tables."""

import itertools
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from paribus.reporting.significance import (
    Estimate,
    Quantile,
    SeedVariance,
    crossed_test,
    half_width,
    moderated,
    pooled_variance,
    within_rows,
)

Table = NDArray[np.float64]
DRAWS = 1_500


@dataclass(frozen=True)
class World:
    """Tables of arms whose difference has the variance 1, a `share` of it from seeds."""

    rows: int
    seeds: int
    share: float
    items: int = 40
    rest: float = 0.3
    """Of the items' part, what is new at each seed."""

    def table(self, generator: np.random.Generator, difference: float = 0.0) -> Table:
        """(rows, seeds, items); the second row is higher by `difference`."""
        part = (1 - self.share) * self.items / 2
        shape = (self.rows, self.seeds, self.items)
        found = generator.normal(0, 2, (1, self.seeds, 1)) + generator.normal(0, 3, (1, 1, self.items))
        found = found + np.sqrt(self.share * self.seeds / 2) * generator.normal(size=(self.rows, self.seeds, 1))
        found = found + np.sqrt(part * (1 - self.rest)) * generator.normal(size=(self.rows, 1, self.items))
        found = found + np.sqrt(part * self.rest * self.seeds) * generator.normal(size=shape)
        found[1] += difference
        return found


def of_pair(ours: Table, theirs: Table, pooled: SeedVariance | None = None) -> Estimate:
    scale = float(max(np.abs(ours).max(), np.abs(theirs).max()))
    return crossed_test(ours - theirs, scale, pooled and pooled.times(2))


def compared(table: Table) -> Estimate:
    return of_pair(table[1], table[0], pooled_variance(table.mean(axis=2)))


def slow_parts(differences: Table) -> tuple[float, float, float]:
    """Mean squares of the two-way table, one sum of squares after the other."""
    seeds, items = differences.shape
    grand = sum(differences[s, i] for s in range(seeds) for i in range(items)) / (seeds * items)
    by_seed = [sum(differences[s, i] for i in range(items)) / items for s in range(seeds)]
    by_item = [sum(differences[s, i] for s in range(seeds)) / seeds for i in range(items)]
    of_seeds = items * sum((mean - grand) ** 2 for mean in by_seed) / (seeds - 1)
    of_items = seeds * sum((mean - grand) ** 2 for mean in by_item) / (items - 1)
    rest = sum(
        (differences[s, i] - by_seed[s] - by_item[i] + grand) ** 2 for s in range(seeds) for i in range(items)
    ) / ((seeds - 1) * (items - 1))
    return of_seeds, of_items, rest


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("seeds", [2, 3, 6])
def test_the_variance_of_a_pair_is_that_of_its_mean_squares(seeds: int, share: float) -> None:
    table = World(2, seeds, share, items=9).table(np.random.default_rng(seeds))
    of_seeds, of_items, rest = slow_parts(table[1] - table[0])
    above = max(of_seeds - rest, 0.0)
    variance = (of_items + above) / (seeds * 9)
    found = compared(table)
    assert found.error**2 == pytest.approx(variance)
    assert found.quantile.share == pytest.approx(above / (of_items + above))
    assert found.difference == pytest.approx(table[1].mean() - table[0].mean())
    quantile = found.quantile.share * stats.t.ppf(0.975, seeds - 1) + (1 - found.quantile.share) * stats.t.ppf(0.975, 8)
    assert (found.low, found.high) == pytest.approx(
        (found.difference - quantile * variance**0.5, found.difference + quantile * variance**0.5)
    )


def test_the_p_value_is_the_level_at_which_the_interval_ends_at_zero() -> None:
    generator = np.random.default_rng(1)
    for share in (0.0, 0.3, 0.8, 1.0):
        found = compared(World(3, 4, share).table(generator, difference=2.0))
        statistic = abs(found.difference) / found.error
        level = 1 - found.p_value / 2
        quantile = found.quantile.share * stats.t.ppf(level, found.quantile.seeds_freedom) + (
            1 - found.quantile.share
        ) * stats.t.ppf(level, 39)
        assert quantile == pytest.approx(statistic)
        assert (found.p_value < 0.05) == (not found.low <= 0 <= found.high)


def test_without_items_it_is_the_paired_t_test_over_seeds() -> None:
    ours, theirs = np.random.default_rng(2).normal(size=(2, 5, 1))
    found = of_pair(ours, theirs)
    expected = stats.ttest_rel(ours[:, 0], theirs[:, 0])
    assert found.p_value == pytest.approx(expected.pvalue)
    assert found.low == pytest.approx(expected.confidence_interval(0.95).low)


def test_what_seeds_do_to_single_rows_is_pooled_over_the_rows() -> None:
    means = np.random.default_rng(3).normal(size=(5, 4)) + np.arange(4)
    pairs = [np.var(means[a] - means[b], ddof=1) / 2 for a, b in itertools.combinations(range(5), 2)]
    pooled = pooled_variance(means)
    assert pooled is not None
    assert (pooled.variance, pooled.freedom) == (pytest.approx(np.mean(pairs)), 12)


def test_rows_that_lack_seeds_count_as_far_as_they_go() -> None:
    means = np.random.default_rng(4).normal(size=(4, 3))
    means[3, 1:] = np.nan
    whole, with_one = pooled_variance(means[:3]), pooled_variance(means)
    assert whole is not None and with_one is not None
    assert (with_one.variance, with_one.freedom) == (pytest.approx(whole.variance), whole.freedom)
    assert pooled_variance(means[:, :1]) is None
    assert pooled_variance(means[:1]) is None


def test_a_pair_whose_seeds_differ_by_more_than_luck_is_judged_by_its_own() -> None:
    table = World(2, 4, 0.9).table(np.random.default_rng(5))
    own, calm, wild = (
        of_pair(table[1], table[0], other) for other in (None, *(SeedVariance(v, 30) for v in (1e-9, 1e3)))
    )
    assert calm == own
    assert wild.quantile.seeds_freedom == pytest.approx(30, abs=1)
    assert wild.error > 10 * own.error


def test_a_variance_moves_from_that_of_all_to_its_own_without_a_jump() -> None:
    others = SeedVariance(1.0, 12)
    found = [moderated(SeedVariance(own, 2), others) for own in np.geomspace(0.01, 1e4, 2_000)]
    freedoms = np.array([each.freedom for each in found])
    variances = np.array([each.variance for each in found])
    assert freedoms[0] == pytest.approx(14, abs=0.2) and freedoms[-1] == pytest.approx(2, abs=1e-6)
    assert (np.diff(freedoms) <= 0).all() and (np.diff(variances) > 0).all()
    assert np.abs(np.diff(freedoms)).max() < 0.05
    assert moderated(SeedVariance(3.0, 2), None) == SeedVariance(3.0, 2)
    assert moderated(SeedVariance(0.0, 0), others) == others


def test_where_nothing_varies_nothing_is_known_of_other_seeds() -> None:
    ones, zeros = np.ones((3, 7)), np.zeros((3, 7))
    same, apart = of_pair(ones, ones), of_pair(ones, zeros)
    assert (same.difference, same.p_value, same.low, same.high) == (0, 1, 0, 0)
    assert (apart.difference, apart.p_value, apart.low, apart.high) == (1, 1, 1, 1)
    assert not same.sufficient and not apart.sufficient


def test_the_interval_of_one_row_counts_what_all_rows_have_in_common_once_a_seed() -> None:
    common = np.random.default_rng(6).normal(size=4)
    alike = np.tile(common, (6, 1))
    found = within_rows(alike)
    assert found is not None
    assert (found.variance, found.freedom) == (pytest.approx(np.var(common, ddof=1)), pytest.approx(3))
    apart = np.random.default_rng(7).normal(size=(400, 4))
    found = within_rows(apart)
    assert found is not None
    assert found.variance == pytest.approx(1, abs=0.1)
    assert found.freedom > 300
    single = np.full((1, 4), np.nan)
    single[0, :2] = (1.0, 2.0)
    assert within_rows(single) == SeedVariance(0.5, 1.0)
    assert within_rows(single[:, :1]) is None


def test_the_spread_of_a_full_table_is_the_sum_of_two_mean_squares() -> None:
    means = np.random.default_rng(11).normal(size=(5, 4)) + np.random.default_rng(12).normal(size=4)
    left = means - means.mean(axis=0) - means.mean(axis=1, keepdims=True) + means.mean()
    of_seeds, of_rest = 5 * np.var(means.mean(axis=0), ddof=1), 4 * np.sum(left**2) / 12
    found = within_rows(means)
    assert found is not None
    assert found.variance == pytest.approx((of_seeds + of_rest) / 5)
    assert found.freedom == pytest.approx((of_seeds + of_rest) ** 2 / (of_seeds**2 / 3 + of_rest**2 / 12))


def test_a_row_without_its_last_seed_takes_nothing_from_the_spread_of_the_others() -> None:
    means = np.array([[2.0, 2.2, 2.1], [1.9, 2.15, np.nan]])
    found = within_rows(means)
    assert found is not None
    assert found.variance == pytest.approx((0.02 + 0.03125) / 3)
    assert 1.8 < found.freedom < 3
    beyond = np.array([[2.0, 2.2, 2.1, np.nan], [1.9, 2.15, np.inf, -np.inf]])
    assert within_rows(beyond) == found
    apart = np.array([[1.0, 2.0, np.nan, np.nan], [np.nan, np.nan, 1.0, 3.0]])
    assert within_rows(apart) == SeedVariance(1.25, 2.0)
    one_common = np.array([[1.0, 2.0, np.nan], [np.nan, 1.0, 3.0]])
    assert within_rows(one_common) == SeedVariance(1.25, pytest.approx(1.6))


@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
def test_one_in_twenty_numbers_is_beyond_its_half_width_where_runs_are_missing(share: float) -> None:
    generator = np.random.default_rng(13)
    missed = []
    for _ in range(DRAWS):
        means = np.sqrt(share) * generator.normal(size=5) + np.sqrt(1 - share) * generator.normal(size=(4, 5))
        means[2:, 4] = np.nan
        half = half_width(means[0][:, None], within_rows(means))
        assert half is not None
        missed.append(abs(means[0].mean()) > half)
    assert 0.035 < np.mean(missed) < 0.065


def test_one_seed_has_the_interval_over_its_items_and_what_other_rows_tell_of_seeds() -> None:
    values = np.random.default_rng(8).normal(size=(1, 50))
    alone, told = half_width(values, None), half_width(values, SeedVariance(4.0, 9))
    assert alone == pytest.approx(stats.t.ppf(0.975, 49) * stats.sem(values[0]))
    assert told is not None
    assert told > stats.norm.ppf(0.975) * 2
    assert half_width(np.ones((1, 1)), None) is None


@pytest.mark.parametrize(
    ("world", "bounds"),
    [
        (World(2, 3, 0.5), (0.03, 0.075)),
        (World(4, 3, 0.25), (0.03, 0.065)),
        (World(4, 3, 0.95), (0.015, 0.05)),
        (World(8, 5, 0.75), (0.02, 0.055)),
        (World(4, 10, 0.0), (0.03, 0.065)),
    ],
    ids=lambda each: f"{each.rows} rows, {each.seeds} seeds, {each.share}" if isinstance(each, World) else None,
)
def test_of_tables_without_a_difference_one_in_twenty_has_one(world: World, bounds: tuple[float, float]) -> None:
    """The bounds are those of the whole calibration (docs/report.md) and three standard errors of so few draws."""
    generator = np.random.default_rng(9)
    positive = np.mean([compared(world.table(generator)).p_value < 0.05 for _ in range(DRAWS)])
    sys.stdout.write(f"\nfalse positives, {world}: {100 * positive:.2f} %\n")
    assert bounds[0] < positive < bounds[1]


@pytest.mark.parametrize(
    "world", [World(2, 3, 0.0), World(2, 3, 0.75), World(2, 10, 0.5), World(8, 3, 0.0), World(8, 10, 0.75)], ids=str
)
def test_a_difference_of_the_detectable_size_is_found_four_times_in_five(world: World) -> None:
    """Of the size that half of all tables show at most."""
    generator = np.random.default_rng(10)
    shown = np.median([compared(world.table(generator)).detectable for _ in range(DRAWS)])
    found = np.mean([compared(world.table(generator, float(shown))).p_value < 0.05 for _ in range(DRAWS)])
    sys.stdout.write(f"\npower at the detectable difference, {world}: {100 * found:.1f} %\n")
    assert found == pytest.approx(0.8, abs=0.025)


@pytest.mark.parametrize("share", [1e-16, 1e-3, 0.05, 0.9])
def test_the_p_value_falls_as_the_difference_grows(share: float) -> None:
    quantile = Quantile(share, 2, 2_000, seeds=share, rest=0.0)
    p_values = [quantile.p_value(statistic) for statistic in (1.0, 5.0, 15.0, 22.0, 25.0, 40.0, 100.0)]
    assert p_values == sorted(p_values, reverse=True)
    assert p_values[0] > 0.05
    assert 0 < p_values[-1] <= p_values[-2] < 1e-3


def test_what_differs_in_no_mean_of_an_item_has_an_interval() -> None:
    """Each item is right at one seed of three: its mean is that of all others, and so is that of each seed."""
    square = (np.arange(30) % 3 == np.arange(3)[:, None]).astype(float)
    for pooled in (None, SeedVariance(0.01, 4)):
        found = of_pair(square, np.zeros((3, 30)), pooled)
        assert found.low < found.difference < found.high
        assert np.isfinite(found.detectable)
