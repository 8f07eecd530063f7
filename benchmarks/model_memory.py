"""Memory of training models on a CPU beside its prediction: python benchmarks/model_memory.py [CASE ...]

Each case is a fresh process that trains a few steps through the loop of the stage `training`, with a checkpoint
written beside the second half. Measured is anonymous memory (RssAnon: no mapped file counts), sampled every
millisecond, less what the process held with everything imported and no model yet; and beside it the most that
PyTorch's allocator had given out, which no fragmentation changes.
"""

import argparse
import dataclasses
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from yaml import safe_load

from paribus.config.groups.model import ModelConfig
from paribus.modeling.memory import TrainingSetting, training_memory
from paribus.modeling.parameters import parameter_count

STEPS = 4
CONF = Path(__file__).resolve().parents[1] / "conf" / "model"
MIB = 2**20


@dataclasses.dataclass(frozen=True)
class Case:
    """One row of the table."""

    model: str
    vocab_size: int
    micro_batch: int
    share: int
    precision: str = "fp32"
    activation_checkpointing: bool = False
    documents: bool = False
    changes: tuple[tuple[str, Any], ...] = ()

    def config(self) -> ModelConfig:
        """The named size with what is changed of it."""
        fields = safe_load((CONF / f"{self.model}.yaml").read_text(encoding="utf-8")) | dict(self.changes)
        config: ModelConfig = TypeAdapter(ModelConfig).validate_python(fields)
        return config

    def how(self) -> TrainingSetting:
        """The same for the prediction."""
        return TrainingSetting(
            micro_batch=self.micro_batch,
            share=self.share,
            precision=self.precision,  # type: ignore[arg-type]
            documents=self.documents,
            activation_checkpointing=self.activation_checkpointing,
        )


NEOX = (("kind", "gpt_neox"), ("rotary_fraction", 0.25))
MEDIUM = (("width", 640), ("layers", 12), ("heads", 10), ("ffn_width", 2560), ("context_length", 512))
CASES = {
    "laptop_4": Case("laptop", 8192, 4, 4),
    "laptop_16": Case("laptop", 8192, 16, 16),
    "laptop_16_of_64": Case("laptop", 8192, 16, 64),
    "laptop_64": Case("laptop", 8192, 64, 64),
    "laptop_64_bf16": Case("laptop", 8192, 64, 64, "bf16"),
    "laptop_64_checkpointed": Case("laptop", 8192, 64, 64, activation_checkpointing=True),
    "laptop_16_untied": Case("laptop", 8192, 16, 16, changes=(("tied_embeddings", False),)),
    "laptop_16_documents": Case("laptop", 8192, 16, 16, documents=True),
    "laptop_16_128k": Case("laptop", 131072, 16, 16),
    "gpt_neox_16": Case("70m", 8192, 8, 8),
    "medium_4": Case("laptop", 32000, 4, 4, changes=MEDIUM),
    "medium_4_of_8": Case("laptop", 32000, 4, 8, changes=MEDIUM),
    "medium_4_bf16": Case("laptop", 32000, 4, 4, "bf16", changes=MEDIUM),
    "medium_4_checkpointed": Case("laptop", 32000, 4, 4, activation_checkpointing=True, changes=MEDIUM),
    "medium_4_untied": Case("laptop", 32000, 4, 4, changes=(*MEDIUM, ("tied_embeddings", False))),
}


def anonymous_bytes() -> int:
    """Anonymous memory of this process now."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no RssAnon")


class Sampler(threading.Thread):
    """Keeps the most that `anonymous_bytes` gave."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak, self.ended = 0, threading.Event()

    def run(self) -> None:
        """Sample until `ended`."""
        while not self.ended.wait(0.001):
            self.peak = max(self.peak, anonymous_bytes())


