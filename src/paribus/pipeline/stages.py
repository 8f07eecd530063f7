"""The closed list of stages: what each reads, what of the configuration it depends on, and the function that runs it.

A run makes inputs in the order they are listed here, so what may fail cheaply stands before what is dear: the tasks
before the checkpoints.

`code_version` is raised when a change alters a stage's output; pinned digests of each stage's output on a tiny input
make a forgotten change a failing test.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.config.groups.ordering import InContextOrdering
from paribus.config.identity import identity
from paribus.config.schema import RunConfig
from paribus.pipeline.context import JSON, StageContext

Fingerprint = Callable[[Any, Path], dict[str, JSON]]


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

    def take_fingerprint(self, config: RunConfig, cache: Path) -> dict[str, JSON]:
        """Identity of the files outside the configuration; DataError when they are missing."""
        if self.fingerprint is None or self.fingerprinted is None:
            return {}
        function: Fingerprint = _load(self.fingerprint)
        return function(self.fingerprinted(config), cache)


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


def _order_inputs(config: RunConfig) -> tuple[str, ...]:
    return ("corpus", "neighbours") if isinstance(config.ordering, InContextOrdering) else ("corpus",)


def _order_identity(config: RunConfig) -> dict[str, Any]:
    values = identity(config.ordering)
    upstream = ("embedder", "retrieved_neighbours", "index", "probes")
    return {"ordering": {key: value for key, value in values.items() if key not in upstream}, "seed": config.seed}


def _embedder(config: RunConfig) -> dict[str, Any]:
    return {"embedder": identity(config.ordering)["embedder"]}


def _seed(config: RunConfig) -> dict[str, Any]:
    return {"seed": config.seed}


def _tasks_identity(config: RunConfig) -> dict[str, Any]:
    names = ("tasks", "shots", "limit", "continuation_items", "context_characters", "continuation_characters")
    return _fields("evaluation", *names, "heldout_text", "fewshot_seed")(config)


STAGES: dict[str, Stage] = {
    stage.name: stage
    for stage in (
        Stage(
            "corpus",
            1,
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
            _fixed("corpus"),
            _together(_fields("pretokenizer"), _fields("tokenizer")),
            "paribus.tokenization.fingerprint:fingerprint",
            lambda config: config.pretokenizer,
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
            1,
            "paribus.ordering.stages:build_embeddings",
            _fixed("corpus"),
            _embedder,
            "paribus.ordering.fingerprint:fingerprint",
            lambda config: config.ordering,
        ),
        Stage(
            "neighbours",
            1,
            "paribus.ordering.stages:build_neighbours",
            _fixed("embeddings"),
            _fields("ordering", "retrieved_neighbours", "index", "probes"),
        ),
        Stage("order", 1, "paribus.ordering.stages:build_order", _order_inputs, _order_identity),
        Stage(
            "checkpoints",
            2,
            "paribus.training.stages:build",
            _fixed("tokens", "order"),
            _together(_fields("model"), _fields("budget"), _fields("training"), _seed),
        ),
        Stage(
            "tasks",
            1,
            "paribus.evaluation.stages:build_tasks",
            _fixed("corpus"),
            _tasks_identity,
            "paribus.evaluation.fingerprint:fingerprint",
            lambda config: config.evaluation,
        ),
        Stage(
            "scores",
            2,
            "paribus.evaluation.stages:build_scores",
            _fixed("corpus", "tasks", "checkpoints"),
            _fields("evaluation", "shots", "limit", "last_checkpoints", "fewshot_seed"),
        ),
    )
}
