"""Checkpoints stand at the same shares of every budget."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.config.groups.training import TrainingConfig, checkpoint_steps, saved_steps, too_few_checkpoints


def walked(checkpoints: int, steps: int, last: int) -> list[int]:
    """The slow reference: step by step, has a share ended that had not before?"""
    ended, found = 0, []
    for step in range(1, steps + 1):
        shares = [share for share in range(1, checkpoints + 1) if Fraction(share, checkpoints) <= Fraction(step, steps)]
        if any(checkpoints - last < share for share in shares[ended:]):
            found.append(step)
        ended = len(shares)
    return found


@given(st.integers(1, 30), st.integers(1, 60), st.integers(1, 30))
def test_steps_are_those_at_which_a_share_of_the_budget_has_passed(checkpoints: int, steps: int, last: int) -> None:
    assert list(checkpoint_steps(checkpoints, steps, last)) == walked(checkpoints, steps, last)


@given(st.integers(1, 30), st.integers(1, 1000), st.integers(1, 1000))
def test_arms_of_different_steps_agree_in_shares_to_a_step(checkpoints: int, first: int, second: int) -> None:
    if min(first, second) < checkpoints:
        return
    pairs = zip(
        checkpoint_steps(checkpoints, first, checkpoints),
        checkpoint_steps(checkpoints, second, checkpoints),
        strict=True,
    )
    assert all(abs(Fraction(a, first) - Fraction(b, second)) < Fraction(1, min(first, second)) for a, b in pairs)


def test_two_arms_of_equal_text_are_scored_at_equal_shares() -> None:
    """Of 199 and of 196 steps every 98 would be 196 and 199, the last 1.5 %, against 98 and 196, the last half."""
    long, short = (checkpoint_steps(2, steps, 2) for steps in (199, 196))
    assert (long, short) == ((100, 199), (98, 196))
    assert [round(step / 199, 2) for step in long] == [0.5, 1.0] == [round(step / 196, 2) for step in short]


def test_the_checkpoints_of_the_last_shares_are_kept() -> None:
    training = TrainingConfig(checkpoints=10, keep_checkpoints=3)
    assert saved_steps(training, 1001) == (801, 901, 1001)
    assert saved_steps(training, 1) == (1,)


@pytest.mark.parametrize(
    ("steps", "wanted", "message"),
    [
        (20, 5, None),
        (1, 1, None),
        (19, 2, "the last 2 shares of training.checkpoints=20 end at 1 of the budget's 19 steps"),
        (3, 5, "take a larger budget, or lower it to 3, and training.checkpoints to 3 or less"),
        (10, 5, "take a larger budget, or lower training.checkpoints to 10 or less"),
    ],
)
def test_shares_that_end_at_one_step_are_told(steps: int, wanted: int, message: str | None) -> None:
    problem = too_few_checkpoints(TrainingConfig(checkpoints=20), steps, wanted)
    assert problem is message is None or (problem is not None and message is not None and message in problem)
