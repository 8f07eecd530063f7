"""Which models are trained, on which device with which batches, and whether they fit."""

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

from paribus.config.arguments import Command
from paribus.config.compose import compose_command
from paribus.config.groups.model import DecoderFamily
from paribus.config.schema import RunConfig
from paribus.modeling.counts import parameter_count

OPTIMIZED_BYTES = 16
"""Of a parameter: weight, gradient and two moments, all float32."""
BUFFER_BYTES = 2e9
USABLE = 0.92
"""Share of a device's memory that may be planned with."""
LEAST_TOKENS = 2048
"""Tokens of a forward pass below which a GPU is not busy; activations are computed again before it is that few."""


@dataclass(frozen=True)
class Shape:
    """A named size of the group `model`, and the batches it is trained with."""

    name: str
    vocab_size: int
    micro_batch: int
    global_batch: int
    context_length: int
    steps: int
    """Measured steps; those of warm-up come before."""
    checkpointing: bool = False
    """Whether activations are computed again instead of kept."""

    @property
    def step_tokens(self) -> int:
        """Tokens of a step."""
        return self.global_batch * self.context_length

    def halved(self) -> "Shape":
        """The same steps in smaller pieces."""
        return dataclasses.replace(self, micro_batch=self.micro_batch // 2)


CPU = {
    "demo": Shape("demo", 4096, 2, 2, 256, 60),
    "laptop": Shape("laptop", 8192, 4, 4, 256, 20),
    "31m": Shape("31m", 32_000, 1, 2, 512, 10),
    "468m": Shape("468m", 32_000, 1, 1, 128, 5),
    "1.2b": Shape("1.2b", 32_000, 1, 1, 128, 4),
    "6.7b": Shape("6.7b", 32_000, 1, 1, 128, 4),
}
CPU_DEFAULT = ("demo", "laptop", "31m", "468m")
GPU = {
    "31m": Shape("31m", 32_000, 64, 64, 1024, 40),
    "160m": Shape("160m", 32_000, 32, 128, 1024, 40),
    "468m": Shape("468m", 32_000, 32, 128, 1024, 40),
    "1.2b": Shape("1.2b", 32_000, 16, 64, 1024, 40),
    "6.7b": Shape("6.7b", 32_000, 8, 32, 2048, 20),
}
GPU_DEFAULT = ("468m", "1.2b", "6.7b")


def configuration(shape: Shape, steps: int, device: str, *overrides: str) -> RunConfig:
    """The configuration of a run of `steps` steps, as a user's overrides make it."""
    given = (
        f"model={shape.name}",
        f"model.context_length={shape.context_length}",
        "budget=equal_steps",
        f"budget.steps={steps}",
        f"training.device={device}",
        f"training.micro_batch={shape.micro_batch}",
        f"training.global_batch={shape.global_batch}",
        f"training.activation_checkpointing={str(shape.checkpointing).lower()}",
        "training.warmup_steps=2",
        "training.checkpoint_every=1000000",
        "training.keep_checkpoints=1",
        "evaluation.last_checkpoints=1",
        *overrides,
    )
    return compose_command(Command(flags=(), overrides=given)).jobs[0].config


def fitting(shape: Shape, memory: float, *, half: bool) -> Shape | str:
    """The shape with the largest micro-batch that should fit into `memory` bytes, or why there is none.

    An estimate to begin with: a run that fails for want of memory is made again with half of it.
    """
    model = configuration(shape, 10, "cpu").model
    assert isinstance(model, DecoderFamily)
    parameters = parameter_count(model, shape.vocab_size)
    fixed = (OPTIMIZED_BYTES + (2 if half else 0)) * parameters + (BUFFER_BYTES if half else 0)
    room = USABLE * memory - fixed
    for checkpointing in (False, True) if not shape.checkpointing else (True,):
        each = shape.context_length * _token_bytes(model, shape.vocab_size, half=half, checkpointing=checkpointing)
        least = max(1, min(shape.step_tokens, LEAST_TOKENS) // shape.context_length)
        micro_batch = shape.micro_batch
        while micro_batch > least and micro_batch * each > room:
            micro_batch //= 2
        if micro_batch * each <= room:
            return dataclasses.replace(shape, micro_batch=micro_batch, checkpointing=checkpointing)
    return f"needs about {(fixed + each) / 1e9:.0f} GB of memory, and {memory / 1e9:.0f} GB are there"


def _token_bytes(model: DecoderFamily, vocab_size: int, *, half: bool, checkpointing: bool) -> float:
    """Bytes of activations a token, of an eager Llama; logits, as Trainer makes them, with their gradient."""
    kept = (50 * model.width + 10 * model.ffn_width) if half else (44 * model.width + 18 * model.ffn_width)
    layers = 4 * model.width * model.layers + kept if checkpointing else kept * model.layers
    return layers + (10 if half else 12) * vocab_size


def free_memory() -> float:
    """Bytes of main memory that are free, or all of it where the system does not say."""
    path = Path("/proc/meminfo")
    if path.exists():
        lines = dict(line.split(":", 1) for line in path.read_text(encoding="utf-8").splitlines())
        return float(lines["MemAvailable"].split()[0]) * 1024
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
