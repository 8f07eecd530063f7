"""How long a run trains: a number of tokens, bytes of source text, FLOPs or steps, in whole steps.

Whichever is fixed, the others are computed exactly from the contexts that will be read.
"""

import math
from dataclasses import dataclass

import numpy as np

from paribus.config.groups.training import (
    BudgetConfig,
    EqualFlopsBudget,
    EqualStepsBudget,
    EqualTextBudget,
    EqualTokensBudget,
)
from paribus.errors import ConfigurationError
from paribus.ordering.packing import CONTEXTS_AT_ONCE
from paribus.training.data.batches import Amounts, Batches, Integers


@dataclass(frozen=True)
class Budget:
    """Length of a training run."""

    steps: int
    tokens: int
    """Predicted tokens; those read twice count twice, padding never."""
    positions: int
    """Positions computed, padding included: steps · global batch · context length; of pairs, tokens of both sides."""
    text_bytes: int
    """Bytes of the source text the predicted tokens stand for; text read twice counts twice."""
    flops: int
    """Training FLOPs, those of padding included."""
    epochs: float
    """Passes over the contexts of the ordered corpus."""
    source_tokens: int = 0
    """Tokens of sources that are read, where training is on pairs."""


def steps_of(amount: int, batches: Batches, of_contexts: Amounts) -> int:
    """Fewest whole steps whose contexts have at least `amount` in sum; `of_contexts` says what each has.

    Every pass reads every context once, so whole passes are skipped by division and one is searched, a part at a time.
    """
    count, each_pass = batches.contexts.count, int(of_contexts.sum())
    passes = (amount - 1) // each_pass
    start, missing = passes * count, amount - passes * each_pass
    part = np.arange(min(count, CONTEXTS_AT_ONCE), dtype=np.int64)
    while (reached := np.cumsum(of_contexts[batches.numbered(start + part)]))[-1] < missing:
        start, missing = start + len(part), missing - int(reached[-1])
    contexts = start + int(np.searchsorted(reached, missing)) + 1
    return -(-contexts // batches.global_batch)


def amount_of(contexts: int, batches: Batches, of_contexts: Amounts) -> int:
    """What the first `contexts` contexts that training reads have in sum; `of_contexts` as for `steps_of`."""
    passes, rest = divmod(contexts, batches.contexts.count)
    total = passes * int(of_contexts.sum()) if passes else 0
    for start in range(0, rest, CONTEXTS_AT_ONCE):
        numbers = (
            np.arange(start, min(start + CONTEXTS_AT_ONCE, rest), dtype=np.int64) + passes * batches.contexts.count
        )
        total += int(of_contexts[batches.numbered(numbers)].sum())
    return total


def resolve_budget(
    budget: BudgetConfig, batches: Batches, targets: Integers, text_bytes: Integers, step_flops: int
) -> Budget:
    """Steps, tokens, text, FLOPs and epochs of a run.

    `targets` and `text_bytes` are `context_targets` and `context_text_bytes` of the batches' contexts, `step_flops` the
    training FLOPs of one global batch. Raises ConfigurationError if the budget is text and the contexts stand for none,
    or if it takes more epochs than `budget.max_epochs`.
    """
    steps = resolve_steps(budget, batches, targets, text_bytes, step_flops)
    resolved = _budget_of(steps, batches, targets, text_bytes, step_flops)
    if budget.max_epochs is not None and resolved.epochs > budget.max_epochs:
        most = math.floor(budget.max_epochs * batches.contexts_an_epoch) // batches.global_batch
        allowed = _budget_of(most, batches, targets, text_bytes, step_flops)
        an_epoch = [int(amounts.sum()) // batches.traversal.draws for amounts in (targets, text_bytes)]
        raise ConfigurationError(_repeated(budget, resolved, allowed, *an_epoch))
    return resolved


def resolve_steps(
    budget: BudgetConfig, batches: Batches, targets: Integers, text_bytes: Integers, step_flops: int
) -> int:
    """The steps of `resolve_budget`, however many epochs they are."""
    match budget:
        case EqualTokensBudget():
            return _steps_of_tokens(budget.tokens, batches, targets)
        case EqualTextBudget():
            return _steps_of_text(budget.text, batches, text_bytes)
        case EqualFlopsBudget():
            return -(-budget.flops // step_flops)
        case EqualStepsBudget():
            return budget.steps


def _steps_of_tokens(tokens: int, batches: Batches, targets: Integers) -> int:
    if batches.contexts.full:
        return -(-tokens // (batches.global_batch * batches.contexts.context_length))
    return steps_of(tokens, batches, targets)


def _steps_of_text(text: int, batches: Batches, text_bytes: Integers) -> int:
    if not text_bytes.any():
        raise ConfigurationError("budget.text cannot be reached: the ordered corpus stands for no text at all")
    return steps_of(text, batches, text_bytes)


def _budget_of(steps: int, batches: Batches, targets: Integers, text_bytes: Integers, step_flops: int) -> Budget:
    contexts = steps * batches.global_batch
    positions = contexts * batches.contexts.context_length
    return Budget(
        steps=steps,
        tokens=positions if batches.contexts.full else amount_of(contexts, batches, targets),
        positions=positions,
        text_bytes=amount_of(contexts, batches, text_bytes),
        flops=steps * step_flops,
        epochs=contexts / batches.contexts_an_epoch,
    )


def _repeated(budget: BudgetConfig, needed: Budget, allowed: Budget, tokens: int, text_bytes: int) -> str:
    """Why a run is refused whose budget takes more epochs than it may, and what would be right."""
    match budget:
        case EqualTokensBudget():
            field, value, most = "tokens", budget.tokens, allowed.tokens
        case EqualTextBudget():
            field, value, most = "text", budget.text, allowed.text_bytes
        case EqualFlopsBudget():
            field, value, most = "flops", budget.flops, allowed.flops
        case EqualStepsBudget():
            field, value, most = "steps", budget.steps, allowed.steps
    fits = f"budget.{field} of at most {most:,}" if most else "a smaller training.global_batch"
    return (
        f"budget.{field}={value:,} takes {needed.epochs:.4g} epochs ({needed.tokens:,} tokens), but budget.max_epochs "
        f"is {budget.max_epochs:g} and one epoch of the ordered corpus has {tokens:,} tokens ({text_bytes:,} bytes of "
        f"text): give it more text, take {fits}, or a larger budget.max_epochs (null repeats as often as needed)"
    )
