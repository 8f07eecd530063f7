"""Budgets in tokens, in text, in FLOPs and in steps."""

import dataclasses

import numpy as np
import pytest

from paribus.config.groups.ordering import BestFitPacking, ConcatenatePacking, OneDocumentPacking, PackingConfig
from paribus.config.groups.training import (
    BudgetConfig,
    EqualFlopsBudget,
    EqualStepsBudget,
    EqualTextBudget,
    EqualTokensBudget,
)
from paribus.errors import ConfigurationError
from paribus.ordering.contexts import pack
from paribus.ordering.ordered_text import OrderedText
from paribus.tokenization import Tokenizer
from paribus.training import data
from paribus.training.data import Batches, Budget, context_targets, context_text_bytes, resolve_budget, resolve_steps
from support.packings import FixedOrder, measured, traversal_of

EOS = 7
STEP_FLOPS = 1_000_003
LENGTHS = np.array([1, 2, 3, 4, 5, 6, 7, 0])
PACKINGS = [ConcatenatePacking(), BestFitPacking(window=4), OneDocumentPacking(), OneDocumentPacking(shuffle="none")]


def batches(global_batch: int, seed: int = 0, packing: PackingConfig = PACKINGS[0]) -> Batches:
    random = np.random.default_rng(1)
    offsets = np.concatenate([[0], np.cumsum(random.integers(1, 9, 30))])
    ids = random.integers(0, EOS, offsets[-1])
    contexts = pack(packing, ids, offsets, FixedOrder(np.arange(30)), EOS, 4)
    return Batches(contexts, global_batch, traversal_of(packing, contexts, LENGTHS, seed))


def resolved(budget: BudgetConfig, drawn: Batches) -> Budget:
    targets, text_bytes = context_targets(drawn.contexts), context_text_bytes(drawn.contexts, LENGTHS)
    return resolve_budget(budget, drawn, targets, text_bytes, STEP_FLOPS)


def steps_of(budget: BudgetConfig, drawn: Batches) -> int:
    targets, text_bytes = context_targets(drawn.contexts), context_text_bytes(drawn.contexts, LENGTHS)
    return resolve_steps(budget, drawn, targets, text_bytes, STEP_FLOPS)


def budgets(amount: int) -> list[BudgetConfig]:
    return [
        EqualTokensBudget(tokens=amount),
        EqualTextBudget(text=amount),
        EqualFlopsBudget(flops=amount),
        EqualStepsBudget(steps=amount),
    ]


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


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_equal_text_counts_only_what_the_removal_of_duplicates_leaves(packing: PackingConfig) -> None:
    # One byte a token; the removed documents are most of the text.
    lengths = [12, 900, 7, 1100, 15, 9]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ids, kept = np.zeros(offsets[-1], dtype=np.int64), np.array([4, 0, 5, 2])
    byte_lengths = np.array([1] + [0] * EOS)
    contexts = pack(packing, ids, offsets, FixedOrder(kept), EOS, 4)
    drawn = Batches(contexts, 1, traversal_of(packing, contexts, byte_lengths, 0))
    text = context_text_bytes(contexts, byte_lengths)
    left = sum(lengths[document] for document in kept)
    assert left - len(kept) - 4 <= text.sum() <= left
    budget = resolve_budget(EqualTextBudget(text=10 * left), drawn, context_targets(contexts), text, STEP_FLOPS)
    assert 10 * left <= budget.text_bytes <= 10 * left + 4
    # Contexts that predict nothing but an end of document have no text, and the last of them need not be read.
    assert budget.epochs >= 10 - float(np.mean(text == 0))


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_steps_alone_are_those_of_the_whole_budget(packing: PackingConfig) -> None:
    drawn = batches(3, packing=packing)
    for amount in (1, 50, 400):
        for budget in budgets(amount):
            assert steps_of(budget, drawn) == resolved(budget, drawn).steps


