"""What a command would run: unique stages, and the tokens, text, parameters, FLOPs and disk they take.

Figures are exact where an artefact already says them and estimated, and marked so, where it does not. Where a packing
pads, the documents decide how much is read a step: what is said before training is as if contexts were full.
Nothing is read but records and nothing heavy is imported.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.config.groups.budget import EqualFlopsBudget, EqualStepsBudget, EqualTextBudget, EqualTokensBudget
from paribus.config.groups.packing import PairPacking, pads, within_documents
from paribus.config.groups.tokenization import BytesTokenizer, ExistingTokenizer, vocabulary_size
from paribus.config.schema import RunConfig
from paribus.errors import DataError
from paribus.modeling.counts import artefact_bytes, parameter_count, training_flops
from paribus.modeling.memory import training_memory, training_setting
from paribus.pipeline.equality import undeclared
from paribus.pipeline.graph import Node
from paribus.pipeline.layout import Layout
from paribus.pipeline.machine import has_gpu
from paribus.pipeline.prepare import PreparedRun, labels
from paribus.pipeline.remaining import unique_nodes
from paribus.reporting.equality import FairnessError
from paribus.store.claim import read_holder

BYTES_PER_TOKEN = 4.3
"""English text with a 32K vocabulary; used where the real number is not known yet."""


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
    epochs: float | None
    """None where nothing says yet how much text there is."""
    parameters: int
    flops: float
    device_hours: float
    disk_bytes: int
    memory: int | None
    """Bytes of one training process on its device; None where there is no formula."""
    gpu: bool
    """Whether that device is taken to be a GPU."""
    padded: bool
    """Whether contexts may be padded, so that a step may read less than is estimated."""
    max_epochs: float | None
    estimated: frozenset[str]
    pairs: bool = False
    """Whether rows are pairs, which are taken to be as long as the context."""

    @property
    def refused(self) -> bool:
        """Whether its budget takes more epochs than it may."""
        return self.max_epochs is not None and self.epochs is not None and self.epochs > self.max_epochs


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
        return _hours(self.flops, self.device_tflops)

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
    training = _trained(trained.record()["result"]) if trained else _planned(config, vocabulary, _text(run, layout))
    return PlannedRun(
        label=label,
        checkpoints=stage,
        tokens=training.tokens,
        text_bytes=training.text_bytes,
        steps=training.steps,
        epochs=training.epochs,
        parameters=parameter_count(config.model, vocabulary),
        flops=training.flops,
        device_hours=training.device_hours,
        disk_bytes=artefact_bytes(config.model, vocabulary, config.training.keep_checkpoints),
        memory=_memory(config, vocabulary),
        gpu=has_gpu(config.training),
        padded=pads(config.packing) and not isinstance(config.packing, PairPacking),
        max_epochs=config.budget.max_epochs,
        estimated=training.estimated,
        pairs=isinstance(config.packing, PairPacking),
    )


def _memory(config: RunConfig, vocabulary: int) -> int | None:
    """With training.micro_batch as it is configured; precision=auto is bf16 on a GPU."""
    gpu, training = has_gpu(config.training), config.training
    precision = ("bf16" if gpu else "fp32") if training.precision == "auto" else training.precision
    processes = max(1, training.processes) * max(1, training.nodes)
    how = training_setting(training, precision, processes, gpu=gpu, documents=within_documents(config.packing))
    memory = training_memory(config.model, vocabulary, how)
    return memory.device if memory else None


def _vocabulary_size(config: RunConfig) -> int:
    """That of the configuration; of an existing tokenizer that of its files, the scale's where they are not here."""
    tokenizer = config.tokenizer
    if not isinstance(tokenizer, ExistingTokenizer):
        return vocabulary_size(tokenizer)
    from paribus.tokenization.existing import vocabulary_size as size_of_files

    try:
        return size_of_files(Path(tokenizer.path))
    except DataError:
        return config.scale.vocab_size


@dataclass(frozen=True)
class _Text:
    """What is known of the text that a run would read."""

    bytes_per_token: float
    """Of predicted tokens, those that end documents among them."""
    epoch_bytes: float | None
    """What one pass over the ordered documents reads; None where there is no corpus yet."""


