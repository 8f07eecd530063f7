"""Batches of a training: which contexts a step reads, how many steps the budget is, and a thread that reads ahead.

The contexts of a step are a pure function of (order, tokens, packing, seed, global batch, step). There is no sampler
state: resuming, another micro-batch or another number of processes gives the same global batches. A budget is a
number of tokens, bytes of source text, FLOPs or steps, in whole steps; whichever is fixed, the others are computed
exactly from the contexts that will be read. A checkpoint keeps the fingerprint of data and recipe, so that it is never
continued on other data or by another recipe.
"""

import hashlib
import math
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from paribus.config.groups.training import (
    BudgetConfig,
    EqualFlopsBudget,
    EqualStepsBudget,
    EqualTextBudget,
    EqualTokensBudget,
)
from paribus.config.identity import identity
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError
from paribus.ordering.contexts import DocumentOrder
from paribus.ordering.packing import CONTEXTS_AT_ONCE, Contexts
from paribus.ordering.pairs import PairContexts, RaggedContexts
from paribus.ordering.shuffle import ContextShuffle
from paribus.stage import JSON
from paribus.tokenization.encoded_corpus import EncodedCorpus
from paribus.training.start import training_seeds

Integers = npt.NDArray[np.int64]
STEPS_AT_ONCE = 64


@dataclass(frozen=True)
class Batches:
    """Batches of `global_batch` contexts out of the endless repetition of packed contexts.

    Context number g = step · global_batch + row is the one that `traversal` has at place g mod count of its pass
    g div count. A pass is an epoch, or as many as there are draws of BPE-dropout.
    """

    contexts: Contexts
    global_batch: int
    traversal: ContextShuffle

    @property
    def contexts_an_epoch(self) -> int:
        """Contexts in one reading of the text."""
        return self.contexts.count // self.traversal.draws

    def indices(self, step: int) -> Integers:
        """Indices of the contexts of 0-based `step`, int64 (global_batch,)."""
        return self.numbered(np.arange(step * self.global_batch, (step + 1) * self.global_batch, dtype=np.int64))

    def each(self, start: int, stop: int) -> Iterator[tuple[int, Integers]]:
        """Steps `start` to `stop`, each with its indices; a permutation costs as much for many steps as for one."""
        for first in range(start, stop, STEPS_AT_ONCE):
            last = min(first + STEPS_AT_ONCE, stop)
            numbers = np.arange(first * self.global_batch, last * self.global_batch, dtype=np.int64)
            yield from zip(range(first, last), self.numbered(numbers).reshape(-1, self.global_batch), strict=True)

    def numbered(self, numbers: Integers) -> Integers:
        """Indices of the contexts with the global context numbers `numbers`, same shape."""
        passes, places = np.divmod(numbers, self.contexts.count)
        indices = np.empty_like(places)
        for pass_number in np.unique(passes):
            inside = passes == pass_number
            indices[inside] = self.traversal.at(places[inside], int(pass_number))
        return indices

    def rows(self, step: int, start: int = 0, stop: int | None = None) -> tuple[Integers, Integers]:
        """Rows `start` to `stop` of the batch of `step`: inputs and targets as `Contexts.rows` gives them."""
        return self.contexts.rows(self.indices(step)[start:stop])

    def times_read(self, contexts: Integers, steps: int) -> Integers:
        """Times that each of `contexts` (n,) is read in the first `steps` steps, int64 (n,)."""
        passes, rest = divmod(steps * self.global_batch, self.contexts.count)
        return passes + (self.traversal.places_of(contexts, passes) < rest)


def context_text_bytes(contexts: Contexts, token_byte_lengths: Integers) -> Integers:
    """Bytes of source text that the targets of each context cover, int64 (count,)."""
    return _measured_contexts(contexts, lambda indices: contexts.source_bytes(token_byte_lengths, indices))


def context_targets(contexts: Contexts) -> Integers:
    """Tokens that each context predicts, int64 (count,); a broadcast scalar where all predict equally many."""
    if contexts.full:
        return np.broadcast_to(np.int64(contexts.context_length), (contexts.count,))
    return _measured_contexts(contexts, contexts.target_tokens)


class Amounts(Protocol):
    """A number for each context, looked up or counted on demand."""

    def __getitem__(self, indices: Integers, /) -> Integers:
        """Numbers of some contexts, int64 (n,)."""

    def sum(self) -> int:
        """Sum over all contexts."""


