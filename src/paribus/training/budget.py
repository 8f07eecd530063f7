"""How long a run trains: a number of tokens or of bytes of source text, in whole steps.

Whichever is fixed, the other is computed exactly from the contexts that will be read.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paribus.config.groups.budget import BudgetConfig, EqualTokensBudget
from paribus.errors import ConfigurationError
from paribus.training.batches import CHUNK, Batches, Integers, context_targets, context_text_bytes


@dataclass(frozen=True)
class Budget:
    """Length of a training run."""

    steps: int
    tokens: int
    """Predicted tokens; those read twice count twice, padding never."""
    positions: int
    """Positions computed, padding included: steps · global batch · context length."""
    text_bytes: int
    """Bytes of the source text the predicted tokens stand for; text read twice counts twice."""
    epochs: float
    """Passes over the contexts of the ordered corpus."""


def steps_of(amount: int, batches: Batches, of_contexts: Integers) -> int:
    """Fewest whole steps whose contexts have at least `amount` in sum; `of_contexts` (count,) says what each has.

    Every epoch reads every context once, so whole epochs are skipped by division and one epoch is searched.
    """
    count, each_epoch = batches.contexts.count, int(of_contexts.sum())
    epochs = (amount - 1) // each_epoch
    places = batches.numbered(np.arange(epochs * count, (epochs + 1) * count, dtype=np.int64))
    reached = np.cumsum(of_contexts[places])
    contexts = epochs * count + int(np.searchsorted(reached, amount - epochs * each_epoch)) + 1
    return -(-contexts // batches.global_batch)


def amount_of(contexts: int, batches: Batches, of_contexts: Integers) -> int:
    """What the first `contexts` contexts that training reads have in sum; `of_contexts` as for `steps_of`."""
    epochs, rest = divmod(contexts, batches.contexts.count)
    total = epochs * int(of_contexts.sum())
    for start in range(0, rest, CHUNK):
        numbers = np.arange(start, min(start + CHUNK, rest), dtype=np.int64) + epochs * batches.contexts.count
        total += int(of_contexts[batches.numbered(numbers)].sum())
    return total


def resolve_budget(budget: BudgetConfig, batches: Batches, targets: Integers, text_bytes: Integers) -> Budget:
    """Steps, tokens, text and epochs of a run.

    `targets` and `text_bytes` are `context_targets` and `context_text_bytes` of the batches' contexts. Raises
    ConfigurationError if the budget is text and the contexts stand for none.
    """
    if isinstance(budget, EqualTokensBudget):
        steps = _steps_of_tokens(budget.tokens, batches, targets)
    else:
        steps = _steps_of_text(budget.text, batches, text_bytes)
    contexts = steps * batches.global_batch
    positions = contexts * batches.contexts.context_length
    return Budget(
        steps=steps,
        tokens=positions if batches.contexts.full else amount_of(contexts, batches, targets),
        positions=positions,
        text_bytes=amount_of(contexts, batches, text_bytes),
        epochs=contexts / batches.contexts.count,
    )


def resolve_steps(budget: BudgetConfig, batches: Batches, token_byte_lengths: npt.NDArray[np.integer]) -> int:
    """The steps of `resolve_budget`, with no token read unless the budget is text."""
    if isinstance(budget, EqualTokensBudget):
        return _steps_of_tokens(budget.tokens, batches, context_targets(batches.contexts))
    return _steps_of_text(budget.text, batches, context_text_bytes(batches.contexts, token_byte_lengths))


def _steps_of_tokens(tokens: int, batches: Batches, targets: Integers) -> int:
    if batches.contexts.full:
        return -(-tokens // (batches.global_batch * batches.contexts.context_length))
    return steps_of(tokens, batches, targets)


def _steps_of_text(text: int, batches: Batches, text_bytes: Integers) -> int:
    if not text_bytes.any():
        raise ConfigurationError("budget.text cannot be reached: the ordered corpus stands for no text at all")
    return steps_of(text, batches, text_bytes)
