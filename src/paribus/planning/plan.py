"""What a command would run: unique stages, and the tokens, text, parameters, FLOPs, disk and hours they take.

Figures are exact where an artefact already says them and estimated, and marked so, where it does not. Where a packing
pads, the documents decide how much is read a step: what is said before training is as if contexts were full.
Nothing is read but records and nothing heavy is imported; a probe, where one is wanted, is a process of its own.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from paribus.config.checkpoint_steps import kept_steps, too_few_checkpoints
from paribus.config.groups.budget import EqualTextBudget, EqualTokensBudget
from paribus.config.groups.packing import PairPacking, pads, within_documents
from paribus.config.groups.plan import PlanConfig
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError
from paribus.modeling.memory import training_memory, training_setting
from paribus.modeling.parameters import artefact_bytes, parameter_count
from paribus.pipeline.equality import undeclared
from paribus.pipeline.graph import Node, to_make
from paribus.pipeline.making import beginning
from paribus.pipeline.making.devices import Devices
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepare import repeated
from paribus.pipeline.prepared_run import PreparedRun
from paribus.pipeline.record.run_names import labels
from paribus.pipeline.show.remaining import unique_nodes
from paribus.planning.encoded import Encoded
from paribus.planning.hours import Hours, total, wall_hours
from paribus.planning.length import (
    Length,
    known_text,
    known_vocabulary_size,
    planned_length,
    sized,
    trained_length,
    trained_sizes,
)
from paribus.planning.machine import counted, trains_on_gpu
from paribus.planning.remarks.judgement import remarks_on_judgement
from paribus.planning.remarks.orders import remarks_on_orders
from paribus.planning.throughput import Say, Throughput, Throughputs
from paribus.store.claims import read_holder
from paribus.training.start.first import FIRST


@dataclass(frozen=True)
class PlannedStage:
    """One artefact: its state is cached, missing, failed, running, or unknown when its source files are not here."""

    name: str
    key: str
    state: str
    runs: int


@dataclass(frozen=True)
class PlannedRun:
    """What one run costs; `length.estimated` names the figures that are not exact yet."""

    label: str
    training: PlannedStage
    length: Length
    parameters: int
    hours: Hours | None
    """Device-hours of its training; None where the speed is not known."""
    throughput: Throughput
    global_batch: int
    disk_bytes: int
    memory: int | None
    """Bytes of one training process on its device; None where there is no formula."""
    gpu: bool
    """Whether that device is taken to be a GPU."""
    padded: bool
    """Whether contexts may be padded, so that a step may read less than is estimated."""
    max_epochs: float | None
    text_source: str = ""
    """What its bytes a token are estimated from; empty where they were counted."""
    too_few: str | None = None
    """What is wrong where its steps leave fewer checkpoints than are to be scored."""
    steps_at_least: bool = False
    """Whether a budget of tokens or text takes more steps where contexts are padded."""
    trains: bool = True
    """Whether its training is among what is planned."""
    pairs: bool = False
    """Whether rows are pairs."""
    full_pairs: bool = False
    """Whether these are taken to be as long as the context, since their corpus is not there yet."""

    @property
    def trained(self) -> bool:
        """Whether nothing of its training is left."""
        return self.training.state == "cached"

    @property
    def too_few_for_sure(self) -> bool:
        """Whether its steps, which are then no estimate, leave too few checkpoints."""
        return self.too_few is not None and "steps" not in self.length.estimated

    @property
    def refused(self) -> bool:
        """Whether its budget takes more epochs than it may."""
        epochs = self.length.epochs
        return self.max_epochs is not None and epochs is not None and epochs > self.max_epochs


@dataclass(frozen=True)
class Plan:
    """Everything a command would do."""

    stages: tuple[PlannedStage, ...]
    runs: tuple[PlannedRun, ...]
    firsts: tuple[PlannedRun, ...]
    """The first trainings of runs that go on from one of their own."""
    config: PlanConfig
    devices: int
    """At hand, for wall time."""
    encoded: Encoded
    """Room for what is encoded before training."""
    until: str | None
    """The last stage that is planned, where that is not the last of the runs."""
    problems: tuple[str, ...]
    judgement: tuple[str, ...]
    """What a table of these runs could not judge."""
    refusals: tuple[ConfigurationError, ...]
    """Why `paribus run` would refuse these runs together, which a plan may compare."""

    @property
    def would_begin(self) -> bool:
        """Whether `paribus run` would begin here, where all is there that it needs and it refuses no run."""
        wrong = any(run.refused or run.too_few_for_sure for run in self.runs)
        return not (self.problems or self.refusals or wrong)

    @property
    def trainings(self) -> list[PlannedRun]:
        """A run of each training that is still to be done, each once."""
        unique = {run.training.key: run for run in (*self.firsts, *self.runs)}
        return [run for run in unique.values() if run.trains and not run.trained]

    @property
    def flops(self) -> float:
        """Training FLOPs that are still to be spent, each training once."""
        return sum(run.length.flops_left for run in self.trainings)

    @property
    def device_hours(self) -> Hours | None:
        """Device-hours for those FLOPs; None where the speed of one of them is not known."""
        hours = [run.hours for run in self.trainings]
        return None if None in hours else total(part for part in hours if part is not None)

    @property
    def wall_hours(self) -> float | None:
        """Hours until all trainings are done on `devices` devices."""
        jobs = [(run.hours.value, run.global_batch) for run in self.trainings if run.hours is not None]
        return wall_hours(jobs, self.devices) if len(jobs) == len(self.trainings) else None

    @property
    def disk_bytes(self) -> int:
        """Bytes of checkpoints and optimizer states still to be written."""
        return sum(run.disk_bytes for run in self.trainings)


def make_plan(runs: Sequence[PreparedRun], say: Say = lambda text: None) -> Plan:
    """The plan of prepared runs; `say` is told of probes, which take their time."""
    config = runs[0].job.config
    root = OutputRoot.of(config)
    needed = Counter(node.place for run in runs for node in run.wanted.values())
    nodes = unique_nodes(runs)
    left = {run.wanted[name].place for run in runs for name in to_make(run.wanted, root.store)}
    stages = {node.place: PlannedStage(*node.place, _state(node, root, left), needed[node.place]) for node in nodes}
    throughputs = Throughputs(root, say)
    named = list(zip(labels(runs), runs, strict=True))
    planned = [_run(label, run, stages.get(run.nodes["training"].place), throughputs, root) for label, run in named]
    firsts = [
        _run(label, first, stages.get(first.nodes["training"].place), throughputs, root)
        for label, run in named
        if (first := _first(run)) is not None
    ]
    missing = {key for key, stage in stages.items() if stage.state != "cached"}
    return Plan(
        stages=tuple(stages.values()),
        runs=tuple(planned),
        firsts=tuple(firsts),
        config=config.plan,
        devices=config.plan.devices or _processes(config),
        encoded=Encoded.of(runs, missing, root),
        until=config.until,
        problems=tuple(sorted({node.problem for node in nodes if node.problem} | _unfit_here(runs))),
        judgement=(*remarks_on_orders(runs, root), *remarks_on_judgement(runs, root)),
        refusals=tuple(error for error in (repeated(runs), undeclared(runs)) if error),
    )


def _first(run: PreparedRun) -> PreparedRun | None:
    """The first training of a run as the training of a run of its own; None for a run without one."""
    first = run.nodes.get(FIRST)
    if first is None:
        return None
    return replace(run, job=replace(run.job, config=first.config), nodes={**run.nodes, "training": first})


def _unfit_here(runs: Sequence[PreparedRun]) -> set[str]:
    """What of devices, processes and nodes the missing stages of runs made here ask for and this machine lacks, and why
    no run could be begun.
    """
    devices, here = Devices(), [run for run in runs if run.here]
    absent = [problem for run in here for problem in devices.problems(run.job.config, run.wanted)]
    return {f"{path}: {what}" for path, what in (*absent, *beginning.problems(runs))}


def _state(node: Node, root: OutputRoot, left: Collection[tuple[str, str]]) -> str:
    if node.problem:
        return "unknown"
    if node.place not in left:
        return "cached"
    if read_holder(root.store.claim_path(*node.place)):
        return "running"
    return "failed" if root.failure(node).is_file() else "missing"


def _absent(node: Node, root: OutputRoot) -> set[tuple[str, str]]:
    """A node that is not planned, where it has no artefact."""
    return set() if root.store.find(*node.place) else {node.place}


def _run(
    label: str, run: PreparedRun, planned: PlannedStage | None, throughputs: Throughputs, root: OutputRoot
) -> PlannedRun:
    """What a run costs; its training is None where that is not planned, and then no speed is looked for."""
    config, node = replace(run.job.config, training=counted(run.job.config.training)), run.nodes["training"]
    stage = planned or PlannedStage(*node.place, _state(node, root, _absent(node, root)), 0)
    size = known_vocabulary_size(config, run.nodes["vocabulary"], root)
    vocabulary, parameters = size.value, parameter_count(config.model, size.value)
    trained = root.store.find("training", stage.key)
    pairs = full_pairs = isinstance(config.packing, PairPacking)
    if trained:
        result, source = trained.record()["result"], ""
        config = trained_sizes(config, result)
        length, throughput = trained_length(result), Throughput(None, "")
        parameters = int(result["parameters"])
        hours: Hours | None = Hours(float(result["device_hours"]))
    else:
        text = known_text(run, root)
        source, length = text.source, planned_length(config, size, text)
        full_pairs = pairs and text.pair is None
        config = sized(config, text)
        throughput = throughputs.of(config, vocabulary) if planned else Throughput(None, "")
        hours = throughput.hours(length.flops_left)
    return PlannedRun(
        label=label,
        training=stage,
        length=length,
        parameters=parameters,
        hours=hours,
        throughput=throughput,
        global_batch=config.training.global_batch,
        disk_bytes=artefact_bytes(config.model, vocabulary, _kept(config, length)),
        memory=_memory(config, vocabulary),
        gpu=_gpu(config),
        padded=pads(config.packing) and not pairs,
        max_epochs=config.budget.max_epochs,
        text_source=source,
        too_few=_too_few(config, length.steps),
        steps_at_least=isinstance(config.budget, EqualTokensBudget | EqualTextBudget),
        trains=planned is not None,
        pairs=pairs,
        full_pairs=full_pairs,
    )


def _kept(config: RunConfig, length: Length) -> int:
    """Checkpoints that stay, none of them of the training that is gone on from."""
    return sum(step > length.steps_before for step in kept_steps(config.training, length.steps))


def _too_few(config: RunConfig, steps: int) -> str | None:
    """What is wrong where so many steps leave fewer checkpoints than the evaluation takes, by its path."""
    few = too_few_checkpoints(config.training, steps, config.evaluation.checkpoints_read)
    return few and f"{config.evaluation.checkpoints_path}: {few}"


def _gpu(config: RunConfig) -> bool:
    """Every device with a known peak is a GPU."""
    return config.plan.device is not None or trains_on_gpu(config.training)


def _processes(config: RunConfig) -> int:
    training = counted(config.training)
    return training.processes * training.nodes


def _memory(config: RunConfig, vocabulary: int) -> int | None:
    """With training.micro_batch as it is configured; precision=auto is bf16 on a GPU."""
    gpu, training = _gpu(config), config.training
    precision = ("bf16" if gpu else "fp32") if training.precision == "auto" else training.precision
    how = training_setting(training, precision, _processes(config), gpu=gpu, documents=within_documents(config.packing))
    memory = training_memory(config.model, vocabulary, how)
    return memory.device if memory else None
