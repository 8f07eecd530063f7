"""The pre-tokenizer that a configuration names."""

from collections.abc import Iterable
from pathlib import Path

from paribus.config.groups.tokenization import PredictiveEntropyPretokenizer, PretokenizerConfig, SpansPretokenizer
from paribus.tokenization.pretokenize.cutter import Cutter
from paribus.tokenization.pretokenize.spans.predictive import PredictiveEntropySpans
from paribus.tokenization.pretokenize.spans.pretokenizer import SpanPretokenizer
from paribus.tokenization.pretokenize.spans.settings import SpanSettings


def configured(config: PretokenizerConfig, texts: Iterable[str]) -> str | Cutter:
    """The name of a pattern, or what cuts; spans are found in `texts`, which only they need."""
    if isinstance(config, SpansPretokenizer):
        return SpanPretokenizer.train(texts, span_settings(config))
    if isinstance(config, PredictiveEntropyPretokenizer):
        return predictive_entropy(config)
    return config.kind


def span_settings(config: SpansPretokenizer) -> SpanSettings:
    """What the search for spans is asked for."""
    return SpanSettings(
        max_length=config.max_length,
        min_count=config.min_count,
        entropy_weight=config.entropy_weight,
        entropy_only=config.entropy_only,
        information=config.information,
        least_score=config.least_score,
        classes=config.classes,
    )


def predictive_entropy(config: PredictiveEntropyPretokenizer) -> PredictiveEntropySpans:
    """What cuts by the model of the configuration; DataError where the directory has none."""
    model = Path(config.model).expanduser()
    return PredictiveEntropySpans(model, threshold=config.threshold, device=config.device)
