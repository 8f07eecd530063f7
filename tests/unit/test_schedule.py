"""The learning rate by step."""

import pytest

from paribus.config.groups.training import TrainingConfig
from paribus.errors import ConfigurationError
from paribus.training.schedule import check_warmup, learning_rate

TRAINING = TrainingConfig(learning_rate=1.0, warmup_steps=4, min_learning_rate_ratio=0.1, global_batch=8)


def test_the_rate_rises_linearly_then_falls_to_the_floor() -> None:
    rates = [learning_rate(step, 15, TRAINING) for step in range(15)]
    assert rates[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert rates[4:] == sorted(rates[4:], reverse=True)
    assert rates[9] == pytest.approx(0.55)
    assert rates[14] == pytest.approx(0.1)


def test_without_warmup_the_first_step_has_the_peak() -> None:
    training = TrainingConfig(learning_rate=1.0, warmup_steps=0, min_learning_rate_ratio=0.0)
    assert learning_rate(0, 2, training) == 1.0
    assert learning_rate(1, 2, training) == 0.0
    assert learning_rate(0, 1, training) == 1.0


def test_a_budget_that_ends_within_the_warmup_is_refused() -> None:
    check_warmup(TRAINING, 5)
    with pytest.raises(ConfigurationError, match=r"training\.warmup_steps is 4 but the budget is only 4 steps"):
        check_warmup(TRAINING, 4)
