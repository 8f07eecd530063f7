"""Spans of characters that belong together, as pre-tokens.

*Entropy-Driven Pre-Tokenization for Byte-Pair Encoding*, arXiv 2506.15889: candidate n-grams are scored by pointwise
mutual information and branching entropy; a text is cut from the left, the best candidate that begins at a place being
its piece.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization.arguments import stream_of_texts
from paribus.tokenization.pretokenize.spans.codes import CODE_BITS, decode
from paribus.tokenization.pretokenize.spans.ngrams import Ngrams, Progress, Reals, candidate_ngrams
from paribus.tokenization.pretokenize.spans.settings import SpanSettings

KIND, FORMAT = "spans", 1


class SpanPretokenizer:
    """Cuts text into `spans` and single characters. Made by `train`, `from_ngrams` or `from_state`; never changes.

    `spans` are the candidates above `settings.least_score` that no candidate at their beginning outscores. As every
    beginning of a candidate is a candidate, the best candidate at a place is therefore the longest of these spans there
    (of equal scores, the longest is taken). Raises ConfigurationError for a span that is too short or too long.
    """

    def __init__(self, settings: SpanSettings, spans: Iterable[str]) -> None:
        self.settings = settings
        self.spans = frozenset(spans)
        """The spans that can be pieces, of 2 to `settings.max_length` characters."""
        self._lengths = _lengths(self.spans)
        odd = next((span for span in self.spans if not 2 <= len(span) <= settings.max_length), None)
        if odd is not None:
            raise ConfigurationError(f"span {odd!r} has {len(odd)} characters, not 2 to {settings.max_length}")

    @classmethod
    def train(
        cls, texts: Iterable[str], settings: SpanSettings | None = None, progress: Progress | None = None
    ) -> "SpanPretokenizer":
        """Find the spans of `texts`, which are read once; a text's ends and line breaks in it are line ends."""
        settings = settings or SpanSettings()
        given = stream_of_texts(texts, "SpanPretokenizer.train")
        ngrams = candidate_ngrams(
            given,
            max_length=settings.max_length,
            min_count=settings.min_count,
            information=settings.information,
            classes=settings.classes,
            progress=progress,
        )
        return cls.from_ngrams(ngrams, settings)

    @classmethod
    def from_ngrams(cls, ngrams: Sequence[Ngrams], settings: SpanSettings) -> "SpanPretokenizer":
        """Choose the spans among candidates counted with these settings; scores of several lambdas share the counts."""
        return cls(settings, _undominated(ngrams, settings))

    def pieces(self, text: str) -> list[str]:
        """The pre-tokens of `text` in order; their concatenation is `text`, whatever it holds."""
        pieces: list[str] = []
        append, spans, lengths = pieces.append, self.spans, self._lengths
        start, end = 0, len(text)
        while start < end:
            for length in lengths.get(text[start], ()):
                span = text[start : start + length]
                if span in spans:
                    break
            else:
                span = text[start]
            append(span)
            start += len(span)
        return pieces

    def to_state(self) -> dict[str, Any]:
        """All of it as JSON values, the same for the same spans and settings."""
        settings, least = self.settings, self.settings.least_score
        numbers = {
            "entropy_weight": float(settings.entropy_weight),
            "least_score": None if least is None else float(least),
        }
        return {
            "kind": KIND,
            "format": FORMAT,
            "settings": dataclasses.asdict(settings) | numbers,
            "spans": sorted(self.spans),
        }

    @classmethod
    def from_state(cls, state: Any) -> "SpanPretokenizer":
        """What `to_state` gave; DataError says what is wrong with another state."""
        if not isinstance(state, dict) or (state.get("kind"), state.get("format")) != (KIND, FORMAT):
            raise DataError(f"the state is not one of a pre-tokenizer of kind {KIND!r}, format {FORMAT}")
        spans = state.get("spans")
        if not isinstance(spans, list) or not all(isinstance(span, str) for span in spans):
            raise DataError(f"the state of pre-tokenizer {KIND!r} has no list of spans that are text")
        if any(a >= b for a, b in pairwise(spans)):
            raise DataError(f"the spans of pre-tokenizer {KIND!r} are not in order, or one is there twice")
        try:
            return cls(SpanSettings(**state["settings"]), spans)
        except (KeyError, TypeError, ConfigurationError) as error:
            raise DataError(f"the state of pre-tokenizer {KIND!r} is malformed: {error}") from error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SpanPretokenizer):
            return NotImplemented
        return (self.settings, self.spans) == (other.settings, other.spans)

    def __hash__(self) -> int:
        return hash((self.settings, self.spans))


def _undominated(ngrams: Sequence[Ngrams], settings: SpanSettings) -> list[str]:
    spans: list[str] = []
    best: Reals | None = None
    least = -np.inf if settings.least_score is None else settings.least_score
    for level in ngrams:
        scores = level.scores(settings)
        prefix = np.full(len(scores), -np.inf) if best is None else best[level.keys >> CODE_BITS]
        kept = np.flatnonzero((scores >= prefix) & (scores > least))
        spans += decode(level.codes[kept])
        best = np.maximum(scores, prefix)
    return spans


def _lengths(spans: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """First character -> lengths of the spans that begin with it, the longest first."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    for span in spans:
        found[span[:1]].add(len(span))
    return {first: tuple(sorted(lengths, reverse=True)) for first, lengths in found.items()}
