"""Of 10,000 simulated comparisons: intervals cover the truth 19 times in 20, and tests of nothing find 1 in 20."""

import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from paribus.reporting.significance import Test, paired_test

DRAWS, WITHIN = 10_000, 0.015
Draws = NDArray[np.float64]


def scores(name: str, draws: int) -> tuple[Draws, Draws, float]:
    """(draws, items) of two runs, and their true difference."""
    generator = np.random.default_rng(7)
    if name == "five seeds":
        base = generator.normal(0.6, 0.02, (draws, 5))
        return base + 0.01 + 0.005 * generator.normal(size=base.shape), base, 0.01
    if name == "bits per document":
        base = generator.gamma(4, 0.5, (draws, 120))
        return base - 0.1 + 0.4 * generator.standard_t(5, base.shape), base, -0.1
    difficulty = generator.random((draws, 300))
    ours, theirs = (0.5 * difficulty + 0.5 * generator.random(difficulty.shape) for _ in range(2))
    if name == "right or wrong":
        return (ours < 0.6).astype(float), (theirs < 0.5).astype(float), 0.68 - 0.5
    return ((ours < 0.4).astype(float) + (ours < 0.6)) / 2, (theirs < 0.5).astype(float), 0.0


@pytest.mark.parametrize("name", ["five seeds", "bits per document", "right or wrong", "mean of shots"])
def test_a_95_percent_interval_covers_the_true_difference(name: str) -> None:
    ours, theirs, truth = scores(name, DRAWS)
    found = [paired_test(*pair, test="t") for pair in zip(ours, theirs, strict=True)]
    covered = np.mean([test.low <= truth <= test.high for test in found])
    sys.stdout.write(f"\ncoverage, {name}: {100 * covered:.2f} %\n")
    assert covered == pytest.approx(0.95, abs=WITHIN)


@pytest.mark.parametrize(
    ("name", "test"), [("right or wrong", "auto"), ("five seeds", "t"), ("bits per document", "t")]
)
def test_a_test_of_no_difference_is_positive_at_the_nominal_rate(name: str, test: Test) -> None:
    ours, theirs, truth = scores(name, DRAWS)
    if test == "auto":
        swapped = np.random.default_rng(8).random(ours.shape) < 0.5
        ours, theirs = np.where(swapped, ours, theirs), np.where(swapped, theirs, ours)
    else:
        ours = ours - truth
    found = [paired_test(*pair, test=test) for pair in zip(ours, theirs, strict=True)]
    positive = np.mean([result.p_value < 0.05 for result in found])
    sys.stdout.write(f"\nfalse positives, {name}, {found[0].test}: {100 * positive:.2f} %\n")
    assert positive == pytest.approx(0.05, abs=WITHIN)


def test_the_bootstrap_agrees_with_the_t_test_on_many_items() -> None:
    ours, theirs, _ = scores("mean of shots", 3)
    for pair in zip(ours, theirs, strict=True):
        by_t, by_bootstrap = paired_test(*pair, test="t"), paired_test(*pair, test="bootstrap")
        assert (by_bootstrap.low, by_bootstrap.high) == pytest.approx((by_t.low, by_t.high), abs=0.01)
        assert by_bootstrap.p_value == pytest.approx(by_t.p_value, abs=0.03)
