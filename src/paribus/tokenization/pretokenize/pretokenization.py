"""Pre-tokenizers that have a state, by their kind."""

from typing import Any

from paribus.errors import DataError
from paribus.tokenization.pretokenize.bert_words import BertWords
from paribus.tokenization.pretokenize.cutter import Cutter
from paribus.tokenization.pretokenize.sentencepiece_text import SentencePieceText
from paribus.tokenization.pretokenize.spans.predictive import PredictiveEntropySpans
from paribus.tokenization.pretokenize.spans.pretokenizer import SpanPretokenizer


def cutter_from_state(kind: str, state: Any, device: str = "cpu") -> Cutter:
    """What `to_state` gave; `device` is where a language model computes.

    DataError where it is malformed or its model is not the one it was made with.
    """
    if kind == "spans":
        return SpanPretokenizer.from_state(state)
    if kind == "predictive_entropy":
        return PredictiveEntropySpans.from_state(state, device=device)
    if kind == "sentencepiece":
        return SentencePieceText.from_state(state)
    if kind == "bert":
        return BertWords.from_state(state)
    raise DataError(f"pretokenizer {kind!r} has no state")


def kind_of(pretokenizer: str | Cutter) -> str:
    """Its name in `PRETOKENIZERS`."""
    return pretokenizer if isinstance(pretokenizer, str) else str(pretokenizer.to_state()["kind"])