@dataclass(frozen=True)
class SourceTokens:
    """Source tokens of each pair, counted on demand: they are read too seldom to keep them for all draws."""

    contexts: PairContexts

    def __getitem__(self, indices: Integers, /) -> Integers:
        return self.contexts.source_tokens(indices)

    def sum(self) -> int:
        return sum(int(self[indices].sum()) for indices in _context_parts(self.contexts.count))


def _measured_contexts(contexts: Contexts, measure: Callable[[Integers], Integers]) -> Integers:
    measured = np.empty(contexts.count, dtype=np.int64)
    for indices in _context_parts(contexts.count):
        measured[indices] = measure(indices)
    return measured


def _context_parts(count: int) -> Iterator[Integers]:
    for start in range(0, count, CONTEXTS_AT_ONCE):
        yield np.arange(start, min(start + CONTEXTS_AT_ONCE, count), dtype=np.int64)


STEPS_AHEAD = 2
COLUMN_MULTIPLE = 8
"""Rows of different lengths are cut to a multiple of this: it suits matrix units, and fewer shapes are compiled."""


@dataclass(frozen=True)
class Batch:
    """One process' share of a step's global batch."""

    step: int
    """0-based."""
    indices: Integers
    """Contexts of the whole global batch, int64 (global batch,)."""
    inputs: torch.Tensor
    """int64 (rows, L), where rows differ in length -1 after their end; of pairs the sources (rows, S)."""
    targets: torch.Tensor
    """int64 (rows, L), -1 where nothing is predicted; of pairs (rows, T)."""
    predicted: int
    """Target tokens of the whole global batch."""
    ragged: bool = False

    def part(self, rows: slice) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and targets of some rows; where lengths differ, without columns that are padding in all of them."""
        inputs, targets = self.inputs[rows], self.targets[rows]
        return (_without_padding(inputs), _without_padding(targets)) if self.ragged else (inputs, targets)


@dataclass(frozen=True)
class BatchReader:
    """Reads what process `rank` of `processes` trains on; consecutive rows of the global batch."""

    batches: Batches
    predicted: Integers
    """Tokens that each context predicts, int64 (count,)."""
    rank: int = 0
    processes: int = 1
    pinned: bool = False
    """True to page-lock batches, so that their copy to a GPU runs beside its computation."""

    def read(self, step: int, indices: Integers) -> Batch:
        """The batch of 0-based `step`, whose contexts are `indices`."""
        size = len(indices) // self.processes
        share = indices[self.rank * size : (self.rank + 1) * size]
        contexts = self.batches.contexts
        if ragged := isinstance(contexts, RaggedContexts):
            share = contexts.by_length(share)
        tensors = [torch.from_numpy(np.ascontiguousarray(part)) for part in contexts.rows(share)]
        inputs, targets = (tensor.pin_memory() if self.pinned else tensor for tensor in tensors)
        return Batch(step, indices, inputs, targets, int(self.predicted[indices].sum()), ragged)

    @contextmanager
    def ahead(self, start: int, stop: int) -> Iterator[Iterator[Batch]]:
        """The batches of steps `start` to `stop`, read by a thread that is up to two steps ahead."""
        pool, steps = ThreadPoolExecutor(1, "batches"), self.batches.each(start, stop)

        def read_next() -> Batch | None:
            step_and_indices = next(steps, None)
            return self.read(*step_and_indices) if step_and_indices else None

        def batches() -> Iterator[Batch]:
            while (batch := pending.popleft().result()) is not None:
                pending.append(pool.submit(read_next))
                yield batch

        pending = deque(pool.submit(read_next) for _ in range(STEPS_AHEAD))
        try:
            yield batches()
        finally:
            pool.shutdown(cancel_futures=True)


def _without_padding(tokens: torch.Tensor) -> torch.Tensor:
    """Columns up to the end of the longest row, rounded up to a multiple of `COLUMN_MULTIPLE` if there are as many."""
    longest = int((tokens >= 0).any(dim=0).nonzero().max()) + 1
    return tokens[:, : -(-longest // COLUMN_MULTIPLE) * COLUMN_MULTIPLE]


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
    """Source tokens that are read, where training is on pairs."""


def steps_until(amount: int, batches: Batches, of_contexts: Amounts) -> int:
    """Fewest steps whose contexts have at least `amount` in sum; `of_contexts` gives the amount of each.

    Every pass reads every context once, so whole passes are skipped by division and one is searched, a part at a time.
    """
    count, pass_amount = batches.contexts.count, int(of_contexts.sum())
    passes = (amount - 1) // pass_amount
    start, missing = passes * count, amount - passes * pass_amount
    part = np.arange(min(count, CONTEXTS_AT_ONCE), dtype=np.int64)
    while (reached := np.cumsum(of_contexts[batches.numbered(start + part)]))[-1] < missing:
        start, missing = start + len(part), missing - int(reached[-1])
    contexts = start + int(np.searchsorted(reached, missing)) + 1
    return -(-contexts // batches.global_batch)


def amount_of(contexts: int, batches: Batches, of_contexts: Amounts) -> int:
    """Sum over the first `contexts` contexts that training reads; `of_contexts` as for `steps_until`."""
    passes, rest = divmod(contexts, batches.contexts.count)
    total = passes * int(of_contexts.sum()) if passes else 0
    for numbers in _context_parts(rest):
        total += int(of_contexts[batches.numbered(numbers + passes * batches.contexts.count)].sum())
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
        raise ConfigurationError(_epochs_refusal(budget, resolved, allowed, *an_epoch))
    return resolved


def resolve_steps(
    budget: BudgetConfig, batches: Batches, targets: Integers, text_bytes: Integers, step_flops: int
) -> int:
    """The steps of `resolve_budget`, however many epochs they are."""
    match budget:
        case EqualTokensBudget() if batches.contexts.full:
            return -(-budget.tokens // (batches.global_batch * batches.contexts.context_length))
        case EqualTokensBudget():
            return steps_until(budget.tokens, batches, targets)
        case EqualTextBudget():
            if not text_bytes.any():
                raise ConfigurationError("budget.text cannot be reached: the ordered corpus stands for no text at all")
            return steps_until(budget.text, batches, text_bytes)
        case EqualFlopsBudget():
            return -(-budget.flops // step_flops)
        case EqualStepsBudget():
            return budget.steps


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


def _epochs_refusal(budget: BudgetConfig, needed: Budget, allowed: Budget, tokens: int, text_bytes: int) -> str:
    """Refusal of a budget that takes more epochs than it may, with one that fits."""
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


SAMPLED_IDS = 2**20


def data_fingerprint(corpus: EncodedCorpus, order: DocumentOrder, contexts: Contexts) -> dict[str, JSON]:
    """Counts and digests of the encoded corpus, the order and the contexts.

    Of the ids only the first and last 2**20 are hashed: the artefact's own digests cover the rest, and a corpus of
    100 billion tokens must not be read twice.
    """
    ids, sources = corpus.ids, corpus.source_lengths
    pairs: dict[str, JSON] = {} if sources is None else {"source_lengths": _arrays_digest(sources)}
    return pairs | {
        "tokens": len(ids),
        "documents": len(order.documents),
        "ids": _arrays_digest(ids[:SAMPLED_IDS], ids[-SAMPLED_IDS:]),
        "offsets": _arrays_digest(corpus.offsets),
        "order": _arrays_digest(order.documents),
        "groups": None if order.groups is None else _arrays_digest(order.groups),
        "contexts": contexts.count,
    }


def recipe_fingerprint(config: RunConfig, tokenizer: Path) -> dict[str, JSON]:
    """The fields that decide how a model is trained, by their path, and the digest of the files of its tokenizer."""
    fields: dict[str, JSON] = {f"seeds.{part}": seed for part, seed in training_seeds(config).items()}
    for group in ("packing", "model", "start", "budget", "training"):
        fields |= {f"{group}.{name}": value for name, value in identity(getattr(config, group)).items()}
    digest = hashlib.sha256()
    for path in sorted(tokenizer.iterdir()):
        digest.update(f"{path.name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return fields | {"tokenizer": digest.hexdigest()}


def contexts_digest(batches: Batches, steps: int) -> str:
    """SHA-256 of the context indices of the first `steps` steps, in order, as little-endian int64."""
    digest = hashlib.sha256()
    for numbers in _context_parts(steps * batches.global_batch):
        digest.update(batches.numbered(numbers).astype("<i8").tobytes())
    return digest.hexdigest()


def _arrays_digest(*arrays: npt.NDArray[np.integer]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        for start in range(0, len(array), SAMPLED_IDS):
            digest.update(array[start : start + SAMPLED_IDS].astype("<i8").tobytes())
    return digest.hexdigest()
