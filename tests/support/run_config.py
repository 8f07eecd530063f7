"""A complete run configuration; a test sets only the groups it needs."""

from typing import Any

from paribus.config.groups.corpus import PydocsCorpus
from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.execution import LocalEngineConfig, ScaleConfig, TrackingConfig
from paribus.config.groups.model import LlamaModel
from paribus.config.groups.ordering import StandardOrdering
from paribus.config.groups.tokenization import BytesTokenizer, MergeRankEncoder, PatternPretokenizer
from paribus.config.groups.training import EqualTokensBudget, TrainingConfig
from paribus.config.schema import RunConfig


def run_config(**groups: Any) -> RunConfig:
    """A run in bytes with one layer and a budget of one token; `groups` (or `seed`) are what a test is about."""
    defaults: dict[str, Any] = {
        "corpus": PydocsCorpus(),
        "pretokenizer": PatternPretokenizer(),
        "tokenizer": BytesTokenizer(),
        "encoder": MergeRankEncoder(),
        "ordering": StandardOrdering(),
        "model": LlamaModel(width=8, layers=1, heads=1, ffn_width=16),
        "budget": EqualTokensBudget(tokens=1),
        "training": TrainingConfig(),
        "evaluation": EvaluationConfig(),
        "tracking": TrackingConfig(),
        "engine": LocalEngineConfig(),
        "scale": ScaleConfig(),
    }
    return RunConfig(**(defaults | groups))