@pytest.mark.parametrize("at_once", [1, 4, 7])
def test_a_pass_is_searched_a_part_at_a_time(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = batches(1, packing=PACKINGS[-1])
    whole = [resolved(budget, drawn) for amount in range(1, 300, 13) for budget in budgets(amount)]
    monkeypatch.setattr(data, "CONTEXTS_AT_ONCE", at_once)
    assert [resolved(budget, drawn) for amount in range(1, 300, 13) for budget in budgets(amount)] == whole
    assert len({budget.steps for budget in whole}) > 2 * at_once


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
@pytest.mark.parametrize("global_batch", [1, 3, 50])
def test_flops_and_steps_are_met_in_the_fewest_steps_and_all_else_is_what_those_read(
    global_batch: int, packing: PackingConfig
) -> None:
    drawn = batches(global_batch, 4, packing)
    for steps in (1, 2, 9, 60):
        of_steps = resolved(EqualStepsBudget(steps=steps), drawn)
        tokens_read, text_read = read(drawn, steps)
        assert (of_steps.steps, of_steps.flops) == (steps, steps * STEP_FLOPS)
        assert (of_steps.tokens, of_steps.text_bytes) == (tokens_read[-1], text_read[-1])
        assert of_steps.epochs == pytest.approx(steps * global_batch / drawn.contexts.count)
        for flops in (steps * STEP_FLOPS, (steps - 1) * STEP_FLOPS + 1):
            assert resolved(EqualFlopsBudget(flops=flops), drawn) == of_steps
        assert resolved(EqualFlopsBudget(flops=steps * STEP_FLOPS + 1), drawn).steps == steps + 1


def test_flops_beyond_the_integers_of_a_float_are_counted_exactly() -> None:
    steps = 10**14 + 1
    budget = EqualFlopsBudget(flops=steps * STEP_FLOPS)
    drawn = batches(3)
    assert steps_of(budget, drawn) == steps
    assert steps_of(EqualFlopsBudget(flops=budget.flops + 1), drawn) == steps + 1


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
@pytest.mark.parametrize("max_epochs", [0.5, 1.0, 2.5])
def test_the_largest_budget_within_max_epochs_is_named_and_one_more_is_refused(
    max_epochs: float, packing: PackingConfig
) -> None:
    drawn = batches(3, packing=packing)
    most = int(max_epochs * drawn.contexts.count) // 3
    allowed = resolved(EqualStepsBudget(steps=most, max_epochs=max_epochs), drawn)
    assert allowed.epochs <= max_epochs < resolved(EqualStepsBudget(steps=most + 1), drawn).epochs
    amounts = (allowed.tokens, allowed.text_bytes, allowed.flops, allowed.steps)
    for kind, (field, amount) in enumerate(zip(("tokens", "text", "flops", "steps"), amounts, strict=True)):
        accepted, refused = (
            dataclasses.replace(budgets(more)[kind], max_epochs=max_epochs) for more in (amount, amount + 1)
        )
        assert resolved(accepted, drawn) == allowed
        with pytest.raises(ConfigurationError, match=rf"budget\.{field} of at most {amount:,}, or"):
            resolved(refused, drawn)


def test_a_tokenizer_that_loses_text_covers_all_of_it_all_the_same() -> None:
    texts = ["a b  c " * 9, "no spaces", "", "  x   y  "]
    kept, lost = (
        Tokenizer.train(texts, algorithm="bpe", vocab_size=520, pretokenizer=pretokenizer, special_tokens=("<|end|>",))
        for pretokenizer in ("whitespace", "stripped")
    )
    source = np.array([len(text) for text in texts], dtype=np.int64)
    found = {}
    for tokenizer in (kept, lost):
        ids = [tokenizer.encode(text) for text in texts]
        offsets = np.concatenate([[0], np.cumsum([len(each) for each in ids])])
        contexts = pack(
            ConcatenatePacking(), np.concatenate(ids), offsets, FixedOrder(np.arange(4)), tokenizer.eos_id, 8
        )
        text = OrderedText(contexts.documents, source, tokenizer.token_byte_lengths())
        found[tokenizer.settings.pretokenizer] = (
            measured(contexts, text, lossy=tokenizer.settings.lossy).text_bytes,
            context_text_bytes(contexts, tokenizer.token_byte_lengths()),
        )
    assert found["whitespace"][0].tolist() == found["whitespace"][1].tolist()
    by_share, by_tokens = found["stripped"]
    assert by_tokens.sum() < 0.7 * source.sum()
    assert 0.8 * source.sum() < by_share.sum() <= source.sum()
