"""The random numbers of dropout: a function of (seed, step, process, micro-batch), so that resuming needs no state."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from paribus.modeling.models import is_encoder_decoder

SHARES = ("dropout", "attention_dropout", "activation_dropout", "hidden_dropout")
"""What the configuration of transformers calls the shares that are dropped."""


def has_dropout(model: Any) -> bool:
    """Whether a model draws random numbers when it is trained; no decoder does."""
    return is_encoder_decoder(model) and any(getattr(model.config, name, 0.0) for name in SHARES)


@dataclass(frozen=True)
class DropoutSeeds:
    """The seeds of one process."""

    seed: int
    process: int

    @contextmanager
    def step(self, device: torch.device) -> Iterator[None]:
        """Restore the random state of the CPU and of `device` when the block is left."""
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            yield

    def begin(self, step: int, micro_batch: int) -> None:
        """Seed all devices for micro-batch `micro_batch` of 0-based `step`."""
        key = f"dropout:{self.seed}:{step}:{self.process}:{micro_batch}"
        digest = hashlib.sha256(key.encode()).digest()
        torch.manual_seed(int.from_bytes(digest[:8], "little") >> 1)
