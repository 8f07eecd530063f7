"""The whole configuration of one run.

A `RunConfig` is frozen, typed and complete: nothing below `config/compose.py` sees anything else. Each group's class is
chosen by its `kind` in a closed registry.
"""

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from paribus.config.fields import NonNegative, PathText, config_class, execution, identity
from paribus.config.groups.corpus import CorpusConfig
from paribus.config.groups.evaluation import EvaluationConfig, ExperimentConfig, FinetuningConfig, NoFinetuning
from paribus.config.groups.execution import (
    LocalEngineConfig,
    PlanConfig,
    RayEngineConfig,
    RunStage,
    ScaleConfig,
    SweepConfig,
    TrackingConfig,
)
from paribus.config.groups.model import EncoderDecoderModel, ModelConfig, Part, ScratchStart, SeedsConfig, StartConfig
from paribus.config.groups.ordering import (
    ConcatenatePacking,
    DuplicatesConfig,
    EmbedderConfig,
    NeighboursConfig,
    NoDuplicates,
    OrderingConfig,
    PackingConfig,
    TfidfEmbedder,
)
from paribus.config.groups.tokenization import EncoderConfig, PretokenizerConfig, TokenizerConfig
from paribus.config.groups.training import BudgetConfig, TrainingConfig
from paribus.errors import ConfigurationError, Problem

TOKENS = 8
"""A context in bytes is a multiple of so many tokens, which matrix units like."""


def _defaults(cls: Any) -> Any:
    return cls()


@config_class
class RunConfig:
    """One run: one tokenizer, one order, one model, one set of scores."""

    corpus: CorpusConfig = identity(doc="Where the documents come from.")
    pretokenizer: PretokenizerConfig = identity(doc="Pieces of text that tokens do not cross.")
    tokenizer: TokenizerConfig = identity(doc="How the vocabulary is trained.")
    encoder: EncoderConfig = identity(doc="How text becomes tokens of that vocabulary.")
    embedder: EmbedderConfig = identity(
        _defaults(TfidfEmbedder), doc="How a document becomes a vector, where an ordering or duplicates need one."
    )
    neighbours: NeighboursConfig = identity(
        _defaults(NeighboursConfig), doc="How the documents nearest to each are found."
    )
    duplicates: DuplicatesConfig = identity(
        _defaults(NoDuplicates), doc="Which near duplicates are removed from the training split."
    )
    ordering: OrderingConfig = identity(doc="In which order documents are read.")
    packing: PackingConfig = identity(
        _defaults(ConcatenatePacking), doc="How ordered documents become contexts of one length."
    )
    model: ModelConfig = identity(doc="Architecture and size.")
    start: StartConfig = identity(_defaults(ScratchStart), doc="The weights that training begins with.")
    budget: BudgetConfig = identity(doc="What is equal between runs: tokens, text, FLOPs or steps.")
    training: TrainingConfig = identity(doc="Optimizer, schedule, batch, checkpoints.")
    evaluation: EvaluationConfig = identity(doc="Tasks and held-out text.")
    finetuning: FinetuningConfig = identity(
        _defaults(NoFinetuning), doc="Tasks that the trained model is fine-tuned on and scored on."
    )
    tracking: TrackingConfig = execution(doc="MLflow.")
    engine: LocalEngineConfig | RayEngineConfig = execution(doc="Where shards are computed, and claims.")
    plan: PlanConfig = execution(_defaults(PlanConfig), doc="Hours of training, and how many are allowed.")
    scale: ScaleConfig = execution(doc="Bundle of sizes.")
    seed: NonNegative = identity(0, doc="Of every random number of a run; of single parts `seeds` may name others.")
    seeds: SeedsConfig = identity(_defaults(SeedsConfig), doc="Seeds of single parts of the run.")
    factors: tuple[str, ...] = execution(
        (), doc="Paths that differ between the runs of a sweep on purpose, beside those that it sweeps: [duplicates]."
    )
    on_failure: Literal["continue", "stop"] = execution(
        "continue", doc="After a failed run of a sweep: go on with the others, or start no more of them."
    )
    retries: NonNegative = execution(
        1,
        doc="Times that a stage, or a lost run, is tried again after a failure of class infrastructure or interrupted.",
    )
    until: RunStage | None = execution(
        None,
        doc="The last stage that is made, with those that it needs; the same command without it makes the others. "
        "`evaluation` is what makes scores; tables of what is there before a training are made by "
        "`paribus tokens statistics` and `paribus orders`.",
    )
    experiment: ExperimentConfig | None = execution(None, doc="The experiment file this run belongs to.")
    sweep: SweepConfig | None = execution(None, doc="The sweep this run belongs to.")
    root: PathText = execution(
        "paribus_runs", doc="Directory of artefacts, runs, reports and the default MLflow store."
    )

    def seed_of(self, part: Part) -> int:
        """The seed of a part of the run: its own, else that of the run."""
        part_seed: int | None = getattr(self.seeds, part)
        return self.seed if part_seed is None else part_seed


