"""Groups `training` and `budget`: optimizer, schedule, batch, checkpoints, and what is equal between runs."""

from typing import Literal

from paribus.config.fields import (
    Device,
    Limit,
    NonNegative,
    NonNegativeReal,
    Positive,
    PositiveFloat,
    Probability,
    UpToOne,
    config_class,
    execution,
    identity,
)
from paribus.config.units import Count, Size

_MAX_EPOCHS = (
    "Most epochs: a run whose budget takes more is refused before its first step, and 1 refuses any repetition; null "
    "repeats the text as often as needed."
)


@config_class
class TrainingConfig:
    """AdamW with warm-up and a schedule."""

    kind: Literal["adamw"] = identity("adamw", doc="AdamW; with weight_decay=0 it is Adam.")
    learning_rate: PositiveFloat = identity(3e-4, doc="Peak learning rate (papers: 3e-4).")
    schedule: Literal["cosine", "inverse_sqrt"] = identity(
        "cosine",
        doc="After a linear warm-up: half a cosine over the rest of the budget, or peak x sqrt(warm-up steps / step), "
        "which no budget ends (Vaswani et al. 2017; Ott et al. 2018).",
    )
    min_learning_rate_ratio: UpToOne = identity(0.1, doc="Final over peak learning rate, of the cosine.")
    warmup_share: Probability = identity(
        0.021, doc="Share of the budget's steps that are linear warm-up, to the nearest step (papers: 2,000 of 95,000)."
    )
    warmup_steps: NonNegative | None = identity(
        None, doc="Steps of linear warm-up, whatever the budget (Ott et al.: 4,000); null: as warmup_share says."
    )
    warmup_learning_rate: NonNegativeReal = identity(
        0.0, doc="Learning rate of the first step, from which inverse_sqrt warms up (Ott et al.: 1e-7)."
    )
    weight_decay: NonNegativeReal = identity(0.1, doc="Decoupled weight decay, on matrices only.")
    beta1: Probability = identity(0.9, doc="AdamW's first moment decay, below 1.")
    beta2: Probability = identity(0.95, doc="AdamW's second moment decay, below 1.")
    epsilon: PositiveFloat = identity(1e-8, doc="AdamW's denominator term.")
    gradient_clip: PositiveFloat = identity(1.0, doc="Largest global gradient norm.")
    label_smoothing: Probability = identity(
        0.0, doc="Share of each target spread evenly over the vocabulary (Vaswani et al. 2017: 0.1)."
    )
    global_batch: NonNegative = identity(
        1_024, doc="Contexts (or pairs) a step, over all processes (papers: 1,024 or 2,048); 0: as batch_bytes says."
    )
    batch_bytes: Size | None = identity(
        None,
        doc="Bytes of source text a step, with global_batch=0: as many contexts as come nearest to it in the mean, so "
        "that arms of equal text take equal steps.",
    )
    batch_multiple: Positive = identity(
        1, doc="With batch_bytes: the number of contexts is a multiple of this, which processes must share evenly."
    )
    precision: Literal["auto", "fp32", "bf16"] = identity(
        "auto", doc="auto is bf16 where the device has it; the precision used is recorded and must agree in a table."
    )
    deterministic: bool = identity(
        False,
        doc="Use deterministic algorithms alone, so that a training that goes on ends with the bits of one that was "
        "not stopped, on GPUs too, or is refused. Slower.",
    )
    checkpoints: Positive = identity(
        20, doc="Checkpoints stand at equal shares of the budget: share i of n after i / n of the steps, rounded up."
    )
    keep_checkpoints: Positive = identity(
        5, doc="Of these the last, which are kept and can be scored (papers average over five)."
    )
    loss_limit: Limit = identity(
        3.0, doc="A loss above this many times that of guessing, ln(vocabulary size), has exploded; null never."
    )
    skip_bad_steps: NonNegative = identity(
        0, doc="Steps whose loss or gradients are not finite or exploded that may be left out; one more stops the run."
    )
    micro_batch: NonNegative = execution(
        16,
        doc="Contexts a forward pass of a process; gradients accumulate. Lowered where a GPU lacks memory. "
        "0 takes the largest that fits a GPU, found by trial steps unless parallel=fsdp; on a CPU all of a process.",
    )
    device: Device = execution("auto", doc="auto, cpu, cuda or cuda:N.")
    processes: NonNegative = execution(1, doc="Processes a node that train one model; 0 takes one a visible GPU.")
    nodes: NonNegative = execution(
        1, doc="Nodes that train one model; 0 takes those of the SLURM allocation this runs in."
    )
    nodes_by: Literal["slurm", "ray"] = execution(
        "slurm", doc="What starts processes on several nodes: srun in an allocation, or tasks of a Ray cluster."
    )
    parallel: Literal["ddp", "fsdp"] = execution(
        "ddp", doc="What several processes share: batches (ddp), or weights and optimizer state too (fsdp, FSDP2)."
    )
    shard_processes: NonNegative = execution(
        0,
        doc="With fsdp: processes that divide weights and optimizer state, such as those of a node; groups of so many "
        "have whole copies each and share batches (HSDP). 0: all divide them.",
    )
    reshard_after_forward: bool = execution(
        True,
        doc="With fsdp: let go of a layer's gathered weights after its forward pass, and gather them again for the "
        "backward pass; false takes memory and spares a third of the traffic.",
    )
    compile: Literal["auto", "always", "never"] = execution(
        "auto",
        doc="Compile layers with torch.compile; auto: on a GPU beside a C compiler, unless training is deterministic. "
        "On a CPU it needs a C++ compiler. In bf16 compiled layers round less: whether they were compiled is recorded "
        "and must agree in a table.",
    )
    activation_checkpointing: bool = execution(
        False, doc="Compute activations again instead of keeping them: far less memory, a third more time."
    )
    checkpoint_every: Positive = execution(
        1_000, doc="Steps between checkpoints that only a killed job goes on from; they are not kept."
    )
    checkpoint_minutes: PositiveFloat | None = execution(
        30.0, doc="Minutes after which such a checkpoint is written, however many steps that is; null: by steps alone."
    )
    log_every: Positive = execution(10, doc="Steps between logged metrics.")

    def unreached_warmup(self, steps: int, budget: str) -> str | None:
        """Message on `warmup_steps` where they are all of the `steps`, which the field `budget` gives."""
        if self.warmup_steps is None or self.warmup_steps < steps:
            return None
        right = "lower it, take a larger budget, or null and a training.warmup_share"
        return f"{self.warmup_steps}, but {budget} ends after {steps}; {right}"


