"""Tests over seeds and items, joint tests and paired tests against slow references and scipy."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from paribus.reporting import paired_test
from paribus.reporting.significance import (
    LEVEL,
    SeedVariance,
    half_width,
    judged_together,
    moderated,
    permutation_test,
    pooled_variance,
    within_rows,
)
from support.simulated_tables import (
    ALL_PAIRS,
    FACTORIAL,
    MANY_TO_ONE,
    Table,
    Tables,
    compared,
    difference_of,
    with_p_value,
)


def slow_mean_squares(differences: Table) -> tuple[float, float, float]:
    """Mean squares of seeds, items and the rest of a two-way table, one sum of squares after the other."""
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
    table = Tables(2, seeds, share, items=9).table(np.random.default_rng(seeds))
    of_seeds, of_items, rest = slow_mean_squares(table[1] - table[0])
    above = max(of_seeds - rest, 0.0)
    variance = (of_items + above) / (seeds * 9)
    test = compared(table)
    assert test.error**2 == pytest.approx(variance)
    assert test.quantile.share == pytest.approx(above / (of_items + above))
    assert test.difference == pytest.approx(table[1].mean() - table[0].mean())
    quantile = test.quantile.share * stats.t.ppf(0.975, seeds - 1) + (1 - test.quantile.share) * stats.t.ppf(0.975, 8)
    half = quantile * variance**0.5
    assert (test.low, test.high) == pytest.approx((test.difference - half, test.difference + half))


def test_the_p_value_is_the_level_at_which_the_interval_ends_at_zero() -> None:
    generator = np.random.default_rng(1)
    for share in (0.0, 0.3, 0.8, 1.0):
        test = compared(Tables(3, 4, share).table(generator, difference=2.0))
        level, of_seeds = 1 - test.p_value / 2, test.quantile.share
        quantile = of_seeds * stats.t.ppf(level, test.quantile.seeds_freedom)
        quantile += (1 - of_seeds) * stats.t.ppf(level, 39)
        assert quantile == pytest.approx(abs(test.difference) / test.error)
        assert (test.p_value < 0.05) == (not test.low <= 0 <= test.high)


def test_without_items_it_is_the_paired_t_test_over_seeds() -> None:
    ours, theirs = np.random.default_rng(2).normal(size=(2, 5, 1))
    test, expected = difference_of(ours, theirs), stats.ttest_rel(ours[:, 0], theirs[:, 0])
    assert test.p_value == pytest.approx(expected.pvalue)
    assert test.low == pytest.approx(expected.confidence_interval(0.95).low)


def test_the_variance_between_seeds_is_pooled_over_all_pairs_of_complete_rows() -> None:
    means = np.random.default_rng(3).normal(size=(5, 4)) + np.arange(4)
    pairs = [np.var(means[a] - means[b], ddof=1) / 2 for a, b in itertools.combinations(range(5), 2)]
    pooled = pooled_variance(means)
    assert pooled == SeedVariance(pytest.approx(np.mean(pairs)), 12)
    one_seed_more = np.vstack([means, [1.0, np.nan, np.nan, np.nan]])
    assert pooled_variance(one_seed_more) == SeedVariance(pytest.approx(pooled.variance), pooled.freedom)
    assert pooled_variance(means[:, :1]) is None
    assert pooled_variance(means[:1]) is None


def test_a_pair_whose_seeds_differ_by_more_than_luck_is_judged_by_its_own() -> None:
    ours, theirs = Tables(2, 4, 0.9).table(np.random.default_rng(5))[::-1]
    own, calm, wild = (
        difference_of(ours, theirs, other) for other in (None, SeedVariance(1e-9, 30), SeedVariance(1e3, 30))
    )
    assert calm == own
    assert wild.quantile.seeds_freedom == pytest.approx(30, abs=1)
    assert wild.error > 10 * own.error


def test_a_variance_moves_from_that_of_all_to_its_own_without_a_jump() -> None:
    others = SeedVariance(1.0, 12)
    steps = [moderated(SeedVariance(own, 2), others) for own in np.geomspace(0.01, 1e4, 2_000)]
    freedoms = np.array([each.freedom for each in steps])
    assert freedoms[0] == pytest.approx(14, abs=0.2) and freedoms[-1] == pytest.approx(2, abs=1e-6)
    assert (np.diff(freedoms) <= 0).all() and (np.diff([each.variance for each in steps]) > 0).all()
    assert np.abs(np.diff(freedoms)).max() < 0.05
    assert moderated(SeedVariance(3.0, 2), None) == SeedVariance(3.0, 2)
    assert moderated(SeedVariance(0.0, 0), others) == others


def test_equal_means_of_all_items_and_seeds_still_have_an_interval() -> None:
    """Each item is right at one seed of three: its mean is that of all others, and so is that of each seed."""
    square = (np.arange(30) % 3 == np.arange(3)[:, None]).astype(float)
    for pooled in (None, SeedVariance(0.01, 4)):
        test = difference_of(square, np.zeros((3, 30)), pooled)
        assert test.low < test.difference < test.high
        assert np.isfinite(test.detectable)


def test_the_interval_of_one_row_counts_what_all_rows_have_in_common_once_a_seed() -> None:
    common = np.random.default_rng(6).normal(size=4)
    alike = within_rows(np.tile(common, (6, 1)))
    assert alike == SeedVariance(pytest.approx(np.var(common, ddof=1)), pytest.approx(3))
    apart = within_rows(np.random.default_rng(7).normal(size=(400, 4)))
    assert apart is not None
    assert apart.variance == pytest.approx(1, abs=0.1) and apart.freedom > 300


def test_the_spread_of_a_full_table_is_the_sum_of_two_mean_squares() -> None:
    means = np.random.default_rng(11).normal(size=(5, 4)) + np.random.default_rng(12).normal(size=4)
    residual = means - means.mean(axis=0) - means.mean(axis=1, keepdims=True) + means.mean()
    of_seeds, of_rest = 5 * np.var(means.mean(axis=0), ddof=1), 4 * np.sum(residual**2) / 12
    freedom = (of_seeds + of_rest) ** 2 / (of_seeds**2 / 3 + of_rest**2 / 12)
    assert within_rows(means) == SeedVariance(pytest.approx((of_seeds + of_rest) / 5), pytest.approx(freedom))


def test_a_row_without_its_last_seed_takes_nothing_from_the_spread_of_the_others() -> None:
    nan = np.nan
    spread = within_rows(np.array([[2.0, 2.2, 2.1], [1.9, 2.15, nan]]))
    assert spread is not None
    assert spread.variance == pytest.approx((0.02 + 0.03125) / 3)
    assert 1.8 < spread.freedom < 3
    for means, expected in (
        ([[2.0, 2.2, 2.1, nan], [1.9, 2.15, np.inf, -np.inf]], spread),
        ([[1.0, 2.0, nan, nan], [nan, nan, 1.0, 3.0]], SeedVariance(1.25, 2.0)),
        ([[1.0, 2.0, nan], [nan, 1.0, 3.0]], SeedVariance(1.25, pytest.approx(1.6))),
        ([[1.0, 2.0, nan, nan]], SeedVariance(0.5, 1.0)),
        ([[1.0]], None),
    ):
        assert within_rows(np.array(means)) == expected, means


def test_the_interval_of_one_seed_adds_the_spread_of_other_rows_over_seeds() -> None:
    values = np.random.default_rng(8).normal(size=(1, 50))
    alone, beside_others = half_width(values, None), half_width(values, SeedVariance(4.0, 9))
    assert alone == pytest.approx(stats.t.ppf(0.975, 49) * stats.sem(values[0]))
    assert beside_others is not None
    assert beside_others > stats.norm.ppf(0.975) * 2
    assert half_width(np.ones((1, 1)), None) is None


# Contrasts that are judged together


@pytest.mark.parametrize("weights", [FACTORIAL, MANY_TO_ONE, ALL_PAIRS], ids=["factorial", "many to one", "all pairs"])
@pytest.mark.parametrize("measures", [1, 2])
def test_adjusted_p_value_interval_and_level_agree(weights: Sequence[dict[int, float]], measures: int) -> None:
    for p_value in np.geomspace(1e-4, 0.5, 40):
        for test, adjusted in judged_together([with_p_value(float(p_value))] * 3, weights, measures):
            assert (adjusted < LEVEL) == (p_value < test.level) == (not test.low <= 0 <= test.high)
            assert measures * p_value <= adjusted <= min(1.0, 3 * measures * p_value) + 1e-9
            assert test.quantile.detectable(test.level) > test.quantile.at(1 - test.level / 2)


def test_single_contrasts_and_those_that_follow_from_each_other_are_adjusted_by_bonferroni() -> None:
    assert [test.level for test, _ in judged_together([with_p_value(0.01)] * 3, ALL_PAIRS, 1)] == [LEVEL / 3] * 3
    assert judged_together([with_p_value(0.01)], FACTORIAL[:1], 2)[0][1] == pytest.approx(0.02)
    assert judged_together([], [], 1) == []


# Paired tests of one run against another

Scores = NDArray[np.float64]


def scores(items: int, seed: int) -> tuple[Scores, Scores]:
    generator = np.random.default_rng(seed)
    return generator.normal(0.4, 1, items), generator.normal(0.5, 1, items)


@pytest.mark.parametrize("items", [2, 3, 10, 500])
def test_the_paired_test_agrees_with_scipy(items: int) -> None:
    ours, theirs = scores(items, items)
    test, expected = paired_test(ours, theirs), stats.ttest_rel(ours, theirs)
    assert test.difference == pytest.approx(np.mean(ours) - np.mean(theirs))
    assert test.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    assert (test.low, test.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert test.items == items


def test_few_or_constant_differences_have_exact_p_values_and_intervals() -> None:
    """The difference is the first run minus the second."""
    for ours, theirs, expected in (
        ([1, 0, 1], [1, 0, 1], (0, 0, 0, 1)),
        ([1, 1, 1, 1], [0, 0, 0, 0], (1, 1, 1, 2 / 2**4)),
        ([0, 0, 0, 0], [1, 1, 1, 1], (-1, -1, -1, 2 / 2**4)),
        ([1], [0], (1, -np.inf, np.inf, 1)),
    ):
        test = paired_test(ours, theirs)
        assert (test.difference, test.low, test.high, test.p_value) == expected, (ours, theirs)
    rounding_noise = paired_test([0.1 + 0.2, 0.3], [0.3, 0.3])
    assert rounding_noise.p_value == 1


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        ([], [], "at least one item"),
        ([1, 2], [1], "equal length"),
        ([[1]], [[1]], "one dimension"),
        ([1, np.nan], [1, 2], "finite"),
    ],
)
def test_scores_that_cannot_be_paired_are_refused(ours: list, theirs: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        paired_test(ours, theirs)


def test_right_or_wrong_is_tested_by_mcnemar_exactly_for_few_items_that_differ() -> None:
    ours, theirs = [1] * 9 + [0] * 2 + [1] * 20 + [0] * 9, [0] * 9 + [1] * 2 + [1] * 20 + [0] * 9
    test = paired_test(ours, theirs)
    assert (test.test, test.difference) == ("McNemar", pytest.approx(7 / 40))
    assert test.p_value == pytest.approx(stats.binomtest(2, 11).pvalue)
    many = paired_test(ours * 10, theirs * 10)
    assert many.p_value == pytest.approx(stats.chi2.sf((90 - 20) ** 2 / 110, 1))


def test_the_test_is_the_one_that_is_asked_for() -> None:
    ours, theirs = np.array([1.0, 1, 0, 1, 1, 1, 0, 1]), np.array([0.0, 1, 0, 1, 0, 0, 0, 0])
    tests = {test: paired_test(ours, theirs, test=test) for test in ("t", "mcnemar", "bootstrap", "permutation")}
    assert {name: test.test for name, test in tests.items()} == {
        "t": "paired t", "mcnemar": "McNemar", "bootstrap": "paired bootstrap", "permutation": "permutation",
    }  # fmt: skip
    assert tests["t"].p_value == pytest.approx(stats.ttest_rel(ours, theirs).pvalue)
    assert tests["permutation"].p_value == pytest.approx(2 / 2**4)
    with pytest.raises(ValueError, match="McNemar's test needs scores that are 0 or 1"):
        paired_test(ours / 2, theirs, test="mcnemar")


def test_the_permutation_test_counts_all_sign_patterns_of_few_items_and_draws_those_of_many() -> None:
    ours, theirs = scores(9, 3)
    sums = [abs(np.dot(signs, ours - theirs)) for signs in itertools.product((1, -1), repeat=9)]
    expected = np.mean([total >= abs((ours - theirs).sum()) * (1 - 1e-9) for total in sums])
    assert permutation_test(ours, theirs) == pytest.approx(expected)
    ours, theirs = scores(200, 4)
    assert permutation_test(ours, theirs, seed=1) == permutation_test(ours, theirs, seed=1)
    assert permutation_test(ours, theirs) == pytest.approx(stats.ttest_rel(ours, theirs).pvalue, abs=0.03)


def test_the_own_seeds_of_a_row_count_once_in_its_interval() -> None:
    values = np.random.default_rng(8).normal(size=(3, 50)) + np.array([[0.0], [1.0], [3.0]])
    own = SeedVariance(np.var(values.mean(axis=1), ddof=1), 2)
    assert half_width(values, own) == pytest.approx(half_width(values, None))


def test_tests_that_are_judged_together_take_the_largest_freedom() -> None:
    levels = [
        [test.level for test, _ in judged_together([with_p_value(0.01, freedom) for freedom in each], MANY_TO_ONE, 1)]
        for each in ((4.0, 30.0, 30.0), (30.0,) * 3)
    ]
    assert levels[0] == levels[1]
