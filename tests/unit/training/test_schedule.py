"""The learning rate by step."""

import dataclasses
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.config.groups.training import TrainingConfig
from paribus.training.step import learning_rate, warmup_steps

TRAINING = TrainingConfig(learning_rate=1.0, warmup_share=0.25, min_learning_rate_ratio=0.1, global_batch=8)


def test_the_rate_rises_linearly_then_falls_to_the_floor() -> None:
    rates = [learning_rate(step, 15, TRAINING) for step in range(15)]
    assert rates[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert rates[4:] == sorted(rates[4:], reverse=True)
    assert rates[9] == pytest.approx(0.55)
    assert rates[14] == pytest.approx(0.1)


def test_without_warmup_the_first_step_has_the_peak() -> None:
    training = TrainingConfig(learning_rate=1.0, warmup_share=0.0, min_learning_rate_ratio=0.0)
    assert learning_rate(0, 2, training) == 1.0
    assert learning_rate(1, 2, training) == 0.0
    assert learning_rate(0, 1, training) == 1.0


@given(st.integers(0, 99), st.integers(1, 3000))
def test_the_warmup_is_the_nearest_step_to_its_share_and_leaves_one(percent: int, steps: int) -> None:
    share, warmup = Fraction(percent, 100), warmup_steps(TrainingConfig(warmup_share=percent / 100), steps)
    nearest = min(abs(step - share * steps) for step in range(steps))
    assert 0 <= warmup < steps
    assert abs(warmup - share * steps) <= nearest + Fraction(1, 10**9)


def test_arms_of_equal_text_have_the_same_rate_at_the_same_share_of_it() -> None:
    """With twice the steps: of 100 warm-up steps, half of one arm's 199 steps were above half of the other's peak."""
    training = TrainingConfig(learning_rate=1.0, warmup_share=0.1, min_learning_rate_ratio=0.1)
    for percent in range(1, 100):
        rates = [learning_rate(math.floor(percent / 100 * steps), steps, training) for steps in (1990, 3910)]
        assert rates[0] == pytest.approx(rates[1], abs=0.006)


INVERSE = TrainingConfig(learning_rate=1e-3, schedule="inverse_sqrt", warmup_steps=4000, warmup_learning_rate=1e-7)


def fairseq(updates: int, peak: float, initial: float, warmup: int) -> float:
    """As fairseq's inverse_square_root_schedule reckons the rate after so many updates."""
    if updates < warmup:
        return initial + updates * ((peak - initial) / warmup)
    return peak * warmup**0.5 * updates**-0.5


@given(st.integers(0, 10**6), st.integers(1, 10**4))
def test_the_inverse_square_root_is_fairseq_s_whatever_the_budget(step: int, warmup: int) -> None:
    training = dataclasses.replace(INVERSE, warmup_steps=warmup)
    rate = learning_rate(step, step + 1, training)
    assert rate == pytest.approx(fairseq(step, 1e-3, 1e-7, warmup), rel=1e-12)
    assert rate == learning_rate(step, 10 * step + 7, training) <= 1e-3


def test_the_inverse_square_root_peaks_after_the_warm_up_and_halves_in_four_times_the_steps() -> None:
    rates = {step: learning_rate(step, 20_000, INVERSE) for step in (0, 2000, 3999, 4000, 4001, 16_000)}
    assert rates[0] == 1e-7
    assert rates[2000] == pytest.approx((1e-3 + 1e-7) / 2)
    assert rates[3999] < rates[4000] == 1e-3 > rates[4001]
    assert rates[16_000] == pytest.approx(5e-4)
    shared = dataclasses.replace(INVERSE, warmup_steps=None, warmup_share=0.25)
    assert [learning_rate(step, 40, shared) for step in (10, 40)] == pytest.approx([1e-3, 5e-4])


def test_without_warm_up_the_inverse_square_root_begins_at_the_peak() -> None:
    training = dataclasses.replace(INVERSE, warmup_steps=0)
    assert [learning_rate(step, 9, training) for step in (0, 1, 4)] == [1e-3, 1e-3, 5e-4]


def test_a_warm_up_in_steps_has_as_many_of_a_cosine_too() -> None:
    training = dataclasses.replace(TRAINING, warmup_steps=4)
    rates = [learning_rate(step, 100, training) for step in range(100)]
    assert rates[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert rates[99] == pytest.approx(0.1)
