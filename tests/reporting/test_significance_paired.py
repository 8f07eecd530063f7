import itertools

import numpy as np
import pytest
from scipy import stats

from paribus.reporting import paired_test
from paribus.reporting.significance import permutation_test


def scores(items: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.normal(0.4, 1, items), generator.normal(0.5, 1, items)


@pytest.mark.parametrize("items", [2, 3, 10, 500])
def test_the_paired_test_agrees_with_scipy(items: int) -> None:
    a, b = scores(items, items)
    expected = stats.ttest_rel(a, b)
    interval = expected.confidence_interval(0.95)
    found = paired_test(a, b)
    assert found.difference == pytest.approx(np.mean(a) - np.mean(b))
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.items == items


def test_the_difference_is_the_first_run_minus_the_second() -> None:
    assert paired_test([1, 1, 1, 0], [0, 1, 0, 0]).difference == 0.5
    assert paired_test([0, 1, 0, 0], [1, 1, 1, 0]).difference == -0.5


def test_equal_scores_differ_by_nothing_with_certainty() -> None:
    found = paired_test([1, 0, 1], [1, 0, 1])
    assert (found.difference, found.low, found.high, found.p_value) == (0, 0, 0, 1)


def test_rounding_noise_is_no_difference() -> None:
    assert paired_test([0.1 + 0.2, 0.3], [0.3, 0.3]).p_value == 1


def test_a_constant_difference_has_the_exact_p_value_of_flipped_signs() -> None:
    found = paired_test([1, 1, 1, 1], [0, 0, 0, 0])
    assert (found.difference, found.low, found.high, found.p_value) == (1, 1, 1, 2 / 2**4)


def test_one_item_proves_nothing() -> None:
    found = paired_test([1], [0])
    assert (found.difference, found.p_value) == (1, 1)
    assert (found.low, found.high) == (-np.inf, np.inf)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([], [], "at least one item"),
        ([1, 2], [1], "equal length"),
        ([[1]], [[1]], "one dimension"),
        ([1, np.nan], [1, 2], "finite"),
    ],
)
def test_scores_that_cannot_be_paired_are_refused(a: list, b: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        paired_test(a, b)


def test_right_or_wrong_is_tested_by_mcnemar_exactly_for_few_items_that_differ() -> None:
    a, b = [1] * 9 + [0] * 2 + [1] * 20 + [0] * 9, [0] * 9 + [1] * 2 + [1] * 20 + [0] * 9
    found = paired_test(a, b)
    assert (found.test, found.difference) == ("McNemar", pytest.approx(7 / 40))
    assert found.p_value == pytest.approx(stats.binomtest(2, 11).pvalue)
    many = paired_test(a * 10, b * 10)
    assert many.p_value == pytest.approx(stats.chi2.sf((90 - 20) ** 2 / 110, 1))


def test_the_test_is_the_one_that_is_asked_for() -> None:
    a, b = np.array([1.0, 1, 0, 1, 1, 1, 0, 1]), np.array([0.0, 1, 0, 1, 0, 0, 0, 0])
    found = {test: paired_test(a, b, test=test) for test in ("t", "mcnemar", "bootstrap", "permutation")}
    assert {test: result.test for test, result in found.items()} == {
        "t": "paired t", "mcnemar": "McNemar", "bootstrap": "paired bootstrap", "permutation": "permutation",
    }  # fmt: skip
    assert found["t"].p_value == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert found["permutation"].p_value == pytest.approx(2 / 2**4)
    with pytest.raises(ValueError, match="McNemar's test needs scores that are 0 or 1"):
        paired_test(a / 2, b, test="mcnemar")


def test_the_permutation_test_counts_all_sign_patterns_of_few_items() -> None:
    a, b = scores(9, 3)
    differences = a - b
    sums = [abs(np.dot(signs, differences)) for signs in itertools.product((1, -1), repeat=9)]
    expected = np.mean([total >= abs(differences.sum()) * (1 - 1e-9) for total in sums])
    assert permutation_test(a, b) == pytest.approx(expected)


def test_the_permutation_test_draws_patterns_of_many_items_reproducibly() -> None:
    a, b = scores(200, 4)
    assert permutation_test(a, b, seed=1) == permutation_test(a, b, seed=1)
    assert permutation_test(a, b) == pytest.approx(stats.ttest_rel(a, b).pvalue, abs=0.03)
