"""Greedy texts after prompts, in batches with a key-value cache. Imports torch: import this module late.

Prompts are padded on the left, longest first; a row leaves its batch when it is finished. A text is the same whatever
the batch, unless two tokens are equally probable up to rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import linear

from paribus.errors import NumericalError
from paribus.evaluation.pairs import Ids, Progress
from paribus.evaluation.scoring import NOT_A_NUMBER, WRITTEN_TOKENS, Scorer, computed
from paribus.modeling.decoder import KVCache
from paribus.modeling.device import batches
from paribus.tokenization import Tokenizer


@dataclass(frozen=True)
class GenerationRequest:
    """Write what follows a prompt, until a stop string, the end-of-document token or the largest number of tokens."""

    prompt: str | Ids
    """Text, or its token ids."""
    until: tuple[str, ...]
    """Stop strings; they and what follows them are not part of the text."""
    max_tokens: int


@dataclass(frozen=True)
class Written:
    """A text that a model wrote."""

    text: str
    truncated: bool
    """True if the prompt lost its beginning, for it and the text to fit the context."""


class Generator:
    """Writes texts with a causal language model, greedily."""

    def __init__(self, scorer: Scorer, coder: Tokenizer) -> None:
        self.scorer = scorer
        self.coder = coder

    @torch.inference_mode()
    def write(self, requests: Sequence[GenerationRequest], progress: Progress = lambda requests: None) -> list[Written]:
        """The text of each request, in the caller's order.

        Raises NumericalError when the model gives something that is not a number, OutOfMemoryError for its kind.
        """
        encoded = [self._encode(request) for request in requests]
        order = sorted(range(len(requests)), key=lambda place: -len(encoded[place][0]))
        tokens = self.scorer.batch_tokens or WRITTEN_TOKENS[self.scorer.model.device.type]
        most = max((request.max_tokens for request in requests), default=0)

        def run(places: Sequence[int]) -> list[str]:
            prompts = [encoded[place][0] for place in places]
            return self._run(_Batch([requests[place] for place in places], prompts, self.coder))

        parts = batches(order, lambda place: len(encoded[place][0]) + most, tokens)
        texts: dict[int, str] = {}
        done = computed(self.scorer.host, "writing answers", parts, run, lambda place: (encoded[place][0],), progress)
        for places, answers in done:
            texts |= dict(zip(places, answers, strict=True))
        return [Written(texts[place], encoded[place][1]) for place in range(len(requests))]

    def _encode(self, request: GenerationRequest) -> tuple[Ids, bool]:
        """The ids of the prompt and whether its beginning was left out; at most half a context is kept for the text."""
        ids = self.coder.encode(request.prompt) if isinstance(request.prompt, str) else request.prompt
        length = self.scorer.context_length
        room = length - min(request.max_tokens, length // 2)
        if not len(ids):
            return np.array([self.coder.eos_id]), False
        return ids[-room:], len(ids) > room

    def _run(self, batch: "_Batch") -> list[str]:
        model = self.scorer.model
        ids, read = (part.to(model.device) for part in batch.padded())
        positions = (read.cumsum(1) - 1).clamp(min=0)
        cache = KVCache(model.architecture, len(ids), batch.longest, model.device, model.computes_in)
        mask = _backwards(read)
        while True:
            hidden = model(ids, positions, mask, cache)[:, -1]
            logits = linear(hidden, model.output_weight.to(hidden.dtype)).float()
            if not torch.isfinite(logits).all():
                raise NumericalError(NOT_A_NUMBER)
            best = logits.argmax(dim=1)
            unfinished = batch.append(best.tolist(), self.scorer.context_length)
            if not unfinished:
                return batch.texts()
            if len(unfinished) < len(best):
                rows = torch.tensor(unfinished, device=model.device)
                cache.keep(rows)
                best, read, positions = best[rows], read[rows], positions[rows]
            ids, positions = best[:, None], positions[:, -1:] + 1
            read = torch.cat([read, read.new_ones(len(best), 1)], dim=1)
            mask = read[:, None, None, :]


def _backwards(read: torch.Tensor) -> torch.Tensor:
    """The mask of tokens that attend to those before them that are `read`, bool (rows, length); padding to itself."""
    length = read.shape[1]
    itself = torch.eye(length, dtype=torch.bool, device=read.device)
    before = torch.ones(length, length, dtype=torch.bool, device=read.device).tril()
    return (before & read[:, None, :] | itself)[:, None]


class _Batch:
    """The rows of a batch, and which of them are still written."""

    def __init__(self, requests: Sequence[GenerationRequest], prompts: Sequence[Ids], coder: Tokenizer) -> None:
        self._requests, self._prompts, self._coder = requests, prompts, coder
        self._written: list[list[int]] = [[] for _ in requests]
        self._rows = list(range(len(requests)))
        """Rows that are not finished."""

    @property
    def longest(self) -> int:
        """Tokens of the longest row as it is padded, when all is written."""
        most = max(request.max_tokens for request in self._requests)
        return max(map(len, self._prompts)) + most

    def padded(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Ids, int64, and which of them are of a prompt, bool; both (rows, longest prompt), padded on the left."""
        shape = (len(self._prompts), max(map(len, self._prompts)))
        ids, read = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
        for row, prompt in enumerate(self._prompts):
            ids[row, -len(prompt) :], read[row, -len(prompt) :] = prompt, True
        return torch.from_numpy(ids), torch.from_numpy(read)

    def append(self, tokens: Sequence[int], context_length: int) -> list[int]:
        """Add a token to each unfinished row; their places among those rows that are unfinished still."""
        for row, token in zip(self._rows, tokens, strict=True):
            self._written[row].append(token)
        unfinished = [place for place, row in enumerate(self._rows) if not self._finished(row, context_length)]
        self._rows = [self._rows[place] for place in unfinished]
        return unfinished

    def texts(self) -> list[str]:
        """The text of each row, up to its first stop string."""
        texts = [self._text(row) for row in range(len(self._requests))]
        for row, request in enumerate(self._requests):
            stops = (place for stop in request.until if (place := texts[row].find(stop)) >= 0)
            texts[row] = texts[row][: min(stops, default=len(texts[row]))]
        return texts

    def _finished(self, row: int, context_length: int) -> bool:
        request, written = self._requests[row], self._written[row]
        full = len(self._prompts[row]) + len(written) >= context_length
        if full or len(written) >= request.max_tokens or written[-1] == self._coder.eos_id:
            return True
        # Of what was looked at before, a stop string that ends in the last token can have only its own bytes' worth of
        # tokens, and some that stand for no byte. Where these are cut they may spell something else, so the whole text
        # confirms it.
        recent = max((len(stop.encode()) for stop in request.until), default=0) + 8
        tail = self._coder.decode(written[-recent:]) if request.until else ""
        return any(stop in tail and stop in self._text(row) for stop in request.until)

    def _text(self, row: int) -> str:
        written = self._written[row]
        return self._coder.decode(written[:-1] if written[-1] == self._coder.eos_id else written)
