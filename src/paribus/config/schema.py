"""The whole configuration of one run.

A `RunConfig` is frozen, typed and complete: nothing below `config/compose.py` sees anything else. Each group's class is
chosen by its `kind` in a closed registry.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any, get_args

from paribus.config.declare import execution, group, identity
from paribus.config.groups.corpus import CorpusConfig
from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.execution import EngineConfig, ScaleConfig, SweepConfig, TrackingConfig
from paribus.config.groups.experiment import ExperimentConfig
from paribus.config.groups.ordering import (
    OrderingConfig,
)
from paribus.config.groups.tokenization import (
    EncoderConfig,
    PretokenizerConfig,
    TokenizerConfig,
)
from paribus.config.groups.training import (
    BudgetConfig,
    ModelConfig,
    TrainingConfig,
)
from paribus.config.groups.types import NonNegative


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
    experiment: ExperimentConfig | None = execution(None, doc="The experiment file this run belongs to.")
    sweep: SweepConfig | None = execution(None, doc="The sweep this run belongs to.")
    root: str = execution("paribus_runs", doc="Directory of artefacts, runs, reports and the default MLflow store.")


def kinds(classes: Iterable[type[Any]]) -> dict[str, type[Any]]:
    """The closed registry of a group: value of `kind` -> class; empty for a block without `kind`."""
    registry: dict[str, type[Any]] = {}
    for cls in classes:
        annotations = [field.type for field in dataclasses.fields(cls) if field.name == "kind"]
        for annotation in annotations:
            registry |= dict.fromkeys(get_args(annotation), cls)
    return registry
