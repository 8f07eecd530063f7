"""Budgets in tokens and in text."""

import numpy as np
import pytest

from packing_support import FixedOrder
from paribus.config.groups.budget import BudgetConfig, EqualTextBudget, EqualTokensBudget
from paribus.config.groups.packing import BestFitPacking, ConcatenatePacking, OneDocumentPacking, PackingConfig
from paribus.errors import ConfigurationError
from paribus.ordering.packing.pack import pack
from paribus.training.batches import Batches, context_targets, context_text_bytes
from paribus.training.budget import Budget, resolve_budget, resolve_steps

EOD = 7
LENGTHS = np.array([1, 2, 3, 4, 5, 6, 7, 0])
PACKINGS = [ConcatenatePacking(), BestFitPacking(window=4), OneDocumentPacking(), OneDocumentPacking(shuffle=False)]


def batches(global_batch: int, seed: int = 0, packing: PackingConfig = PACKINGS[0]) -> Batches:
    random = np.random.default_rng(1)
    offsets = np.concatenate([[0], np.cumsum(random.integers(1, 9, 30))])
    ids = random.integers(0, EOD, offsets[-1])
    contexts = pack(packing, ids, offsets, FixedOrder(np.arange(30)), EOD, 4)
    return Batches(contexts, global_batch, seed, packing.shuffle)


def resolved(budget: BudgetConfig, drawn: Batches) -> Budget:
    return resolve_budget(budget, drawn, context_targets(drawn.contexts), context_text_bytes(drawn.contexts, LENGTHS))


def read(drawn: Batches, steps: int) -> tuple[list[int], list[int]]:
    """Targets and their bytes read before each step, and after the last, by reading them."""
    tokens, text = [0], [0]
    for step in range(steps):
        targets = drawn.rows(step)[1]
        tokens.append(tokens[-1] + int((targets >= 0).sum()))
        text.append(text[-1] + int(LENGTHS[targets[targets >= 0]].sum()))
    return tokens, text


@pytest.mark.parametrize(("tokens", "steps"), [(1, 1), (12, 1), (13, 2), (480, 40)])
def test_tokens_of_full_contexts_are_rounded_up_to_whole_steps(tokens: int, steps: int) -> None:
    drawn = batches(3)
    budget = resolved(EqualTokensBudget(tokens=tokens), drawn)
    assert (budget.steps, budget.tokens, budget.positions) == (steps, steps * 12, steps * 12)
    assert budget.text_bytes == read(drawn, steps)[1][-1]
    assert budget.epochs == pytest.approx(steps * 3 / drawn.contexts.count)


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
@pytest.mark.parametrize("global_batch", [1, 3, 50])
@pytest.mark.parametrize("seed", [0, 4])
def test_tokens_are_predicted_in_the_fewest_steps(global_batch: int, seed: int, packing: PackingConfig) -> None:
    drawn = batches(global_batch, seed, packing)
    epoch = int(context_targets(drawn.contexts).sum())
    for tokens in (1, 7, epoch // 2, epoch - 1, epoch, epoch + 1, 3 * epoch, 3 * epoch + 40):
        budget = resolved(EqualTokensBudget(tokens=tokens), drawn)
        tokens_read, text_read = read(drawn, budget.steps)
        assert budget.tokens == tokens_read[-1] >= tokens > tokens_read[-2]
        assert budget.text_bytes == text_read[-1]
        assert budget.positions == budget.steps * global_batch * 4
        assert budget.epochs == pytest.approx(budget.steps * global_batch / drawn.contexts.count)


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
@pytest.mark.parametrize("global_batch", [1, 3, 50])
@pytest.mark.parametrize("seed", [0, 4])
def test_text_is_covered_by_the_fewest_steps(global_batch: int, seed: int, packing: PackingConfig) -> None:
    drawn = batches(global_batch, seed, packing)
    epoch = int(context_text_bytes(drawn.contexts, LENGTHS).sum())
    for text in (1, 7, epoch // 2, epoch - 1, epoch, epoch + 1, 3 * epoch, 3 * epoch + 40):
        budget = resolved(EqualTextBudget(text=text), drawn)
        tokens_read, text_read = read(drawn, budget.steps)
        assert budget.text_bytes == text_read[-1] >= text > text_read[-2]
        assert budget.tokens == tokens_read[-1]


def test_a_corpus_without_text_cannot_meet_a_text_budget() -> None:
    drawn = batches(3)
    nothing = np.zeros(drawn.contexts.count, dtype=np.int64)
    with pytest.raises(ConfigurationError, match=r"budget\.text"):
        resolve_budget(EqualTextBudget(text=10), drawn, context_targets(drawn.contexts), nothing)


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_equal_text_counts_only_what_the_removal_of_duplicates_leaves(packing: PackingConfig) -> None:
    # One byte a token; the removed documents are most of the text.
    lengths = [12, 900, 7, 1100, 15, 9]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ids, kept = np.zeros(offsets[-1], dtype=np.int64), np.array([4, 0, 5, 2])
    byte_lengths = np.array([1] + [0] * EOD)
    contexts = pack(packing, ids, offsets, FixedOrder(kept), EOD, 4)
    drawn = Batches(contexts, 1, 0, packing.shuffle)
    text = context_text_bytes(contexts, byte_lengths)
    left = sum(lengths[document] for document in kept)
    assert left - len(kept) - 4 <= text.sum() <= left
    budget = resolve_budget(EqualTextBudget(text=10 * left), drawn, context_targets(contexts), text)
    assert 10 * left <= budget.text_bytes <= 10 * left + 4
    assert budget.epochs >= 10


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_steps_alone_are_those_of_the_whole_budget(packing: PackingConfig) -> None:
    drawn = batches(3, packing=packing)
    for amount in (1, 50, 400):
        for budget in (EqualTokensBudget(tokens=amount), EqualTextBudget(text=amount)):
            assert resolve_steps(budget, drawn, LENGTHS) == resolved(budget, drawn).steps


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_steps_of_a_budget_in_tokens_read_no_token(packing: PackingConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = batches(3, packing=packing)
    steps = resolved(EqualTokensBudget(tokens=100), drawn).steps
    monkeypatch.setattr(drawn.contexts.documents, "read", None)
    assert resolve_steps(EqualTokensBudget(tokens=100), drawn, LENGTHS) == steps
    with pytest.raises(TypeError):
        resolve_steps(EqualTextBudget(text=100), drawn, LENGTHS)
