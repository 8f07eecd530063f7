"""Pre-tokens that follow the entropy of the text: spans of characters, and boundaries where a model is uncertain."""

from paribus.tokenization.spans.predictive import PredictiveEntropyPretokenizer
from paribus.tokenization.spans.pretokenizer import SpanPretokenizer
from paribus.tokenization.spans.settings import SpanSettings

__all__ = ["PredictiveEntropyPretokenizer", "SpanPretokenizer", "SpanSettings"]
