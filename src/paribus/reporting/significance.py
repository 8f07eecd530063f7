"""Is a difference between two runs larger than the luck of the items they were scored on?

The two runs answered the same items, so the test is paired: everything is computed from the item-by-item differences,
always `scores_a - scores_b`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE = 0.95
EXACT_UP_TO = 16
_ROUNDING = 1e-12
_CHUNK = 4_000_000

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class PairedTest:
    """The mean of `scores_a - scores_b` over items, its 95 % confidence interval, and the two-sided p-value."""

    difference: float
    low: float
    high: float
    p_value: float
    items: int


def paired_test(scores_a: ArrayLike, scores_b: ArrayLike) -> PairedTest:
    """Paired t-test of two runs' scores on the same items.

    Args:
        scores_a: shape (n,), the score of each item in run a.
        scores_b: shape (n,), the scores of the same items, in the same order, in run b.

    Returns:
        `difference` is mean(a) - mean(b), above zero where a scores higher; `low` and `high` bound its 95 % interval
        (Student's t with n - 1 degrees of freedom); `p_value` is two-sided, for "no difference".

        Where all n differences are equal there is no spread for a t-test. The interval is then the difference itself
        (unbounded for n = 1), and the p-value is exact: 1 for a difference of zero, otherwise that of the sign-flip
        permutation test, 2 ** (1 - n).

    Raises:
        ValueError: the arrays are empty, not one-dimensional, of unequal length, or not finite.
    """
    from scipy import stats

    differences = _differences(scores_a, scores_b)
    items = len(differences)
    mean = float(np.mean(differences))
    if _constant(differences, scores_a, scores_b):
        return _without_spread(differences, _largest(scores_a, scores_b))
    error = float(np.std(differences, ddof=1)) / items**0.5
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, items - 1)) * error
    p_value = float(2 * stats.t.sf(abs(mean) / error, items - 1))
    return PairedTest(mean, mean - half, mean + half, p_value, items)


def permutation_test(scores_a: ArrayLike, scores_b: ArrayLike, *, resamples: int = 9_999, seed: int = 0) -> float:
    """Two-sided p-value of the paired sign-flip permutation test on the mean difference.

    It assumes no distribution, so it is the check of `paired_test` on few items. Up to 16 differing items all sign
    patterns are counted and the p-value is exact; above, `resamples` patterns are drawn with `seed` and the p-value is
    (hits + 1) / (resamples + 1), which is never zero.

    Raises:
        ValueError: as `paired_test`.
    """
    differences = _differences(scores_a, scores_b)
    differences = differences[np.abs(differences) > _ROUNDING * _largest(scores_a, scores_b)]
    observed = abs(float(differences.sum())) * (1 - 1e-9)
    if len(differences) <= EXACT_UP_TO:
        patterns = np.arange(2 ** len(differences))[:, None] >> np.arange(len(differences)) & 1
        return float(np.mean(np.abs((1.0 - 2.0 * patterns) @ differences) >= observed))
    hits, generator = 0, np.random.default_rng(seed)
    step = max(1, _CHUNK // len(differences))
    for start in range(0, resamples, step):
        patterns = generator.integers(0, 2, size=(min(step, resamples - start), len(differences)), dtype=np.int8)
        hits += int(np.sum(np.abs((1.0 - 2.0 * patterns) @ differences) >= observed))
    return (hits + 1) / (resamples + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's (1979) adjusted p-values, in the order given: valid for any dependence between the tests.

    The i-th smallest of m p-values is multiplied by m - i + 1, made monotone, and capped at 1.
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, p_values[index] * (len(p_values) - rank)))
        adjusted[index] = largest
    return adjusted


def standard_error(scores: ArrayLike) -> float | None:
    """Standard error of the mean of `scores`, shape (n,); None for fewer than two."""
    values = np.asarray(scores, dtype=np.float64)
    return float(np.std(values, ddof=1)) / len(values) ** 0.5 if len(values) > 1 else None


def _differences(scores_a: ArrayLike, scores_b: ArrayLike) -> Vector:
    a, b = np.asarray(scores_a, dtype=np.float64), np.asarray(scores_b, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(
            f"a paired test needs two arrays of one dimension and equal length, not {a.shape} and {b.shape}"
        )
    if not len(a):
        raise ValueError("a paired test needs at least one item")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("a paired test needs finite scores; leave out or repair the items that are NaN or infinite")
    return a - b


def _largest(scores_a: ArrayLike, scores_b: ArrayLike) -> float:
    return float(max(np.abs(np.asarray(scores_a)).max(), np.abs(np.asarray(scores_b)).max()))


def _constant(differences: Vector, scores_a: ArrayLike, scores_b: ArrayLike) -> bool:
    return bool(np.ptp(differences) <= _ROUNDING * _largest(scores_a, scores_b))


def _without_spread(differences: Vector, scale: float) -> PairedTest:
    items, mean = len(differences), float(np.mean(differences))
    if abs(mean) <= _ROUNDING * scale:
        mean = 0.0
    low, high = (mean, mean) if items > 1 else (float("-inf"), float("inf"))
    return PairedTest(mean, low, high, 1.0 if mean == 0 else 2.0 ** (1 - items), items)