def _text(run: PreparedRun, layout: Layout) -> _Text:
    results = {name: _result(run, layout, name) for name in ("corpus", "tokens", "order")}
    corpus, encoded, order = results["corpus"], results["tokens"], results["order"]
    bytes_per_token = 1.0 if isinstance(run.job.config.tokenizer, BytesTokenizer) else BYTES_PER_TOKEN
    if encoded:
        # Of pairs, sources too have an end-of-document token and are taken to be as long as targets.
        ends = encoded["documents"] * (2 if "source_tokens" in encoded else 1)
        bytes_per_token = encoded["bytes"] / (encoded["tokens"] + ends)
    # Duplicates that were removed and neighbours that repeat are taken to be as long as other documents.
    read = order["entries"] / (order["documents"] + order["removed"]) if order else 1.0
    training = corpus["train"] if corpus else {}
    predicted = training.get("target_bytes", training.get("bytes"))
    return _Text(bytes_per_token, None if predicted is None else predicted * read)


def _result(run: PreparedRun, layout: Layout, stage: str) -> dict[str, Any] | None:
    found = layout.store.find(stage, run.nodes[stage].key)
    return found.record()["result"] if found else None


@dataclass(frozen=True)
class _Training:
    """How long a training is, and which of its figures are estimated."""

    tokens: int
    text_bytes: int
    steps: int
    epochs: float | None
    flops: float
    device_hours: float
    estimated: frozenset[str]


def _trained(result: dict[str, Any]) -> _Training:
    return _Training(
        tokens=int(result["tokens"]),
        text_bytes=int(result["text_bytes"]),
        steps=int(result["steps"]),
        epochs=float(result["epochs"]),
        flops=float(result["flops"]),
        device_hours=float(result["device_hours"]),
        estimated=frozenset(),
    )


def _planned(config: RunConfig, vocabulary: int, text: _Text) -> _Training:
    """A training that has not run, as if every context were full."""
    step_tokens = config.training.global_batch * config.model.context_length
    step_flops = training_flops(config.model, vocabulary, step_tokens, source_tokens=step_tokens)
    steps = _planned_steps(config, step_tokens, step_flops, text)
    tokens, flops = steps * step_tokens, float(steps * step_flops)
    text_bytes = config.budget.text if isinstance(config.budget, EqualTextBudget) else tokens * text.bytes_per_token
    return _Training(
        tokens=tokens,
        text_bytes=round(text_bytes),
        steps=steps,
        epochs=None if text.epoch_bytes is None else text_bytes / max(1.0, text.epoch_bytes),
        flops=flops,
        device_hours=_hours(flops, config.engine.device_tflops),
        estimated=_estimated(config),
    )


def _planned_steps(config: RunConfig, step_tokens: int, step_flops: int, text: _Text) -> int:
    match config.budget:
        case EqualTokensBudget(tokens=tokens):
            return -(-tokens // step_tokens)
        case EqualTextBudget(text=text_bytes):
            return max(1, round(text_bytes / text.bytes_per_token / step_tokens))
        case EqualFlopsBudget(flops=flops):
            return -(-flops // step_flops)
        case EqualStepsBudget(steps=steps):
            return steps


def _estimated(config: RunConfig) -> frozenset[str]:
    """Figures of an untrained run that are not exact: those that documents, packing or the device decide."""
    match config.budget:
        case EqualTextBudget():
            decided = {"tokens", "steps", "flops"}
        case EqualTokensBudget():
            decided = {"text_bytes"} | ({"tokens", "steps", "flops"} if pads(config.packing) else set())
        case EqualFlopsBudget() | EqualStepsBudget():
            decided = {"text_bytes"} | ({"tokens"} if pads(config.packing) else set())
    if isinstance(config.packing, PairPacking):
        decided.add("steps" if isinstance(config.budget, EqualFlopsBudget) else "flops")
    return frozenset(decided | {"epochs", "device_hours"})


def _hours(flops: float, device_tflops: float) -> float:
    """Hours of one device for FLOPs at the TFLOP/s it achieves."""
    return flops / (device_tflops * 1e12) / 3600