def kinds(classes: Iterable[type[Any]]) -> dict[str, type[Any]]:
    """The closed registry of a group: value of `kind` -> class; empty for a block without `kind`."""
    declared = [(field, cls) for cls in classes for field in dataclasses.fields(cls) if field.name == "kind"]
    return {kind: cls for field, cls in declared for kind in get_args(field.type)}


def dataclasses_of(hint: Any) -> list[type[Any]]:
    """The configuration classes an annotation allows."""
    candidates = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    return [cls for cls in candidates if dataclasses.is_dataclass(cls) and isinstance(cls, type)]


def kinds_with(config_class: str, field: str) -> list[str]:
    """Kinds of a group that have `field`; empty for a group of one class."""
    hint = get_type_hints(RunConfig).get(config_class)
    classes = [cls for cls in get_args(hint) if dataclasses.is_dataclass(cls)]
    defaults = [{item.name: item.default for item in dataclasses.fields(cls)} for cls in classes]
    return [str(fields["kind"]) for fields in defaults if field in fields and "kind" in fields]


def has_field(path: str) -> bool:
    """True if blocks without kinds lead to a field of this dotted path, which no file need give."""
    *blocks, name = path.split(".")
    cls: type[Any] = RunConfig
    for block in blocks:
        classes = dataclasses_of(get_type_hints(cls).get(block))
        if len(classes) != 1:
            return False
        (cls,) = classes
    return name in {field.name for field in dataclasses.fields(cls)}


def in_tokens(model: ModelConfig, bytes_per_token: float) -> ModelConfig:
    """The model with the context length in tokens; of `context_bytes` the nearest multiple of 8, and 8 at least.

    `bytes_per_token` is the mean of the training split, whose documents end in a token each that stands for no byte.
    """
    if model.context_bytes is None:
        return model
    _refuse_no_text("model.context_bytes", model.context_bytes, bytes_per_token)
    length = max(TOKENS, round(model.context_bytes / bytes_per_token / TOKENS) * TOKENS)
    return replace(model, context_length=length, context_bytes=None)


def in_contexts(training: TrainingConfig, bytes_per_context: float) -> TrainingConfig:
    """The training with its global batch in contexts, which have `bytes_per_context` in the mean."""
    if training.batch_bytes is None:
        return training
    _refuse_no_text("training.batch_bytes", training.batch_bytes, bytes_per_context)
    multiples = max(1, round(training.batch_bytes / bytes_per_context / training.batch_multiple))
    return replace(training, global_batch=multiples * training.batch_multiple, batch_bytes=None, batch_multiple=1)


def divided(training: TrainingConfig) -> tuple[str, int]:
    """Path and value of what processes must share evenly: the global batch, or what it is a multiple of."""
    if training.batch_bytes is None:
        return "training.global_batch", training.global_batch
    return "training.batch_multiple", training.batch_multiple


def check_byte_sizes(config: RunConfig) -> Iterator[Problem]:
    """Yield problems of sizes given twice, not at all or for pairs, and of a multiple without a batch in bytes."""
    model, training = config.model, config.training
    if model.context_bytes is not None and model.context_length:
        message = f"{model.context_bytes} bytes beside model.context_length={model.context_length} tokens"
        yield Problem("model.context_bytes", f"{message}; set model.context_length=0, or leave model.context_bytes out")
    if model.context_bytes is not None and isinstance(model, EncoderDecoderModel):
        message = "is for contexts of documents, and model.kind=encoder_decoder reads pairs"
        yield Problem("model.context_bytes", f"{message}; set model.context_length")
    if training.batch_bytes is not None and training.global_batch:
        message = f"{training.batch_bytes} bytes beside training.global_batch={training.global_batch} contexts"
        remedy = "set training.global_batch=0, or leave training.batch_bytes out"
        yield Problem("training.batch_bytes", f"{message}; {remedy}")
    if training.batch_bytes is None and not training.global_batch:
        message = "must be above 0, or 0 where training.batch_bytes says how much text a step reads"
        yield Problem("training.global_batch", message)
    if training.batch_bytes is None and training.batch_multiple > 1:
        message = "rounds what training.batch_bytes gives, which is null"
        yield Problem("training.batch_multiple", f"{message}; leave it out")


def _refuse_no_text(path: str, size: int, mean: float) -> None:
    if not mean:
        raise ConfigurationError(f"{path}={size} cannot be reached: the tokens stand for no text at all")
