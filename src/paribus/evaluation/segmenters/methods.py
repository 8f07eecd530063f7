"""The methods of *Entropy-Driven Pre-Tokenization for Byte-Pair Encoding* (arXiv 2506.15889), as segmenters.

Each is a pre-tokenizer with a character BPE whose merges it confines; spans are searched in the training texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from paribus.evaluation.measures.segmentation import SegmentationScores
from paribus.evaluation.segmenters.corpus import tokenizer_scores
from paribus.tokenization import Tokenizer
from paribus.tokenization.pretokenize.cutter import Cutter
from paribus.tokenization.pretokenize.patterns import Pretokenizer
from paribus.tokenization.pretokenize.spans.ngrams import candidate_ngrams
from paribus.tokenization.pretokenize.spans.predictive import PredictiveEntropySpans
from paribus.tokenization.pretokenize.spans.pretokenizer import SpanPretokenizer
from paribus.tokenization.pretokenize.spans.settings import SpanSettings

Sentences = Sequence[Sequence[str]]
Unknown = Literal["token", "byte_fallback"]

STANDARD, PUNCTUATION = "standard BPE", "BPE, punctuation apart"
PREDICTIVE, PREDICTIVE_PUNCTUATION = "predictive entropy", "predictive entropy, punctuation apart"
ENTROPY_ONLY = "entropy only"
LAMBDAS = (0.1, 1.0, 10.0, 100.0)
COUNT_LAMBDAS = (1.0, 3.0, 10.0, 100.0)
"""Weights beside mutual information of counts; over them F1 goes from that of single characters to that of entropy."""


@dataclass(frozen=True)
class PiecesAlone:
    """A pre-tokenizer as a segmenter: its pieces are the words."""

    pretokenizer: Pretokenizer | Cutter

    def tokenize(self, text: str) -> list[bytes]:
        """The bytes of each piece of `text`."""
        return [piece.encode() for piece in self.pretokenizer.pieces(text)]


@dataclass(frozen=True)
class CutAgain:
    """The pieces of a pre-tokenizer, each cut by a pattern too. For comparison only: it cannot be saved."""

    pretokenizer: Cutter
    pattern: Pretokenizer

    def pieces(self, text: str) -> list[str]:
        """The pre-tokens of `text` in order."""
        return [part for piece in self.pretokenizer.pieces(text) for part in self.pattern.pieces(piece)]

    def to_state(self) -> dict[str, Any]:
        """Its kind alone."""
        return {"kind": self.pretokenizer.to_state()["kind"]}


@dataclass(frozen=True)
class MethodScores:
    """What one method scores on one set of test sentences."""

    tokens: SegmentationScores
    pieces: SegmentationScores
    """The pre-tokens themselves, before BPE cuts them."""
    vocab_size: int


def lambda_name(weight: float) -> str:
    """Name of the method that weighs entropy so."""
    return f"PMI + {weight:g} × entropy"


def count_name(weight: float) -> str:
    """Name of the method that weighs entropy so beside mutual information without totals, for positive scores alone."""
    return f"PMI of counts + {weight:g} × entropy, above 0"


def text_methods(texts: Sequence[str], *, max_length: int, min_count: int) -> dict[str, Pretokenizer | Cutter]:
    """The methods that need nothing but training texts, by name; the counts of n-grams are shared."""
    shares = SpanSettings(max_length=max_length, min_count=min_count)
    counts = replace(shares, information="counts", least_score=0.0)
    found = {
        settings: candidate_ngrams(texts, max_length=max_length, min_count=min_count, information=settings.information)
        for settings in (shares, counts)
    }

    def spans(kind: SpanSettings, weight: float, *, only: bool = False) -> SpanPretokenizer:
        return SpanPretokenizer.from_ngrams(found[kind], replace(kind, entropy_weight=weight, entropy_only=only))

    return {
        STANDARD: Pretokenizer("none"),
        PUNCTUATION: Pretokenizer("gpt2"),
        **{lambda_name(weight): spans(shares, weight) for weight in LAMBDAS},
        **{count_name(weight): spans(counts, weight) for weight in COUNT_LAMBDAS},
        ENTROPY_ONLY: spans(shares, 0.0, only=True),
    }


def model_methods(model: Path) -> dict[str, Cutter]:
    """The methods that need a language model of characters: the directory `model`."""
    predictive = PredictiveEntropySpans(model)
    return {PREDICTIVE: predictive, PREDICTIVE_PUNCTUATION: CutAgain(predictive, Pretokenizer("gpt2"))}


def method_scores(
    pretokenizer: Pretokenizer | Cutter, train: Sentences, test: Sentences, *, vocab_size: int, unknown: Unknown
) -> MethodScores:
    """Train a vocabulary inside the pieces of the training sentences and score it on the test sentences."""
    tokenizer = Tokenizer.train(
        ("".join(words) for words in train),
        vocab_size=vocab_size,
        unit="character",
        unknown=unknown,
        pretokenizer=pretokenizer.name if isinstance(pretokenizer, Pretokenizer) else pretokenizer,
    )
    return MethodScores(
        tokens=tokenizer_scores(tokenizer, test),
        pieces=tokenizer_scores(PiecesAlone(pretokenizer), test),
        vocab_size=tokenizer.vocab_size,
    )
