"""Which models are trained, on which device with which batches, and whether they fit."""

from dataclasses import dataclass, replace
from pathlib import Path

from paribus.checks import compose_command
from paribus.config.arguments import Command
from paribus.config.groups.ordering import within_documents
from paribus.config.schema import RunConfig
from paribus.errors import OutOfMemoryError
from paribus.modeling.memory import training_setting
from paribus.training.fit import fit

LOGIT_BYTES = 12
"""Of a logit with what Trainer makes of it; paribus does not make all logits of a micro-batch."""
PROCESS_BYTES = 1e9
"""Of a process beside its training: the interpreter and its libraries."""
LEAST_TOKENS = 2048
"""Tokens of a forward pass below which a GPU is not busy; activations are computed again before it is that few."""


@dataclass(frozen=True)
class Shape:
    """A size of the group `model`, and the batches it is trained with."""

    name: str
    """That of the size, unless `overrides` say another."""
    vocab_size: int
    micro_batch: int
    global_batch: int
    context_length: int
    steps: int
    """Measured steps, a multiple of `window`; those of warm-up come before."""
    window: int = 1
    """Steps between two looks at the clock, and in a turn."""
    checkpointing: bool = False
    """Whether activations are computed again instead of kept."""
    overrides: tuple[str, ...] = ()
    """What else is set in the configuration."""

    @property
    def step_tokens(self) -> int:
        """Tokens of a step."""
        return self.global_batch * self.context_length


CPU = (
    Shape("demo", 4096, 2, 2, 256, 300, 5),
    Shape("laptop", 8192, 4, 4, 256, 120),
    Shape("31m", 32_000, 1, 2, 512, 20),
    Shape("468m", 32_000, 1, 1, 128, 5),
)
GPU = (
    Shape("468m", 32_000, 32, 128, 1024, 40, 5),
    Shape("1.2b", 32_000, 16, 64, 1024, 40, 5),
    Shape("6.7b", 32_000, 8, 32, 2048, 20, 5),
    Shape("6.7b_8_layers", 32_000, 8, 32, 2048, 20, 5, overrides=("model=6.7b", "model.layers=8")),
    Shape("468m_128k", 128_000, 16, 64, 1024, 40, 5, overrides=("model=468m",)),
    Shape("468m_documents", 32_000, 4, 16, 8192, 20, 5, overrides=("model=468m", "packing.attention=document")),
)
GPU_DEFAULT = ("468m", "1.2b", "6.7b")


def configuration(shape: Shape, steps: int, device: str) -> RunConfig:
    """The configuration of a run of `steps` steps, as a user's overrides make it."""
    given = (
        *([] if any(one.startswith("model=") for one in shape.overrides) else [f"model={shape.name}"]),
        f"model.context_length={shape.context_length}",
        "budget=equal_steps",
        f"budget.steps={steps}",
        f"training.device={device}",
        f"training.micro_batch={shape.micro_batch}",
        f"training.global_batch={shape.global_batch}",
        f"training.activation_checkpointing={str(shape.checkpointing).lower()}",
        "training.warmup_share=0.02",
        "training.checkpoint_every=1000000",
        "training.keep_checkpoints=1",
        "evaluation.last_checkpoints=1",
        *shape.overrides,
    )
    return compose_command(Command(flags=(), overrides=given)).jobs[0].config


def fitting(shape: Shape, memory: float, *, gpu: bool) -> Shape | str:
    """The shape with the largest micro-batch that should fit into `memory` bytes, or why there is none.

    A prediction to begin with: a run that fails for want of memory is made again with half of it.
    """
    least = min(shape.step_tokens, LEAST_TOKENS) // shape.context_length
    tried: Shape | str = shape
    for checkpointing in (False, True):
        asked = replace(shape, checkpointing=checkpointing)
        config = configuration(asked, 10, "cpu")
        documents = within_documents(config.packing)
        how = training_setting(config.training, "bf16" if gpu else "fp32", 1, gpu=gpu, documents=documents)
        logits = LOGIT_BYTES * shape.vocab_size * shape.micro_batch * shape.context_length
        try:
            found = fit(config.model, shape.vocab_size, how, int(memory - logits)).micro_batch
        except OutOfMemoryError as error:
            tried = str(error)
            continue
        tried = replace(asked, micro_batch=found)
        if found >= min(least, shape.micro_batch):
            break
    return tried


def fit_together(shape: Shape, memory: float, processes: int, *, gpu: bool) -> bool:
    """Whether that many processes should fit into `memory` bytes at once, each training the shape."""
    return fitting(shape, memory / processes - PROCESS_BYTES, gpu=gpu) == shape


def free_memory() -> float:
    """Bytes of main memory that are free."""
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines())
    return float(lines["MemAvailable"].split()[0]) * 1024
