"""Batches as a pure function of the step, and budgets in tokens, in text, in FLOPs and in steps."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from paribus.config.groups.ordering import (
    BestFitPacking,
    ConcatenatePacking,
    OneDocumentPacking,
    PackingConfig,
    Shuffle,
)
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
from paribus.training.data import Batches, Budget, context_targets, context_text_bytes, resolve_budget, resolve_steps
from support.packings import FixedOrder, measured, traversal_of

EOS = 7
STEP_FLOPS = 1_000_003
LENGTHS = np.array([1, 2, 3, 4, 5, 6, 7, 0])
PACKINGS = [ConcatenatePacking(), BestFitPacking(window=4), OneDocumentPacking(), OneDocumentPacking(shuffle="none")]
each_packing = pytest.mark.parametrize("packing", PACKINGS, ids=str)


def batches(
    global_batch: int, seed: int = 0, packing: PackingConfig | None = None, sizes: Sequence[int] | None = None
) -> Batches:
    """Batches of 30 documents in an order that leaves six of them out, as the removal of duplicates does."""
    random, packing = np.random.default_rng(1), packing or ConcatenatePacking(stretch_bytes=16)
    offsets = np.concatenate([[0], np.cumsum(random.integers(0, 9, 30) if sizes is None else sizes)])
    order = FixedOrder(random.permutation(30)[:24])
    contexts = pack(packing, random.integers(0, EOS, offsets[-1]), offsets, order, EOS, 4)
    return Batches(contexts, global_batch, traversal_of(packing, contexts, LENGTHS, seed))


def test_every_epoch_reads_every_context_once_in_another_sequence() -> None:
    drawn = batches(4)
    count = drawn.contexts.count
    epochs = np.concatenate([drawn.indices(step) for step in range(count)]).reshape(4, count)
    assert all(sorted(epoch) == list(range(count)) for epoch in epochs.tolist())
    assert len({tuple(epoch) for epoch in epochs.tolist()}) == 4
    unshuffled = batches(4, packing=ConcatenatePacking(shuffle="none"))
    read = np.concatenate([unshuffled.indices(step) for step in range(20)])
    assert read.tolist() == [number % unshuffled.contexts.count for number in range(80)]


def test_batch_is_a_function_of_seed_and_step_alone() -> None:
    walked = batches(4, 1)
    rows = [walked.rows(step) for step in range(40)]
    for start, stop in ((0, 0), (0, 150), (63, 65), (100, 129)):
        steps = list(walked.each(start, stop))
        assert [step for step, _ in steps] == list(range(start, stop))
        assert all(np.array_equal(indices, walked.indices(step)) for step, indices in steps)
    again = batches(4, 1)
    assert np.array_equal(again.rows(39), rows[39])
    assert np.array_equal(again.rows(7), rows[7])
    assert not np.array_equal(walked.indices(0), batches(4, 2).indices(0))


def test_micro_batches_and_larger_batches_read_the_same_rows_in_the_same_sequence() -> None:
    drawn = batches(7, 2)
    for micro_batch in (1, 2, 3, 7):
        parts = [drawn.rows(5, start, start + micro_batch) for start in range(0, 7, micro_batch)]
        assert np.array_equal(np.concatenate(parts, axis=1), drawn.rows(5))
    small, large = (batches(size, 3) for size in (2, 8))
    assert np.array_equal(np.concatenate([small.indices(step) for step in range(4, 8)]), large.indices(1))


@pytest.mark.parametrize("shuffle", ["text", "contexts", "none"])
def test_reads_of_a_context_are_counted_without_looking_at_others(shuffle: Shuffle) -> None:
    for global_batch in (1, 4, 60):
        drawn = batches(global_batch, 5, ConcatenatePacking(shuffle=shuffle, stretch_bytes=16))
        every = np.arange(drawn.contexts.count)
        for steps in (0, 1, 7, 40):
            read = [context for step in range(steps) for context in drawn.indices(step).tolist()]
            assert drawn.times_read(every, steps).tolist() == np.bincount(read, minlength=len(every)).tolist()


@each_packing
def test_targets_and_text_bytes_are_those_of_each_context(packing: PackingConfig) -> None:
    contexts = batches(1, packing=packing).contexts
    rows = [row[row >= 0] for row in contexts.rows(np.arange(contexts.count))[1]]
    assert context_targets(contexts).tolist() == [len(row) for row in rows]
    assert context_text_bytes(contexts, LENGTHS).tolist() == [LENGTHS[row].sum() for row in rows]


# Budgets: the fewest steps that reach the amount, against reading batch by batch.


def resolved(budget: BudgetConfig, drawn: Batches) -> Budget:
    given = drawn, context_targets(drawn.contexts), context_text_bytes(drawn.contexts, LENGTHS), STEP_FLOPS
    whole = resolve_budget(budget, *given)
    assert resolve_steps(budget, *given) == whole.steps
    return whole


def budgets(amount: int) -> list[BudgetConfig]:
    return [
        EqualTokensBudget(tokens=amount),
        EqualTextBudget(text=amount),
        EqualFlopsBudget(flops=amount),
        EqualStepsBudget(steps=amount),
    ]


def read_before(drawn: Batches, steps: int) -> tuple[list[int], list[int]]:
    """Targets and their bytes read before each step, and after the last, by reading them."""
    tokens, text = [0], [0]
    for step in range(steps):
        targets = drawn.rows(step)[1]
        tokens.append(tokens[-1] + int((targets >= 0).sum()))
        text.append(text[-1] + int(LENGTHS[targets[targets >= 0]].sum()))
    return tokens, text


@each_packing
@pytest.mark.parametrize("global_batch", [1, 3, 50])
@pytest.mark.parametrize("seed", [0, 4])
def test_every_budget_is_met_in_the_fewest_steps_and_counts_what_they_read(
    global_batch: int, seed: int, packing: PackingConfig
) -> None:
    drawn = batches(global_batch, seed, packing)
    of_targets, of_text = context_targets(drawn.contexts), context_text_bytes(drawn.contexts, LENGTHS)
    epochs = (int(of_targets.sum()), int(of_text.sum()), 5 * STEP_FLOPS, 20)
    for kind, epoch in enumerate(epochs):
        for amount in (1, 7, epoch // 2, epoch - 1, epoch, epoch + 1, 3 * epoch, 3 * epoch + 40):
            budget = resolved(budgets(amount)[kind], drawn)
            tokens, text = read_before(drawn, budget.steps)
            flops = [step * STEP_FLOPS for step in range(budget.steps + 1)]
            reached = (tokens, text, flops, range(budget.steps + 1))[kind]
            assert reached[-1] >= amount > reached[-2], (kind, amount)
            assert (budget.tokens, budget.text_bytes, budget.flops) == (tokens[-1], text[-1], flops[-1])
            assert budget.positions == budget.steps * global_batch * 4
            assert budget.epochs == pytest.approx(budget.steps * global_batch / drawn.contexts.count)


@each_packing
@pytest.mark.parametrize("max_epochs", [0.5, 1.0, 2.5])
def test_largest_budget_within_max_epochs_is_named_and_one_more_is_refused(
    max_epochs: float, packing: PackingConfig
) -> None:
    # No document is empty: a context without text would let a larger amount of text end in the same step.
    drawn = batches(3, packing=packing, sizes=np.random.default_rng(1).integers(1, 9, 30).tolist())
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


def test_text_that_a_tokenizer_loses_counts_as_read() -> None:
    texts = ["a b  c " * 9, "no spaces", "", "  x   y  "]
    source = np.array([len(text) for text in texts], dtype=np.int64)
    bytes_of = {}
    for pretokenizer in ("whitespace", "stripped"):
        tokenizer = Tokenizer.train(
            texts, algorithm="bpe", vocab_size=520, pretokenizer=pretokenizer, special_tokens=("<|end|>",)
        )
        ids, lengths = [tokenizer.encode(text) for text in texts], tokenizer.token_byte_lengths()
        offsets, order = np.concatenate([[0], np.cumsum([len(each) for each in ids])]), FixedOrder(np.arange(4))
        contexts = pack(ConcatenatePacking(), np.concatenate(ids), offsets, order, tokenizer.eos_id, 8)
        text = OrderedText(contexts.documents, source, lengths)
        by_share = measured(contexts, text, lossy=tokenizer.settings.lossy).text_bytes
        bytes_of[pretokenizer] = by_share, context_text_bytes(contexts, lengths)
    assert bytes_of["whitespace"][0].tolist() == bytes_of["whitespace"][1].tolist()
    by_share, by_tokens = bytes_of["stripped"]
    assert by_tokens.sum() < 0.7 * source.sum()
    assert 0.8 * source.sum() < by_share.sum() <= source.sum()