@config_class
class EqualTokensBudget:
    """Every run reads the same number of tokens."""

    kind: Literal["equal_tokens"] = identity("equal_tokens", doc="Stop after a number of tokens.")
    tokens: Count = identity(
        doc="Tokens to predict, rounded up to whole global batches; padding is none of them (papers: 100B)."
    )
    max_epochs: Limit = execution(None, doc=_MAX_EPOCHS)


@config_class
class EqualTextBudget:
    """Every run reads the same number of bytes of source text."""

    kind: Literal["equal_text"] = identity("equal_text", doc="Stop after a number of bytes of source text.")
    text: Size = identity(doc="UTF-8 bytes of source text, rounded up to whole global batches (papers: 388GiB).")
    max_epochs: Limit = execution(None, doc=_MAX_EPOCHS)


@config_class
class EqualFlopsBudget:
    """Every run computes the same number of FLOPs, so a larger vocabulary or model trains on fewer tokens."""

    kind: Literal["equal_flops"] = identity("equal_flops", doc="Stop after a number of training FLOPs.")
    flops: Count = identity(
        doc="Training FLOPs (6 N + 12 layers x width x context length a position, padding included), rounded up to "
        "whole global batches: 3e19."
    )
    max_epochs: Limit = execution(None, doc=_MAX_EPOCHS)


@config_class
class EqualStepsBudget:
    """Every run makes the same number of optimizer steps."""

    kind: Literal["equal_steps"] = identity("equal_steps", doc="Stop after a number of optimizer steps.")
    steps: Count = identity(doc="Optimizer steps, each over one global batch: 20K.")
    max_epochs: Limit = execution(None, doc=_MAX_EPOCHS)


BudgetConfig = EqualTokensBudget | EqualTextBudget | EqualFlopsBudget | EqualStepsBudget


def amount_of(budget: BudgetConfig) -> int:
    """How much, in the unit of its kind."""
    return int(getattr(budget, unit_of(budget)))


def unit_of(budget: BudgetConfig) -> str:
    """The field that says how much: tokens, text, flops or steps."""
    return budget.kind.removeprefix("equal_")


def amount_path(budget: BudgetConfig) -> str:
    """The path of the field that says how much."""
    return f"budget.{unit_of(budget)}"


def checkpoint_steps(checkpoints: int, steps: int, last: int) -> tuple[int, ...]:
    """Steps after which the `last` of `checkpoints` equal shares of `steps` end, ascending.

    Share i of n ends after i · steps / n steps, rounded up. Shares that end at one step are there once.
    """
    shares = range(max(0, checkpoints - last) + 1, checkpoints + 1)
    return tuple(dict.fromkeys(-(-share * steps // checkpoints) for share in shares))


def saved_steps(training: TrainingConfig, steps: int) -> tuple[int, ...]:
    """Steps after which the checkpoints stand that a training of `steps` keeps, ascending."""
    return checkpoint_steps(training.checkpoints, steps, training.keep_checkpoints)


def too_few_checkpoints(training: TrainingConfig, steps: int, needed: int) -> str | None:
    """The message where fewer than `needed` of the last checkpoints stand at a step of their own; else None."""
    count = len(checkpoint_steps(training.checkpoints, steps, needed))
    if count == needed:
        return None
    both = f"lower it to {steps}, and training.checkpoints to {steps} or less"
    fewer = both if steps < needed else f"lower training.checkpoints to {steps} or less"
    return (
        f"{needed} are to be scored or averaged, and the last {needed} shares of "
        f"training.checkpoints={training.checkpoints} end at {count} of the budget's {steps} steps; "
        f"take a larger budget, or {fewer}"
    )
