"""Groups `tracking`, `engine`, `scale` and `plan`: how and where, never what."""

from typing import Literal

from paribus.config.fields import (
    Limit,
    Name,
    NonNegative,
    PathText,
    Positive,
    PositiveFloat,
    Probability,
    RunId,
    Share,
    Shots,
    config_class,
    execution,
)
from paribus.config.units import Count, Size

RunStage = Literal[
    "corpus", "vocabulary", "tokens", "embeddings", "neighbours", "lexical_neighbours", "duplicates", "order",
    "contexts", "first_training", "training", "tasks", "prompts", "evaluation", "finetuning_data", "finetuning",
]  # fmt: skip
"""The stages that runs may have."""

URI_VARIABLE = "MLFLOW_TRACKING_URI"
"""Names the MLflow where no configuration does."""


@config_class
class TrackingConfig:
    """Tracker that shows runs; the truth is the event file beside the run."""

    kind: Literal["mlflow", "none"] = execution("mlflow", doc="mlflow, or none to keep event files only.")
    uri: str | None = execution(None, doc="MLflow tracking URI; null is MLFLOW_TRACKING_URI, else sqlite:/// in root.")
    experiment: Name = execution("paribus", doc="MLflow experiment name.")
    patience: PositiveFloat = execution(20.0, doc="Seconds a finished run waits for MLflow before leaving it to sync.")


@config_class
class EngineConfig:
    """Fields of every engine."""

    workers: NonNegative = execution(0, doc="Shards that are computed at once; 0 takes one a core of the engine.")
    threads: NonNegative = execution(0, doc="Threads of numerical libraries in a stage's process; 0 takes one a core.")
    lease_seconds: PositiveFloat = execution(30.0, doc="A claim without heartbeat for this long is taken over.")
    grace_seconds: PositiveFloat = execution(
        300.0,
        doc="Seconds that the process of a stage has to end by itself when its run is stopped: a training finishes its "
        "step and saves a checkpoint.",
    )
    gpu_locks: PathText = execution(
        "/tmp/paribus-gpus",
        doc="Directory of this machine in which all jobs on its GPUs, of all users and containers, lock them.",
    )


@config_class
class LocalEngineConfig(EngineConfig):
    """Stages and their shards are computed on this machine."""

    kind: Literal["local"] = execution("local", doc="Processes and threads of this machine.")


@config_class
class RayEngineConfig(EngineConfig):
    """Shards are computed by a Ray cluster whose nodes share the file system; stages still run on this machine."""

    kind: Literal["ray"] = execution("ray", doc="A Ray cluster.")
    address: str | None = execution(
        None,
        doc="The cluster to join: host:port, or auto for the one of this machine; null starts Ray on this machine, on "
        "the loopback interface, for each stage.",
    )
    retries: NonNegative = execution(
        3, doc="How often a shard is handed out again after the worker or node that had it died."
    )
    patience: PositiveFloat = execution(
        3600.0, doc="Seconds to wait for the first worker where there is none, because others use the cluster."
    )


@config_class
class ScaleConfig:
    """One bundle of sizes; the other groups read their defaults from it, so it is not part of a run's identity."""

    kind: Literal[
        "tiny", "demo", "laptop", "paper", "paper_1.2b", "paper_6.7b",
        "in_context_0.3b", "in_context_0.7b", "in_context_1.5b", "in_context_7b",
    ] = execution("laptop", doc="Name of the bundle.")  # fmt: skip
    corpus_limit: Size | None = execution(None, doc="corpus.limit of the embedded corpus.")
    vocab_size: Count = execution(8_192, doc="tokenizer.vocab_size.")
    tokens: Count = execution(20_000_000, doc="budget.tokens.")
    text: Size = execution(80_000_000, doc="budget.text.")
    flops: Count = execution(960_000_000_000_000, doc="budget.flops.")
    steps: Count = execution(1_200, doc="budget.steps.")
    global_batch: Positive = execution(64, doc="training.global_batch.")
    learning_rate: PositiveFloat = execution(1e-3, doc="training.learning_rate.")
    warmup_share: Probability = execution(0.08, doc="training.warmup_share.")
    checkpoints: Positive = execution(6, doc="training.checkpoints.")
    checkpoint_every: Positive = execution(200, doc="training.checkpoint_every.")
    last_checkpoints: Positive = execution(3, doc="evaluation.last_checkpoints.")
    shots: Shots = execution((0,), doc="evaluation.shots; contexts of the smaller models hold no examples.")
    continuation_items: Positive = execution(500, doc="evaluation.continuation_items.")
    context_characters: Positive = execution(200, doc="evaluation.context_characters.")
    continuation_characters: Positive = execution(80, doc="evaluation.continuation_characters.")
    heldout_documents: Positive = execution(500, doc="evaluation.heldout_documents.")


@config_class
class SweepConfig:
    """Which sweep a run belongs to; `paribus run -m` fills it in."""

    id: RunId = execution(doc="Digest of the name, the factors and the runs of the sweep.")
    name: Name = execution(doc="Name shown in MLflow and the report.")
    invocation: str = execution(doc="One execution of the command: what failed in it is not tried again by it.")
    jobs: Positive = execution(doc="Number of runs.")
    number: Positive = execution(1, doc="Which of them this is.")
    launcher: str = execution("basic", doc="The Hydra launcher that runs them.")
    run: RunId | None = execution(None, doc="The run that this job was composed as; one that composes another refuses.")
    factors: tuple[str, ...] = execution((), doc="Configuration paths that differ between the runs on purpose.")


@config_class
class PlanConfig:
    """How `paribus plan` reckons the hours of training, and what it may cost."""

    throughput: Literal["auto", "probe", "stated"] = execution(
        "auto",
        doc="Where the speed of training comes from. probe: each model shape is trained on this machine for "
        "plan.probe_seconds, once, and remembered below the output root; stated: plan.utilisation of a device's peak; "
        "auto: stated where plan.device or plan.peak_tflops is set, else what was probed before, and a probe "
        "only where plan.max_device_hours must be judged.",
    )
    probe_seconds: PositiveFloat = execution(10.0, doc="Seconds of training steps that a probe measures, at most.")
    device: str | None = execution(
        None, doc="Device to reckon for, by a name with a known peak, such as h800 or a100; null is this machine's."
    )
    peak_tflops: PositiveFloat | None = execution(
        None, doc="TFLOP/s that the device can do at most; null is the known peak of plan.device (dense bfloat16)."
    )
    utilisation: Share = execution(
        0.4, doc="Share of the peak that training achieves (model FLOPs utilisation), where the speed is stated."
    )
    devices: Positive | None = execution(
        None, doc="Devices at hand, over which hours are divided; null is training.processes x training.nodes."
    )
    max_device_hours: Limit = execution(
        None, doc="Most device-hours: plan and run refuse a command whose missing trainings take more."
    )
