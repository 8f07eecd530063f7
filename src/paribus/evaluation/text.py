"""Bits per UTF-8 byte of held-out documents, each alone or in one stream: comparable between tokenizers.

The bytes are the text's own. A document is scored on its own, an end-of-document token before it; each of its tokens is
scored once, with at least half a context before it where the document has that. The end-of-document token after it is
not scored.

Only a stream shows what a model makes of a context of several documents: there held-out documents follow related ones,
and other sets are in random order. The order is the same for all runs and depends on no model: for held-out documents
it is Algorithm 1 of In-Context Pretraining over the nearest documents by BM25. The documents follow each other with an
end-of-document token between them, whatever the packing of a run; each token is scored once, with at least half a
context of the stream before it. Tokens between documents are not scored.
"""

import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from paribus.evaluation.pairs import Pair, progress_counter, windows
from paribus.tokenization import Tokenizer

if TYPE_CHECKING:
    from paribus.evaluation.scoring import Scorer


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
class EncodedTexts:
    """Documents, alone or end to end, in the token ids that a model scores; made once for all checkpoints of a run."""

    sizes: NDArray[np.int64]
    """(documents,) UTF-8 bytes."""
    pairs: list[Pair]
    """Windows of each document or, end to end, of the stream, in order."""
    owners: NDArray[np.int64]
    """Place of the document of each pair or, end to end, of each token, -1 between documents."""
    tokens: NDArray[np.int64]
    """(documents,) tokens."""
    end_to_end: bool = False

    def bits(self, scorer: "Scorer", progress: Callable[[int, int], None] = lambda done, total: None) -> DocumentBits:
        """Bits and bytes of each document; `progress` gets the bytes of text finished and their number."""
        report = progress_counter(progress, len(self.pairs), int(self.sizes.sum()))
        if self.end_to_end:
            scores = scorer.token_scores(self.pairs, report)
        else:
            scores = scorer.score(self.pairs, report).log_probability
        owned = self.owners != _BETWEEN
        nats = np.bincount(self.owners[owned], scores[owned], minlength=len(self.sizes))
        return DocumentBits(-nats / np.log(2), self.sizes, self.tokens)


def encode_documents(tokenizer: Tokenizer, texts: Sequence[str], context_length: int) -> EncodedTexts:
    """Each text in windows of a model's context length."""
    pairs: list[Pair] = []
    owners: list[int] = []
    tokens = np.zeros(len(texts), np.int64)
    for place, text in enumerate(texts):
        ids = tokenizer.encode(text)
        tokens[place] = len(ids)
        document_pairs = windows(ids, tokenizer.eos_id, context_length) if len(ids) else []
        pairs += document_pairs
        owners += [place] * len(document_pairs)
    sizes = np.array([len(text.encode()) for text in texts], np.int64)
    return EncodedTexts(sizes, pairs, np.array(owners, np.int64), tokens)


ORDER_FILE = "heldout.order.json"
RANDOM_SEED = 0
"""Seed of the order of sets of texts, the same for every run."""
NEIGHBOURS, QUERY_TERMS = 20, 25
"""Settings of the graph in which the order is a path, as in `ordering=lexical`."""
SATURATION, LENGTH_NORMALIZATION = 1.2, 0.75
_ROWS_AT_ONCE = 256
_BETWEEN = -1


def related_order(texts: Sequence[str]) -> NDArray[np.int64]:
    """(texts,) places of the texts in an order in which related ones follow each other; imports SciPy."""
    from paribus.ordering.bm25 import Index, count_texts, together, weights
    from paribus.ordering.in_context import traverse

    counts = together([count_texts(texts)]).counts
    index = Index.of(weights(counts, saturation=SATURATION, length_normalization=LENGTH_NORMALIZATION))
    width = min(NEIGHBOURS, len(texts) - 1)
    parts = [
        index.neighbours(start, min(start + _ROWS_AT_ONCE, len(texts)), query_terms=QUERY_TERMS, count=width)
        for start in range(0, len(texts), _ROWS_AT_ONCE)
    ]
    return traverse(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def random_order(number: int) -> NDArray[np.int64]:
    """(number,) places of as many texts, in random order."""
    return np.random.default_rng(RANDOM_SEED).permutation(number)


def write_order(path: Path, order: NDArray[np.int64]) -> None:
    """Write the places of documents in their order, as JSON."""
    path.write_text(json.dumps(order.tolist()) + "\n", encoding="utf-8")


def read_order(path: Path) -> list[int]:
    order: list[int] = json.loads(path.read_text(encoding="utf-8"))
    return order


def encode_stream(
    tokenizer: Tokenizer, texts: Sequence[str], order: Sequence[int], context_length: int
) -> EncodedTexts:
    """Texts as one stream, in the order of the places `order`."""
    ids, owners = [], []
    separator, no_owner = np.array([tokenizer.eos_id]), np.array([_BETWEEN])
    for place in order:
        document = tokenizer.encode(texts[place])
        ids += [document, separator]
        owners += [np.full(len(document), place), no_owner]
    stream = np.concatenate(ids[:-1])
    pairs = windows(stream, tokenizer.eos_id, context_length) if len(stream) else []
    sizes = np.array([len(text.encode()) for text in texts], np.int64)
    of_tokens = np.concatenate(owners[:-1])
    tokens = np.bincount(of_tokens[of_tokens != _BETWEEN], minlength=len(texts))
    return EncodedTexts(sizes, pairs, of_tokens, tokens, end_to_end=True)
