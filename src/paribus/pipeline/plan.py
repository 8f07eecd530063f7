"""What a command would run: unique stages, and the tokens, text, parameters, FLOPs and disk they take.

Figures are exact where an artefact already says them and estimated, and marked so, where it does not. Where a packing
pads, steps and FLOPs depend on the documents: what is said before training is a lower bound, as if contexts were full.
Nothing is read but records and nothing heavy is imported.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.config.groups.budget import EqualTokensBudget
from paribus.config.groups.packing import pads
from paribus.config.groups.tokenization import BytesTokenizer, ExistingTokenizer
from paribus.config.schema import RunConfig
from paribus.errors import DataError
from paribus.modeling.counts import artefact_bytes, parameter_count, training_flops
from paribus.pipeline.equality import undeclared
from paribus.pipeline.graph import Node
from paribus.pipeline.layout import Layout
from paribus.pipeline.prepare import PreparedRun, labels
from paribus.pipeline.remaining import unique_nodes
from paribus.reporting.equality import FairnessError
from paribus.store.claim import read_holder

BYTES_PER_TOKEN = 4.3
"""English text with a 32K vocabulary; used where the real number is not known yet."""
BYTE_UNITS = 256


@dataclass(frozen=True)
class PlannedStage:
    """One artefact: its state is cached, missing, failed, running, or unknown when its source files are not here."""

    name: str
    key: str
    state: str
    runs: int


@dataclass(frozen=True)
class PlannedRun:
    """What one run costs; `estimated` names the figures that are not exact yet."""

    label: str
    checkpoints: PlannedStage
    tokens: int
    text_bytes: int
    steps: int
    parameters: int
    flops: float
    disk_bytes: int
    padded: bool
    """Whether contexts may be padded, so that estimated steps and FLOPs are the least it can take."""
    estimated: frozenset[str]


@dataclass(frozen=True)
class Plan:
    """Everything a command would do."""

    stages: tuple[PlannedStage, ...]
    runs: tuple[PlannedRun, ...]
    device_tflops: float
    problems: tuple[str, ...]
    unfair: FairnessError | None
    """Why the comparison table, and so `paribus run`, would refuse these runs."""

    def _unique(self, *, only_missing: bool) -> list[PlannedRun]:
        unique = {run.checkpoints.key: run for run in self.runs}
        return [run for run in unique.values() if not (only_missing and run.checkpoints.state == "cached")]

    @property
    def flops(self) -> float:
        """Training FLOPs that are still to be spent, each training once."""
        return sum(run.flops for run in self._unique(only_missing=True))

    @property
    def device_hours(self) -> float:
        """Hours of one device for those FLOPs at `engine.device_tflops`."""
        return self.flops / (self.device_tflops * 1e12) / 3600

    @property
    def disk_bytes(self) -> int:
        """Bytes of checkpoints and optimizer states still to be written."""
        return sum(run.disk_bytes for run in self._unique(only_missing=True))


def make_plan(runs: Sequence[PreparedRun]) -> Plan:
    """The plan of prepared runs."""
    config = runs[0].job.config
    layout = Layout.of(config)
    needed = Counter((node.name, node.key) for run in runs for node in run.nodes.values())
    stages = {
        (node.name, node.key): PlannedStage(node.name, node.key, _state(node, layout), needed[node.name, node.key])
        for node in unique_nodes(runs)
    }
    planned = [
        _run(label, run, stages[("checkpoints", run.nodes["checkpoints"].key)], layout)
        for label, run in zip(labels(runs), runs, strict=True)
    ]
    problems = {node.problem for run in runs for node in run.nodes.values() if node.problem}
    return Plan(
        tuple(stages.values()), tuple(planned), config.engine.device_tflops, tuple(sorted(problems)), undeclared(runs)
    )


def _state(node: Node, layout: Layout) -> str:
    if node.problem:
        return "unknown"
    if layout.store.find(node.name, node.key):
        return "cached"
    if read_holder(layout.store.claim_path(node.name, node.key)):
        return "running"
    return "failed" if layout.failure(node).is_file() else "missing"


def _run(label: str, run: PreparedRun, stage: PlannedStage, layout: Layout) -> PlannedRun:
    config = run.job.config
    vocabulary = _vocabulary_size(config)
    trained = layout.store.find("checkpoints", run.nodes["checkpoints"].key)
    if trained:
        training = _trained(trained.record()["result"])
    else:
        training = _planned(config, vocabulary, _bytes_per_token(run, layout))
    return PlannedRun(
        label=label,
        checkpoints=stage,
        tokens=training.tokens,
        text_bytes=training.text_bytes,
        steps=training.steps,
        parameters=parameter_count(config.model, vocabulary),
        flops=training.flops,
        disk_bytes=artefact_bytes(config.model, vocabulary, config.training.keep_checkpoints),
        padded=pads(config.packing),
        estimated=training.estimated,
    )


def _vocabulary_size(config: RunConfig) -> int:
    tokenizer = config.tokenizer
    if isinstance(tokenizer, ExistingTokenizer):
        return _existing_size(tokenizer) or config.scale.vocab_size
    if isinstance(tokenizer, BytesTokenizer):
        return BYTE_UNITS + len(tokenizer.special_tokens)
    return tokenizer.vocab_size


def _existing_size(tokenizer: ExistingTokenizer) -> int | None:
    """None where it is not here, which the plan says among its problems."""
    from paribus.tokenization.existing import vocabulary_size

    try:
        return vocabulary_size(Path(tokenizer.path))
    except DataError:
        return None


def _bytes_per_token(run: PreparedRun, layout: Layout) -> float:
    if isinstance(run.job.config.tokenizer, BytesTokenizer):
        return 1.0
    encoded = layout.store.find("tokens", run.nodes["tokens"].key)
    if encoded is None:
        return BYTES_PER_TOKEN
    result = encoded.record()["result"]
    return float(result["bytes_per_token"])


@dataclass(frozen=True)
class _Training:
    """How long a training is, and which of its figures are estimated."""

    tokens: int
    text_bytes: int
    steps: int
    flops: float
    estimated: frozenset[str]


def _trained(result: dict[str, Any]) -> _Training:
    return _Training(
        tokens=int(result["tokens"]),
        text_bytes=int(result["text_bytes"]),
        steps=int(result["steps"]),
        flops=float(result["flops"]),
        estimated=frozenset(),
    )


def _planned(config: RunConfig, vocabulary: int, bytes_per_token: float) -> _Training:
    """A training that has not run, as if every context were full."""
    budget, step_tokens = config.budget, config.training.global_batch * config.model.context_length
    length = frozenset({"tokens", "steps", "flops"})
    if isinstance(budget, EqualTokensBudget):
        steps = -(-budget.tokens // step_tokens)
        text, estimated = round(steps * step_tokens * bytes_per_token), frozenset({"text_bytes"})
        estimated |= length if pads(config.packing) else frozenset()
    else:
        steps = max(1, round(budget.text / bytes_per_token / step_tokens))
        text, estimated = budget.text, length
    flops = training_flops(config.model, vocabulary, steps * step_tokens)
    return _Training(steps * step_tokens, text, steps, float(flops), estimated)
