"""The learning rate by step."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.config.groups.training import TrainingConfig
from paribus.training.step.schedule import learning_rate, warmup_steps

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
