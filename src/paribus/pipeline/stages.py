"""The closed list of stages: what each reads, what of the configuration it depends on, and the function that runs it.

A run makes inputs in the order they are listed here, so what may fail cheaply stands before what is dear: the tasks
before the checkpoints. No run needs `contexts`; `paribus order` does. Only runs with a `finetuning` have its stages.

`code_version` is raised when a change alters a stage's output; pinned digests of each stage's output on a tiny input
make a forgotten change a failing test.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paribus.config.drawn_seeds import finetuning_seeds, training_seeds
from paribus.config.groups.embedding import EmbeddingDuplicates, NoDuplicates
from paribus.config.groups.finetuning import NoFinetuning
from paribus.config.groups.ordering import (
    ClusterOrdering,
    InContextOrdering,
    InContextReleasedOrdering,
    LexicalOrdering,
    NearestOrdering,
    SequentialOrdering,
    StandardOrdering,
)
from paribus.config.groups.seeds import Part
from paribus.config.groups.tokenization import ExistingTokenizer
from paribus.config.identity import identity
from paribus.config.schema import RunConfig
from paribus.evaluation.suites.registry import prompted
from paribus.pipeline.context import JSON, StageContext
from paribus.store.file_digests import FileDigests

Fingerprint = Callable[[Any, FileDigests], dict[str, JSON]]


@dataclass(frozen=True)
class Stage:
    """One kind of artefact."""

    name: str
    code_version: int
    function: str
    """`module:function` of the stage function, imported in the child process only."""
    inputs: Callable[[RunConfig], tuple[str, ...]]
    identity: Callable[[RunConfig], dict[str, Any]]
    fingerprint: str | None = None
    """`module:function` that identifies files outside the configuration."""
    fingerprinted: Callable[[RunConfig], Any] | None = None
    """The part of the configuration the fingerprint is taken of."""

    def load(self) -> Callable[[StageContext], dict[str, JSON]]:
        """Import the stage function."""
        loaded: Callable[[StageContext], dict[str, JSON]] = _load(self.function)
        return loaded

    def take_fingerprint(self, config: RunConfig, digests: FileDigests) -> dict[str, JSON]:
        """Identity of the files outside the configuration; DataError when they are missing."""
        if self.fingerprint is None or self.fingerprinted is None:
            return {}
        function: Fingerprint = _load(self.fingerprint)
        return function(self.fingerprinted(config), digests)


def _load(reference: str) -> Any:
    module, name = reference.split(":")
    return getattr(importlib.import_module(module), name)


def _fixed(*names: str) -> Callable[[RunConfig], tuple[str, ...]]:
    return lambda config: names


def _fields(group: str, *names: str) -> Callable[[RunConfig], dict[str, Any]]:
    """Identity of the named fields of a group, of all of them when none is named."""

    def select(config: RunConfig) -> dict[str, Any]:
        values = identity(getattr(config, group))
        return {group: {name: values[name] for name in names or values}}

    return select


def _together(*parts: Callable[[RunConfig], dict[str, Any]]) -> Callable[[RunConfig], dict[str, Any]]:
    return lambda config: {key: value for part in parts for key, value in part(config).items()}


_BM25 = ("query_terms", "saturation", "length_normalization")


def _order_inputs(config: RunConfig) -> tuple[str, ...]:
    removal = () if isinstance(config.duplicates, NoDuplicates) else ("duplicates",)
    match config.ordering:
        case InContextOrdering() | InContextReleasedOrdering() | NearestOrdering():
            return ("corpus", *removal, "neighbours")
        case LexicalOrdering():
            return ("corpus", *removal, "lexical_neighbours")
        case ClusterOrdering():
            return ("corpus", *removal, "embeddings")
        case StandardOrdering() | SequentialOrdering():
            return ("corpus", *removal)


def _order_identity(config: RunConfig) -> dict[str, Any]:
    values = identity(config.ordering)
    seeded = {} if isinstance(config.ordering, SequentialOrdering) else _seeds(_seed_of("order"))(config)
    return {"ordering": {key: value for key, value in values.items() if key not in _BM25}} | seeded


def _layout_of_contexts(config: RunConfig) -> dict[str, Any]:
    """Which tokens may attend to which decides nothing about what a context holds."""
    return {"packing": {key: value for key, value in identity(config.packing).items() if key != "attention"}}


def _duplicates_inputs(config: RunConfig) -> tuple[str, ...]:
    return ("corpus", "neighbours") if isinstance(config.duplicates, EmbeddingDuplicates) else ("corpus",)


def _seeds(drawn: Callable[[RunConfig], Mapping[Part, int]]) -> Callable[[RunConfig], dict[str, Any]]:
    """The seeds that a stage draws by, wherever they are set."""
    return lambda config: {"seeds": dict(drawn(config))}


def _seed_of(part: Part) -> Callable[[RunConfig], Mapping[Part, int]]:
    return lambda config: {part: config.seed_of(part)}


def _scores_identity(config: RunConfig) -> dict[str, Any]:
    names = (
        "shots",
        "shots_of",
        "limit",
        "last_checkpoints",
        "translations",
        "beams",
        "length_penalty",
        "clean_overlap",
    )
    return _fields("evaluation", *names, "fewshot_seed")(config)


def _tasks_identity(config: RunConfig) -> dict[str, Any]:
    names = (
        "tasks",
        "texts",
        "shots",
        "shots_of",
        "limit",
        "continuation_items",
        "context_characters",
        "continuation_characters",
    )
    return _fields("evaluation", *names, "heldout_text", "concatenated", "fewshot_seed")(config)


STAGES: dict[str, Stage] = {
    stage.name: stage
    for stage in (
        Stage(
            "corpus",
            2,
            "paribus.corpus.stages:build",
            _fixed(),
            _fields("corpus"),
            "paribus.corpus.fingerprint:fingerprint",
            lambda config: config.corpus,
        ),
        Stage(
            "vocabulary",
            2,
            "paribus.tokenization.stages:build_vocabulary",
            lambda config: () if isinstance(config.tokenizer, ExistingTokenizer) else ("corpus",),
            _together(_fields("pretokenizer"), _fields("tokenizer")),
            "paribus.tokenization.fingerprint:fingerprint",
            lambda config: config.tokenizer if isinstance(config.tokenizer, ExistingTokenizer) else config.pretokenizer,
        ),
        Stage(
            "tokens",
            2,
            "paribus.tokenization.stages:build_tokens",
            _fixed("corpus", "vocabulary"),
            _fields("encoder"),
        ),
        Stage(
            "embeddings",
            2,
            "paribus.ordering.embeddings_stage:build",
            _fixed("corpus"),
            _fields("embedder"),
            "paribus.ordering.embed.fingerprint:fingerprint",
            lambda config: config.embedder,
        ),
        Stage(
            "neighbours",
            2,
            "paribus.ordering.neighbours_stage:build",
            _fixed("embeddings"),
            _fields("neighbours"),
        ),
        Stage(
            "lexical_neighbours",
            1,
            "paribus.ordering.lexical_stage:build",
            _fixed("corpus"),
            _fields("ordering", "neighbours", *_BM25),
        ),
        Stage(
            "duplicates",
            1,
            "paribus.ordering.duplicates_stage:build",
            _duplicates_inputs,
            _fields("duplicates"),
        ),
        Stage("order", 2, "paribus.ordering.order_stage:build", _order_inputs, _order_identity),
        Stage(
            "contexts",
            3,
            "paribus.ordering.contexts_stage:build",
            _fixed("tokens", "order", "embeddings"),
            _together(
                _layout_of_contexts, _fields("model", "context_length", "context_bytes"), _seeds(_seed_of("contexts"))
            ),
        ),
        Stage(
            "checkpoints",
            5,
            "paribus.training.stages:build",
            _fixed("tokens", "order"),
            _together(
                *map(_fields, ("model", "start", "budget", "training", "packing")),
                _seeds(training_seeds),
            ),
            "paribus.training.start.files:fingerprint",
            lambda config: config.start,
        ),
        Stage(
            "tasks",
            3,
            "paribus.evaluation.stages:build_tasks",
            _fixed("corpus"),
            _tasks_identity,
            "paribus.evaluation.fingerprint:fingerprint",
            lambda config: config.evaluation,
        ),
        Stage(
            "prompts",
            1,
            "paribus.evaluation.prompts:build_prompts",
            _fixed("tokens", "tasks"),
            _together(_fields("evaluation", "shots", "shots_of"), _fields("model", "context_length", "context_bytes")),
        ),
        Stage(
            "scores",
            6,
            "paribus.evaluation.stages:build_scores",
            lambda config: (
                "corpus",
                "tasks",
                *(("prompts",) if prompted(config.evaluation.tasks) else ()),
                "checkpoints",
            ),
            _scores_identity,
        ),
        Stage(
            "finetuning_data",
            1,
            "paribus.finetuning.stages:build_data",
            _fixed(),
            _fields("finetuning", "tasks", "answer_characters", "document_characters", "limit"),
            "paribus.finetuning.files:fingerprint",
            lambda config: config.finetuning,
        ),
        Stage(
            "finetuned",
            2,
            "paribus.finetuning.stages:build",
            _fixed("finetuning_data", "checkpoints"),
            _together(_fields("finetuning"), _seeds(finetuning_seeds)),
        ),
    )
}
SCORES, FINETUNED = "scores", "finetuned"


def run_targets(config: RunConfig) -> tuple[str, ...]:
    """The stages that a run is made for, and before them what should fail before anything is trained."""
    return (SCORES,) if isinstance(config.finetuning, NoFinetuning) else ("finetuning_data", SCORES, FINETUNED)
