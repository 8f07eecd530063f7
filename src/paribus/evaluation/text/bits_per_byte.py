"""Bits per UTF-8 byte of held-out documents: comparable between tokenizers, since the bytes are the text's own.

A document is scored on its own, an end-of-document token before it; each of its tokens is scored once, with at least
half a context before it where the document has that. The end-of-document token after it is not scored.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from paribus.evaluation.progress import counter
from paribus.evaluation.prompts.pairs import Pair, PromptEncoder, windows

if TYPE_CHECKING:
    from paribus.evaluation.models.scoring import Scorer


@dataclass(frozen=True)
class DocumentBits:
    """Information content of documents under a model."""

    bits: NDArray[np.float64]
    """(documents,) minus the base-2 logarithm of each document's probability."""
    bytes: NDArray[np.int64]
    """(documents,) UTF-8 bytes."""
    tokens: NDArray[np.int64]
    """(documents,) tokens that were scored."""

    @property
    def perplexity(self) -> float:
        """2 to the power of all bits over all tokens; infinite where no number holds it."""
        mean = float(self.bits.sum() / self.tokens.sum()) if self.tokens.any() else 0.0
        return math.inf if mean >= sys.float_info.max_exp else 2.0**mean

    @property
    def bits_per_byte(self) -> float:
        """All bits over all bytes."""
        return float(self.bits.sum() / self.bytes.sum())


@dataclass(frozen=True)
class Documents:
    """Documents as what a model scores, made once for all checkpoints of a run."""

    sizes: NDArray[np.int64]
    """(documents,) UTF-8 bytes."""
    pairs: list[Pair]
    owners: NDArray[np.int64]
    """(pairs,) place of each pair's document."""
    tokens: NDArray[np.int64]
    """(documents,) tokens."""

    def bits(self, scorer: "Scorer", progress: Callable[[int, int], None] = lambda done, total: None) -> DocumentBits:
        """Bits and bytes of each document; `progress` is told the bytes of text finished and their number."""
        report = counter(progress, len(self.pairs), int(self.sizes.sum()))
        scores = scorer.score(self.pairs, report)
        nats = np.bincount(self.owners, scores.log_probability, minlength=len(self.sizes))
        return DocumentBits(-nats / np.log(2), self.sizes, self.tokens)


def encode_documents(tokenizer: PromptEncoder, texts: Sequence[str], context_length: int) -> Documents:
    """Each text in windows of a model's context length."""
    pairs: list[Pair] = []
    owners: list[int] = []
    tokens = np.zeros(len(texts), np.int64)
    for place, text in enumerate(texts):
        ids = tokenizer.encode(text)
        tokens[place] = len(ids)
        own = windows(ids, tokenizer.eos_id, context_length) if len(ids) else []
        pairs += own
        owners += [place] * len(own)
    sizes = np.array([len(text.encode()) for text in texts], np.int64)
    return Documents(sizes, pairs, np.array(owners, np.int64), tokens)
