"""Contrasts that are judged in one step: p-values, intervals and detectable differences agree, and hold together."""

from collections.abc import Sequence

import numpy as np
import pytest

from paribus.reporting.judgement import ArmScores
from paribus.reporting.significance import LEVEL, Estimate, Quantile, judged_together

FACTORIAL = [
    {0: -0.5, 1: -0.5, 2: 0.5, 3: 0.5},
    {0: -0.5, 1: 0.5, 2: -0.5, 3: 0.5},
    {0: 1.0, 1: -1.0, 2: -1.0, 3: 1.0},
]
MANY_TO_ONE = [{0: -1.0, arm: 1.0} for arm in (1, 2, 3)]
ALL_PAIRS = [{0: -1.0, 1: 1.0}, {0: -1.0, 2: 1.0}, {1: -1.0, 2: 1.0}]


def with_p(p_value: float, freedom: float = 6.0) -> Estimate:
    quantile = Quantile(1.0, freedom, freedom, seeds=1.0, rest=0.0)
    return Estimate(-quantile.at(p_value / 2), 1.0, p_value, quantile, 4, 40)


@pytest.mark.parametrize("weights", [FACTORIAL, MANY_TO_ONE, ALL_PAIRS], ids=["factorial", "many to one", "all pairs"])
@pytest.mark.parametrize("measures", [1, 2])
def test_adjusted_p_value_interval_and_level_agree(weights: Sequence[dict[int, float]], measures: int) -> None:
    for p_value in np.geomspace(1e-4, 0.5, 40):
        for test, adjusted in judged_together([with_p(float(p_value))] * 3, weights, measures):
            decided = adjusted < LEVEL
            assert decided == (p_value < test.level) == (not test.low <= 0 <= test.high)
            assert measures * p_value <= adjusted <= min(1.0, 3 * measures * p_value) + 1e-9
            assert test.quantile.detectable(test.level) > test.quantile.at(1 - test.level / 2)


@pytest.mark.parametrize("weights", [FACTORIAL, MANY_TO_ONE], ids=["factorial", "many to one"])
@pytest.mark.parametrize("freedom", [4.0, 30.0])
def test_the_level_is_that_of_the_largest_by_simulation(weights: Sequence[dict[int, float]], freedom: float) -> None:
    generator = np.random.default_rng(0)
    arms = generator.normal(size=(200_000, 4))
    error = np.sqrt(generator.chisquare(freedom, size=200_000) / freedom)
    table = np.array([[each.get(arm, 0.0) for arm in range(4)] for each in weights])
    statistics = np.abs(arms @ (table / np.linalg.norm(table, axis=1, keepdims=True)).T).max(axis=1) / error
    (test, _), *_ = judged_together([with_p(0.5, freedom)] * 3, weights, 1)
    assert np.mean(statistics > test.quantile.at(1 - test.level / 2)) == pytest.approx(0.05, abs=0.002)


def test_contrasts_that_follow_from_each_other_and_single_ones_are_bonferronis() -> None:
    assert [test.level for test, _ in judged_together([with_p(0.01)] * 3, ALL_PAIRS, 1)] == [LEVEL / 3] * 3
    assert judged_together([with_p(0.01)], FACTORIAL[:1], 2)[0][1] == pytest.approx(0.02)
    assert judged_together([], [], 1) == []


@pytest.mark.parametrize("weights", [FACTORIAL, MANY_TO_ONE], ids=["factorial", "many to one"])
def test_of_tables_where_nothing_differs_one_in_twenty_has_any_effect(weights: Sequence[dict[int, float]]) -> None:
    generator, draws, seeds, items = np.random.default_rng(1), 500, 3, 30
    wrong = 0
    for _ in range(draws):
        own = generator.normal(size=(4, seeds, 1)) + generator.normal(size=(4, 1, items))
        table = own + generator.normal(size=(1, seeds, 1)) + generator.normal(size=(4, seeds, items))
        scores = ArmScores([{seed: row[seed][None] for seed in range(seeds)} for row in table])
        tests = [scores.test(each) for each in weights]
        judged = judged_together([test for test in tests if test], weights, 1)
        wrong += any(adjusted < LEVEL for _, adjusted in judged)
    assert wrong / draws < 0.075
