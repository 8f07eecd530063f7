"""Budgets in tokens and in text."""

import numpy as np
import pytest

from paribus.config.groups.training import EqualTextBudget, EqualTokensBudget
from paribus.errors import ConfigurationError
from paribus.ordering.contexts import PackedStream
from paribus.training.batches import Batches, context_text_bytes
from paribus.training.budget import resolve_budget, steps_of_text

EOD = 7
LENGTHS = np.array([1, 2, 3, 4, 5, 6, 7, 0])


def batches(global_batch: int, seed: int = 0) -> Batches:
    random = np.random.default_rng(1)
    offsets = np.concatenate([[0], np.cumsum(random.integers(1, 9, 30))])
    ids = random.integers(0, EOD, offsets[-1])
    return Batches(PackedStream(ids, offsets, np.arange(30), EOD, 4), global_batch, seed)


def text_read(drawn: Batches, steps: int) -> int:
    return sum(int(LENGTHS[drawn.contexts(step)[:, 1:]].sum()) for step in range(steps))


@pytest.mark.parametrize(("tokens", "steps"), [(1, 1), (12, 1), (13, 2), (480, 40)])
def test_tokens_are_rounded_up_to_whole_steps(tokens: int, steps: int) -> None:
    drawn = batches(3)
    budget = resolve_budget(EqualTokensBudget(tokens=tokens), drawn, context_text_bytes(drawn.stream, LENGTHS))
    assert (budget.steps, budget.tokens) == (steps, steps * 12)
    assert budget.text_bytes == text_read(drawn, steps)
    assert budget.epochs == pytest.approx(steps * 3 / drawn.stream.count)


@pytest.mark.parametrize("global_batch", [1, 3, 50])
@pytest.mark.parametrize("seed", [0, 4])
def test_text_is_covered_by_the_fewest_steps(global_batch: int, seed: int) -> None:
    drawn = batches(global_batch, seed)
    lengths = context_text_bytes(drawn.stream, LENGTHS)
    epoch = int(lengths.sum())
    for text in (1, 7, epoch // 2, epoch - 1, epoch, epoch + 1, 3 * epoch, 3 * epoch + 40):
        budget = resolve_budget(EqualTextBudget(text=text), drawn, lengths)
        assert budget.text_bytes == text_read(drawn, budget.steps) >= text
        assert text_read(drawn, budget.steps - 1) < text
        assert budget.tokens == budget.steps * global_batch * 4


def test_a_corpus_without_text_cannot_meet_a_text_budget() -> None:
    drawn = batches(3)
    with pytest.raises(ConfigurationError, match=r"budget\.text"):
        steps_of_text(10, drawn, np.zeros(drawn.stream.count, dtype=np.int64))
