"""How long a run trains: a number of tokens or of bytes of source text, in whole steps.

Whichever is fixed, the other is computed exactly from the contexts that will be read.
"""

from dataclasses import dataclass

import numpy as np

from paribus.config.groups.training import BudgetConfig, EqualTokensBudget
from paribus.errors import ConfigurationError
from paribus.training.batches import CHUNK, Batches, Integers


@dataclass(frozen=True)
class Budget:
    """Length of a training run."""

    steps: int
    tokens: int
    """Predicted tokens: steps · global batch · context length."""
    text_bytes: int
    """Bytes of the source text those tokens stand for; text read twice counts twice."""
    epochs: float
    """Passes over the contexts of the ordered corpus."""


def steps_of_tokens(tokens: int, global_batch: int, context_length: int) -> int:
    """Fewest whole steps that read at least `tokens` tokens."""
    return -(-tokens // (global_batch * context_length))


def steps_of_text(text: int, batches: Batches, text_bytes: Integers) -> int:
    """Fewest whole steps whose contexts cover at least `text` bytes; `text_bytes` is one int64 a context.

    Every epoch reads every context once, so whole epochs are skipped by division and one epoch is searched.
    """
    count, each_epoch = batches.stream.count, int(text_bytes.sum())
    if each_epoch == 0:
        raise ConfigurationError("budget.text cannot be reached: the ordered corpus stands for no text at all")
    epochs = (text - 1) // each_epoch
    places = batches.numbered(np.arange(epochs * count, (epochs + 1) * count, dtype=np.int64))
    covered = np.cumsum(text_bytes[places])
    contexts = epochs * count + int(np.searchsorted(covered, text - epochs * each_epoch)) + 1
    return -(-contexts // batches.global_batch)


def text_of_contexts(contexts: int, batches: Batches, text_bytes: Integers) -> int:
    """Bytes of source text in the first `contexts` contexts that training reads."""
    epochs, rest = divmod(contexts, batches.stream.count)
    total = epochs * int(text_bytes.sum())
    for start in range(0, rest, CHUNK):
        numbers = np.arange(start, min(start + CHUNK, rest), dtype=np.int64) + epochs * batches.stream.count
        total += int(text_bytes[batches.numbered(numbers)].sum())
    return total


def resolve_budget(budget: BudgetConfig, batches: Batches, text_bytes: Integers) -> Budget:
    """Steps, tokens, text and epochs of a run; `text_bytes` is `context_text_bytes` of the batches' stream."""
    length = batches.stream.context_length
    if isinstance(budget, EqualTokensBudget):
        steps = steps_of_tokens(budget.tokens, batches.global_batch, length)
    else:
        steps = steps_of_text(budget.text, batches, text_bytes)
    contexts = steps * batches.global_batch
    return Budget(
        steps=steps,
        tokens=contexts * length,
        text_bytes=text_of_contexts(contexts, batches, text_bytes),
        epochs=contexts / batches.stream.count,
    )
