"""Bits per UTF-8 byte of held-out targets given their sources, under an encoder-decoder.

As of documents: each token of a target is scored once, the end-of-document token after it is not. A source longer than
the context loses its end, as it does in training; a longer target is scored in windows. Imports torch: import this
module late.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy, linear

from paribus.errors import NumericalError
from paribus.evaluation.models.batch_tokens import SCORED
from paribus.evaluation.models.scoring import LOGITS
from paribus.evaluation.models.shares import computed
from paribus.evaluation.progress import counter
from paribus.evaluation.prompts.pairs import Ids, PromptEncoder, windows
from paribus.evaluation.tasks.heldout_pairs import TextPair
from paribus.evaluation.text.bits_per_byte import DocumentBits
from paribus.modeling.device import batches
from paribus.ordering.packing import NO_TARGET
from paribus.training.distributed import ALONE, Host


@dataclass(frozen=True)
class _Window:
    """A part of a target: `scored`, after `before`, given `source`; 1-D ids."""

    owner: int
    source: Ids
    before: Ids
    scored: Ids

    def ids(self) -> tuple[Ids, ...]:
        """All that decides its score."""
        return self.source, self.before, self.scored


@dataclass(frozen=True)
class TargetScorer:
    """Scores targets with an encoder-decoder on the model's device."""

    model: Any
    tokenizer: PromptEncoder
    context_length: int
    batch_tokens: int | None = None
    """The most tokens of a batch, sources and targets padded, unless one pair has more."""
    host: Host = ALONE
    """The processes that score together, each of which has the model."""

    def bits(
        self, pairs: Sequence[TextPair], progress: Callable[[int, int], None] = lambda done, total: None
    ) -> DocumentBits:
        """Bits and bytes of each target; `progress` is told the bytes of targets finished and their number.

        Raises NumericalError when the model gives something that is not a number, OutOfMemoryError for its kind.
        """
        sizes = np.array([len(pair.target.encode()) for pair in pairs], np.int64)
        parts = [part for owner, pair in enumerate(pairs) for part in self._windows(owner, pair)]
        parts.sort(key=lambda part: (len(part.before) + len(part.scored), len(part.source)), reverse=True)
        nats = np.zeros(len(pairs))
        longest = max((len(part.source) for part in parts), default=0)
        told = counter(progress, len(parts), int(sizes.sum()))
        tokens = self.batch_tokens or SCORED[self.model.device.type]
        dealt = batches(parts, lambda part: longest + len(part.before) + len(part.scored), tokens)
        scored = computed(self.host, "scoring", dealt, partial(_nats, self.model), _Window.ids, told)
        for some, found in scored:
            np.add.at(nats, [part.owner for part in some], found)
        if not np.isfinite(nats).all():
            raise NumericalError("the model's output is not a number; its weights are not finite or overflow")
        scored_tokens = np.zeros(len(pairs), np.int64)
        np.add.at(scored_tokens, [part.owner for part in parts], [len(part.scored) for part in parts])
        return DocumentBits(nats / np.log(2), sizes, scored_tokens)

    def _windows(self, owner: int, pair: TextPair) -> list[_Window]:
        source = np.append(self.tokenizer.encode(pair.source)[: self.context_length - 1], self.tokenizer.eos_id)
        target = self.tokenizer.encode(pair.target)
        if not len(target):
            return []
        parts = windows(target, self.tokenizer.eos_id, self.context_length)
        return [_Window(owner, source, part.context, part.continuation) for part in parts]


@torch.inference_mode()
def _nats(model: Any, batch: Sequence[_Window]) -> NDArray[np.float64]:
    """Minus the natural log-probability of what each window scores, (windows,)."""
    sources = padded([part.source for part in batch]).to(model.device)
    inputs = padded([np.append(part.before, part.scored[:-1]) for part in batch]).to(model.device)
    unscored = [np.full(len(part.before) - 1, NO_TARGET) for part in batch]
    targets = padded([np.append(none, part.scored) for none, part in zip(unscored, batch, strict=True)])
    hidden = model.model(
        input_ids=sources.clamp(min=0),
        attention_mask=sources >= 0,
        decoder_input_ids=inputs.clamp(min=0),
        use_cache=False,
    ).last_hidden_state
    flat, wanted = hidden.flatten(0, 1), targets.flatten().to(model.device)
    chunk = max(1, LOGITS // int(model.config.vocab_size))
    losses = [
        cross_entropy(
            linear(flat[start : start + chunk], model.lm_head.weight).float(),
            wanted[start : start + chunk],
            ignore_index=NO_TARGET,
            reduction="none",
        )
        for start in range(0, len(flat), chunk)
    ]
    nats: NDArray[np.float64] = torch.cat(losses).reshape(targets.shape).double().sum(dim=1).cpu().numpy()
    return nats


def padded(rows: Sequence[NDArray[Any]]) -> torch.Tensor:
    """Rows of ids as one int64 tensor, -1 after their end."""
    filled = torch.full((len(rows), max(map(len, rows))), NO_TARGET, dtype=torch.int64)
    for place, row in enumerate(rows):
        filled[place, : len(row)] = torch.from_numpy(row.astype(np.int64))
    return filled