def measure(case: Case, directory: Path) -> dict[str, float]:
    """Train `case` in this process; bytes."""
    import torch
    import torch._dynamo  # what compiling would import
    from transformers.models.gpt_neox import modeling_gpt_neox  # noqa: F401
    from transformers.models.llama import modeling_llama  # noqa: F401

    from paribus.modeling.models import build_model
    from paribus.training.loop import train

    run = make_run(case, directory)
    # One product of matrices, so that threads and their memory are there.
    torch.ones(512, 512) @ torch.ones(512, 512)
    before = anonymous_bytes()
    sampler = Sampler()
    sampler.start()
    train(run, build_model(case.config(), case.vocab_size, 0), None)
    sampler.ended.set()
    sampler.join()
    return {"before": before, "measured": sampler.peak - before}


def make_run(case: Case, directory: Path) -> Any:
    """A run on random tokens."""
    import numpy as np

    from paribus.config.groups.ordering import ConcatenatePacking
    from paribus.config.groups.training import TrainingConfig
    from paribus.ordering.contexts import pack
    from paribus.ordering.shuffle import Sequential
    from paribus.stage import SilentListener
    from paribus.training.checkpoint import Checkpoints
    from paribus.training.data import Batches, Budget, context_targets
    from paribus.training.loop import TrainingRun
    from paribus.training.losses import DocumentEnd
    from paribus.training.metrics import MetricsFile
    from paribus.training.parallel import make_accelerator

    model = case.config()
    training = TrainingConfig(
        device="cpu",
        precision=case.precision,
        global_batch=case.share,
        micro_batch=case.micro_batch,
        warmup_share=0.5,
        checkpoint_every=STEPS // 2,
        activation_checkpointing=case.activation_checkpointing,
    )
    length, documents = model.context_length, 64
    tokens = np.random.default_rng(0).integers(1, case.vocab_size, documents * length).astype(np.uint32)
    order = type("Order", (), {"documents": np.arange(documents), "groups": None})()
    contexts = pack(ConcatenatePacking(), tokens, np.arange(documents + 1) * length, order, 0, length)
    batches = Batches(contexts, case.share, Sequential(contexts.count))
    targets = context_targets(contexts)
    return TrainingRun(
        training=training,
        budget=Budget(STEPS, 0, 0, 0, 0, math.nan),
        batches=batches,
        dropout_seed=0,
        targets=targets,
        text_bytes=targets,
        document_end=DocumentEnd(0) if case.documents else None,
        checkpoints=Checkpoints(directory, frozenset({STEPS}), {}),
        metrics=MetricsFile(directory / "metrics.jsonl"),
        listener=SilentListener(),
        accelerator=make_accelerator(training)[0],
    )


def row(name: str, case: Case, measured: dict[str, float]) -> str:
    """A row of the table."""
    model = case.config()
    memory = training_memory(model, case.vocab_size, case.how())
    assert memory is not None
    error = memory.device / measured["measured"] - 1
    contexts = f"{case.micro_batch} of {case.share}"
    cells = [
        f"`{name}`", f"{parameter_count(model, case.vocab_size) / 1e6:.1f}M", contexts,
        f"{memory.device / MIB:,.0f}", f"{measured['measured'] / MIB:,.0f}", f"{error:+.1%}",
        f"{measured['before'] / MIB:,.0f}", 
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main(names: list[str]) -> None:
    """Measure cases, each in a process of its own, and print the table."""
    sys.stdout.write("| case | parameters | micro-batch | predicted MiB | measured MiB | error | before MiB |\n")
    sys.stdout.write("| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
    for name in names or CASES:
        command = [sys.executable, __file__, "--measure", name]
        # One thread: on a shared machine several wait for each other, and memory does not depend on them.
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
        )
        sys.stdout.write(row(name, CASES[name], json.loads(done.stdout.splitlines()[-1])) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*", choices=[[], *CASES])
    parser.add_argument("--measure")
    given = parser.parse_args()
    if given.measure:
        with tempfile.TemporaryDirectory() as scratch:
            sys.stdout.write(json.dumps(measure(CASES[given.measure], Path(scratch))) + "\n")
    else:
        main(given.cases)
