"""The whole configuration of one run.

A `RunConfig` is frozen, typed and complete: nothing below `config/compose.py` sees anything else. Each group's class is
chosen by its `kind` in a closed registry.
"""

import dataclasses
from typing import Any, Literal

from paribus.config.declare import execution, group, identity
from paribus.config.groups.corpus import CorpusConfig, FilesCorpus, HuggingFaceCorpus, PydocsCorpus
from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.execution import EngineConfig, ScaleConfig, TrackingConfig
from paribus.config.groups.ordering import (
    InContextOrdering,
    OrderingConfig,
    StandardOrdering,
    TfidfEmbedder,
    TransformersEmbedder,
)
from paribus.config.groups.tokenization import (
    BPETokenizer,
    BytesTokenizer,
    EncoderConfig,
    LongestFirstEncoder,
    MergeRankEncoder,
    PretokenizerConfig,
    ScaffoldBPETokenizer,
    TokenizerConfig,
)
from paribus.config.groups.training import (
    BudgetConfig,
    EqualTextBudget,
    EqualTokensBudget,
    ModelConfig,
    TrainingConfig,
)
from paribus.config.groups.types import NonNegative

GROUPS: dict[str, tuple[type[Any], ...]] = {
    "corpus": (PydocsCorpus, FilesCorpus, HuggingFaceCorpus),
    "pretokenizer": (PretokenizerConfig,),
    "tokenizer": (BPETokenizer, ScaffoldBPETokenizer, BytesTokenizer),
    "encoder": (MergeRankEncoder, LongestFirstEncoder),
    "ordering": (StandardOrdering, InContextOrdering),
    "embedder": (TfidfEmbedder, TransformersEmbedder),
    "model": (ModelConfig,),
    "budget": (EqualTokensBudget, EqualTextBudget),
    "training": (TrainingConfig,),
    "evaluation": (EvaluationConfig,),
    "tracking": (TrackingConfig,),
    "engine": (EngineConfig,),
    "scale": (ScaleConfig,),
}


@group
class RunConfig:
    """One run: one tokenizer, one order, one model, one set of scores."""

    corpus: CorpusConfig = identity(doc="Where the documents come from.")
    pretokenizer: PretokenizerConfig = identity(doc="Pieces of text that tokens do not cross.")
    tokenizer: TokenizerConfig = identity(doc="How the vocabulary is trained.")
    encoder: EncoderConfig = identity(doc="How text becomes tokens of that vocabulary.")
    ordering: OrderingConfig = identity(doc="In which order documents are read.")
    model: ModelConfig = identity(doc="Architecture and size.")
    budget: BudgetConfig = identity(doc="What is equal between runs: tokens or text.")
    training: TrainingConfig = identity(doc="Optimizer, schedule, batch, checkpoints.")
    evaluation: EvaluationConfig = identity(doc="Tasks and held-out text.")
    tracking: TrackingConfig = execution(doc="MLflow.")
    engine: EngineConfig = execution(doc="Processes, threads and claims.")
    scale: ScaleConfig = execution(doc="Bundle of sizes.")
    seed: NonNegative = identity(0, doc="Initial weights, shuffles and the traversal's random jumps.")
    root: str = execution("paribus_runs", doc="Directory of artefacts, runs, reports and the default MLflow store.")


def kinds(group_name: str) -> dict[str, type[Any]]:
    """The closed registry of a group: value of `kind` -> class."""
    registry: dict[str, type[Any]] = {}
    for cls in GROUPS[group_name]:
        annotation = next(field.type for field in dataclasses.fields(cls) if field.name == "kind")
        registry |= dict.fromkeys(_literals(annotation), cls)
    return registry


def _literals(annotation: Any) -> tuple[str, ...]:
    if getattr(annotation, "__origin__", None) is not Literal:
        raise TypeError(f"`kind` must be a Literal, not {annotation!r}")
    return tuple(annotation.__args__)
