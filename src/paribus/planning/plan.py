"""Plan of a command: unique stages, and the tokens, text, parameters, FLOPs, disk and hours they take.

Figures are exact where an artefact records them, and else estimated and marked so. Where a packing pads, the documents
decide how much a step reads: figures before training assume full contexts. Only records are read and nothing heavy is
imported; a probe, where one is requested, is a process of its own.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from paribus.config.groups.evaluation import table_of
from paribus.config.groups.execution import PlanConfig
from paribus.config.groups.ordering import PairPacking, pads, within_documents
from paribus.config.groups.tokenization import draws_of
from paribus.config.groups.training import EqualTextBudget, saved_steps, too_few_checkpoints
from paribus.config.identity import digest
from paribus.config.schema import RunConfig
from paribus.config.units import LEAST_SAMPLE, format_count, format_hours, rounded_up_size
from paribus.errors import ConfigurationError
from paribus.evaluation.benchmarks import CONTINUATION
from paribus.evaluation.heldout import MIN_PASSAGES
from paribus.modeling.memory import training_memory, training_setting
from paribus.modeling.parameters import artefact_bytes, parameter_count
from paribus.ordering.search_plan import DEFAULT_PROBES, FEWEST_QUANTIZED, plan_search
from paribus.pipeline.devices import HERE, Devices
from paribus.pipeline.graph import Node, few_documents, to_make
from paribus.pipeline.prepare import VocabularyProblems, check_root_and_launcher, same_run_twice, vocabulary_problems
from paribus.pipeline.prepared import PreparedRun, factor_labels, labels, run_names, undeclared, unique_nodes
from paribus.pipeline.root import OutputRoot
from paribus.planning.length import (
    Length,
    corpus_text,
    known_text,
    known_vocabulary_size,
    planned_length,
    sized,
    trained_length,
    trained_sizes,
)
from paribus.planning.speed import (
    Say,
    Speed,
    Throughputs,
    trains_on_gpu,
    with_device_counts,
)
from paribus.reporting.measures import SEEDS_TO_JUDGE, baselines
from paribus.store.artifacts import Artifact
from paribus.store.claims import read_holder
from paribus.training.start import FIRST


@dataclass(frozen=True)
class PlannedStage:
    """One artefact: its state is cached, missing, failed, running, or unknown when its source files are not here."""

    name: str
    key: str
    state: str
    runs: int


@dataclass(frozen=True)
class PlannedRun:
    """Cost of one run; `length.estimated` names the figures that are not exact yet."""

    label: str
    training: PlannedStage
    length: Length
    parameters: int
    hours: float | None
    """Device-hours of its training; None where the speed is not known."""
    throughput: Speed
    disk_bytes: int
    memory: int | None
    """Bytes of one training process on its device; None where there is no formula."""
    gpu: bool
    """True if that device is assumed to be a GPU."""
    full: bool
    """True if contexts that may be padded, or rows of pairs without a corpus yet, are assumed to be full."""
    max_epochs: float | None
    text_source: str = ""
    """Basis of the estimate of its bytes a token; empty where they were counted."""
    too_few: str | None = None
    """Problem where its steps leave fewer checkpoints than are to be scored."""
    trains: bool = True
    """True if its training is among the planned stages."""

    @property
    def trained(self) -> bool:
        """True if nothing of its training is left."""
        return self.training.state == "cached"

    @property
    def too_few_for_sure(self) -> bool:
        """True if its steps, which are known exactly, leave too few checkpoints."""
        return self.too_few is not None and "steps" not in self.length.estimated

    @property
    def refused(self) -> bool:
        """True if its budget takes more epochs than it may."""
        epochs = self.length.epochs
        return self.max_epochs is not None and epochs is not None and epochs > self.max_epochs


@dataclass(frozen=True)
class Plan:
    """Everything a command would do."""

    stages: tuple[PlannedStage, ...]
    runs: tuple[PlannedRun, ...]
    firsts: tuple[PlannedRun, ...]
    """The first trainings of runs that resume one of their own."""
    config: PlanConfig
    devices: int
    """Available devices; hours of wall time are device-hours divided by their number."""
    tokens_bytes: int
    """Disk space of missing artefacts `tokens` whose corpus exists, as if BPE-dropout made no more tokens than BPE."""
    until: str | None
    """The last stage that is planned, where that is not the last of the runs."""
    problems: tuple[str, ...]
    judgement: tuple[str, ...]
    """Remarks on what keeps a table from judging or a run from finishing, and on orders and long searches."""
    refusals: tuple[ConfigurationError, ...]
    """Errors with which `paribus run` would refuse these runs together, which a plan may compare."""

    @property
    def would_begin(self) -> bool:
        """True if `paribus run` would begin here: it has all that it needs and refuses no run."""
        refused = any(run.refused or run.too_few_for_sure for run in self.runs)
        return not (self.problems or self.refusals or refused)

    @property
    def trainings(self) -> list[PlannedRun]:
        """One run for each training that is still to be done."""
        unique = {run.training.key: run for run in (*self.firsts, *self.runs)}
        return [run for run in unique.values() if run.trains and not run.trained]

    @property
    def flops(self) -> float:
        """Training FLOPs that are still to be spent, each training once."""
        return sum(run.length.flops_left for run in self.trainings)

    @property
    def device_hours(self) -> float | None:
        """Device-hours of `trainings`; None where the speed of one of them is not known."""
        hours = [run.hours for run in self.trainings]
        return None if None in hours else sum(part for part in hours if part is not None)

    @property
    def disk_bytes(self) -> int:
        """Bytes of checkpoints and optimizer states still to be written."""
        return sum(run.disk_bytes for run in self.trainings)


def make_plan(runs: Sequence[PreparedRun], say: Say = lambda text: None) -> Plan:
    """The plan of prepared runs; `say` gets a message before each probe and before a wait for a GPU."""
    config = runs[0].job.config
    root = OutputRoot.of(config)
    needed = Counter(node.place for run in runs for node in run.required.values())
    nodes = unique_nodes(runs)
    pending = {run.required[name].place for run in runs for name in to_make(run.required, root.store)}
    stages = {
        node.place: PlannedStage(*node.place, _stage_state(node, root, pending), needed[node.place]) for node in nodes
    }
    throughputs = Throughputs(root, say)

    def plan_run(label: str, run: PreparedRun) -> PlannedRun:
        return _plan_run(label, run, stages.get(run.nodes["training"].place), throughputs, root)

    planned, firsts = [], []
    for label, run in zip(labels(runs), runs, strict=True):
        planned.append(plan_run(label, run))
        if first := run.nodes.get(FIRST):  # planned as the training of a run of its own
            job, first_nodes = replace(run.job, config=first.config), {**run.nodes, "training": first}
            firsts.append(plan_run(label, replace(run, job=job, nodes=first_nodes)))
    to_encode = {node.key: run for run in runs if (node := run.required.get("tokens")) and node.place in pending}
    devices, local_runs = Devices(), [run for run in runs if run.launcher in HERE]
    absent = [problem for run in local_runs for problem in devices.check(run.job.config, run.required)]
    unfit = {f"{path}: {message}" for path, message in (*absent, *check_root_and_launcher(runs))}
    return Plan(
        stages=tuple(stages.values()),
        runs=tuple(planned),
        firsts=tuple(firsts),
        config=config.plan,
        devices=config.plan.devices or _process_count(config),
        tokens_bytes=sum(_tokens_bytes(run, root) for run in to_encode.values()),
        until=config.until,
        problems=tuple(sorted({node.problem for node in nodes if node.problem} | unfit)),
        judgement=(*remarks_on_orders(runs, root), *remarks_on_judgement(runs, root)),
        refusals=tuple(error for error in (same_run_twice(runs), undeclared(runs)) if error),
    )


def _stage_state(node: Node, root: OutputRoot, pending: Collection[tuple[str, str]]) -> str:
    if node.problem:
        return "unknown"
    if node.place not in pending:
        return "cached"
    if read_holder(root.store.claim_path(*node.place)):
        return "running"
    return "failed" if root.failure(node).is_file() else "missing"


def _plan_run(
    label: str, run: PreparedRun, planned: PlannedStage | None, throughputs: Throughputs, root: OutputRoot
) -> PlannedRun:
    """Cost of a run; `planned` is None where its training is not planned, and then its speed is not determined."""
    config, node = replace(run.job.config, training=with_device_counts(run.job.config.training)), run.nodes["training"]
    trained = root.store.find(*node.place)
    stage = planned or PlannedStage(*node.place, _stage_state(node, root, set() if trained else {node.place}), 0)
    size = known_vocabulary_size(config, run.nodes["vocabulary"], root)
    vocabulary, parameters = size.value, parameter_count(config.model, size.value)
    full, pairs = pads(config.packing), isinstance(config.packing, PairPacking)
    if trained:
        result, source = trained.record()["result"], ""
        config = trained_sizes(config, result)
        length, throughput = trained_length(result), Speed(None, "")
        parameters = int(result["parameters"])
        hours: float | None = float(result["device_hours"])
    else:
        text = known_text(run, root)
        source, length = text.source, planned_length(config, size, text)
        full = full and not (pairs and text.pair)
        config = sized(config, text)
        throughput = throughputs.of(config, vocabulary) if planned else Speed(None, "")
        hours = throughput.hours(length.flops_left)
    own_checkpoints = sum(step > length.steps_before for step in saved_steps(config.training, length.steps))
    few = too_few_checkpoints(config.training, length.steps, config.evaluation.checkpoints_read)
    return PlannedRun(
        label=label,
        training=stage,
        length=length,
        parameters=parameters,
        hours=hours,
        throughput=throughput,
        disk_bytes=artefact_bytes(config.model, vocabulary, own_checkpoints),
        memory=_device_memory(config, vocabulary),
        gpu=_on_gpu(config),
        full=full and not trained,
        max_epochs=config.budget.max_epochs,
        text_source=source,
        too_few=few and f"{config.evaluation.checkpoints_path}: {few}",
        trains=planned is not None,
    )


def _on_gpu(config: RunConfig) -> bool:
    return config.plan.device is not None or trains_on_gpu(config.training)


def _process_count(config: RunConfig) -> int:
    training = with_device_counts(config.training)
    return training.processes * training.nodes


def _device_memory(config: RunConfig, vocabulary: int) -> int | None:
    """Bytes with training.micro_batch as it is configured; precision=auto is bf16 on a GPU."""
    gpu, training = _on_gpu(config), config.training
    precision = ("bf16" if gpu else "fp32") if training.precision == "auto" else training.precision
    documents = within_documents(config.packing)
    setting = training_setting(training, precision, _process_count(config), gpu=gpu, documents=documents)
    memory = training_memory(config.model, vocabulary, setting)
    return memory.device if memory else None


SHORT_IDS = 65_536
"""Largest vocabulary whose ids are stored in two bytes each; those of larger ones take four."""
ENTRY_BYTES = 8
"""Bytes of an entry of the other arrays."""


def _tokens_bytes(run: PreparedRun, root: OutputRoot) -> int:
    """Bytes of ids and bounds of each draw, and of lengths of documents; 0 without a corpus."""
    text, config = corpus_text(run, root), run.job.config
    if text is None:
        return 0
    ends = text["documents"] * (2 if "target_bytes" in text else 1)
    tokens = text["bytes"] / known_text(run, root).bytes_per_token - ends
    wide = known_vocabulary_size(config, run.nodes["vocabulary"], root).value > SHORT_IDS
    size: int = round(draws_of(config.encoder) * (tokens * (4 if wide else 2) + ENTRY_BYTES * ends))
    return size + ENTRY_BYTES * int(text["documents"])


def remarks_on_judgement(runs: Sequence[PreparedRun], root: OutputRoot) -> Iterator[str]:
    """Remarks on what keeps a table from judging or a run from finishing: baseline, tokens, held-out text, seeds."""
    yield from without_baseline(runs)
    checked: VocabularyProblems = {}
    for name, run in zip(run_names(runs), runs, strict=True):
        if problems := vocabulary_problems(run, checked):
            yield f"paribus run would fail for {name}: {problems[0]}"
    scored = [run for run in runs if CONTINUATION in run.job.config.evaluation.tasks]
    documents = [
        corpus.record()["result"]["heldout"]["documents"] for run in scored if (corpus := _corpus_artifact(run, root))
    ]
    if documents and min(documents) < MIN_PASSAGES:
        yield (
            f"paribus run would fail: the task {CONTINUATION} takes {MIN_PASSAGES} held-out documents at least, and "
            f"the corpus has {min(documents)} (more with a larger corpus or corpus.heldout; evaluation=heldout does "
            "without the task)"
        )
    seeds: dict[tuple[str, ...], set[int]] = {}
    for run in runs:
        seeds.setdefault(tuple(factor_labels(run, run.factors).values()), set()).add(run.job.config.seed)
    if len(seeds) < 2:
        return
    fewest = min(map(len, seeds.values()))
    if fewest < SEEDS_TO_JUDGE:
        present = sorted(set.union(*seeds.values()))
        enough = ",".join(map(str, [*present, *range(max(present) + 1, max(present) + 1 + SEEDS_TO_JUDGE - fewest)]))
        needed = f"the table says which row is better where rows have {SEEDS_TO_JUDGE} seeds"
        yield f"{needed}, and here they have {fewest}: seed={enough}"
    yield from sorted({few for run in runs if (few := few_documents(run.job.config, _corpus_artifact(run, root)))})


def without_baseline(runs: Sequence[PreparedRun]) -> Iterator[str]:
    """Remark that these runs alone have no table; no error, since their baseline may be made elsewhere."""
    table = table_of(runs[0].job.config.experiment)
    rows = dict.fromkeys(tuple(factor_labels(run, runs[0].factors).values()) for run in runs)
    try:
        baselines(list(rows), runs[0].factors, table)
    except ConfigurationError as error:
        yield f"no table of these runs alone: {error}"


def _corpus_artifact(run: PreparedRun, root: OutputRoot) -> Artifact | None:
    return root.store.find(*run.nodes["corpus"].place)


ENOUGH_EPOCHS = 0.9
"""Epochs from which orders of one corpus have most of their documents in common."""
MANY_CORE_HOURS = 100
DOCUMENT_BYTES, DIMENSIONS = 6_400, 768
SECONDS_A_SHARD, SECONDS_A_CODE, SECONDS_TO_ADD = 1.47e-3, 290e-9, 1.33e-3
"""Seconds of one core for a document of `DOCUMENT_BYTES` and `DIMENSIONS`, measured in docs/scale.md."""


def remarks_on_orders(runs: Sequence[PreparedRun], root: OutputRoot) -> Iterator[str]:
    """Remarks that orders read different documents, with the remedy, and that neighbours take many core-hours."""
    yield from _long_searches(runs, root)
    orders: dict[tuple[int, str], set[str]] = defaultdict(set)
    for run in runs:  # told apart by all but their seeds
        order = run.nodes["order"].identity
        settings = {name: value for name, value in order["identity"].items() if name != "seeds"}
        orders[_seed_and_corpus(run)].add(digest([settings, order["inputs"]]))
    compared = [(run, _run_length(run, root)) for run in runs if len(orders[_seed_and_corpus(run)]) > 1]
    known = [epochs for run, length in compared if (epochs := _epochs_read(run, length)) is not None]
    if min(known, default=1.0) < ENOUGH_EPOCHS:
        share = f"{min(known):.0%}".replace("%", " %") if min(known) >= 0.01 else "less than 1 %"
        remark = f"the orders each read different documents, since the budget covers {share} of the corpus"
    elif len(known) < len(compared):
        remark = "the orders may each read different documents, since the budget may not cover the corpus"
    else:
        return
    size = rounded_up_size(max(LEAST_SAMPLE, *(length.text_bytes for _, length in compared)))
    if all(isinstance(run.job.config.budget, EqualTextBudget) for run, _ in compared):
        size = "'${budget.text}'"
    yield f"{remark}: corpus.sample={size} chooses them before they are ordered"


def _long_searches(runs: Sequence[PreparedRun], root: OutputRoot) -> Iterator[str]:
    """Warnings of missing neighbours that a quantized index, which is searched on CPUs, takes long to find."""
    for node, run in {node.place: (node, run) for run in runs if (node := run.required.get("neighbours"))}.values():
        corpus, config = corpus_text(run, root), run.job.config.neighbours
        documents = corpus["documents"] if corpus else round(_run_length(run, root).text_bytes / DOCUMENT_BYTES)
        if documents < FEWEST_QUANTIZED or root.store.find(*node.place):
            continue
        plan = plan_search(documents, DIMENSIONS, replace(config, code_size=None))
        if plan.index != "ivf_pq":
            continue
        codes = documents * (plan.probes or DEFAULT_PROBES) / plan.lists
        shards = -(-documents // config.shard_documents)
        seconds = SECONDS_TO_ADD + shards * SECONDS_A_SHARD + codes * SECONDS_A_CODE
        if (hours := documents * seconds / 3600) > MANY_CORE_HOURS:
            yield (
                f"neighbours: {plan.lists:,} quantized lists of ~{format_count(documents)} documents take about "
                f"{format_hours(hours)} core-hours (docs/scale.md); neighbours=exact compares them on GPUs"
            )


def _run_length(run: PreparedRun, root: OutputRoot) -> Length:
    config = run.job.config
    size = known_vocabulary_size(config, run.nodes["vocabulary"], root)
    return planned_length(config, size, known_text(run, root))


def _seed_and_corpus(run: PreparedRun) -> tuple[int, str]:
    return run.job.config.seed, run.nodes["corpus"].key


def _epochs_read(run: PreparedRun, length: Length) -> float | None:
    """Epochs of its corpus that a run reads; None where they are unknown."""
    sample = run.job.config.corpus.sample
    # Before a corpus exists, a sample in bytes says about how much text it will have, unless the source has less.
    sample_epochs = length.text_bytes / sample if isinstance(sample, int) else None
    return sample_epochs if length.epochs is None else length.epochs
