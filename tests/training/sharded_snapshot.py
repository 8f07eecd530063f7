"""One of the processes of a group: python sharded_snapshot.py ROOT, in the environment of the group.

Shards models, trains a step, and saves them by rows and, gathered, whole; then fills others from the rows. Four
processes are two copies of two shards each.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from safetensors.torch import save_file
from torch.distributed.tensor import DTensor

from paribus.config.groups.model import GPTNeoXModel, LlamaModel
from paribus.modeling.models import build_empty, build_model, empty_decoder, save_model
from paribus.training.checkpoint import Checkpoints, _optimizer_state, load_optimizer_tensors, take_snapshot
from paribus.training.data import Batch
from paribus.training.distributed import join_host
from paribus.training.metrics import Spent
from paribus.training.parallel import Prepared, make_accelerator, prepare
from paribus.training.sharded import StoredTensors, load_weights
from paribus.training.step import Stepper
from support.training_inputs import TRAINING

SIZES = {"width": 16, "layers": 2, "heads": 2, "ffn_width": 24, "context_length": 8}
MODELS = {
    "llama": LlamaModel(**SIZES),
    "tied": LlamaModel(**SIZES, tied_embeddings=True),
    "neox": GPTNeoXModel(**SIZES),
}
PROCESSES = int(os.environ["WORLD_SIZE"])
SHARDED = replace(TRAINING, parallel="fsdp", micro_batch=2, shard_processes=2 if PROCESSES == 4 else 0)
TOKENS = [bytes([number]) for number in range(51)]
"""51 rows are no multiple of two."""
whole_tensor = StoredTensors.whole


def step(accelerator: Any, prepared: Prepared) -> None:
    tokens = torch.from_numpy(np.random.default_rng(accelerator.process_index).integers(0, 51, (2, 8)))
    stepper = Stepper(accelerator, prepared, list(prepared.model.parameters()), 2, 1.0, 1e9)
    stepper.step(Batch(0, np.arange(4), tokens, tokens, 32), 0.01)


def gathered(tensors: Any) -> dict[str, torch.Tensor]:
    whole = {name: t.full_tensor() if isinstance(t, DTensor) else t for name, t in dict(tensors).items()}
    return {name: tensor.detach().contiguous() for name, tensor in whole.items()}


def assert_equal_weights(one: Any, other: Any) -> None:
    first, second = (gathered(model.named_parameters()) for model in (one, other))
    assert first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def no_matrix_whole(self: StoredTensors, of: str) -> torch.Tensor:
    assert not self.shapes[of], f"{of} was read whole"
    return whole_tensor(self, of)


def check(directory: Path, name: str, accelerator: Any, host: Any) -> None:
    empty, source = build_empty(MODELS[name], 51, 0, eos_id=None, tokens=TOKENS)
    prepared = prepare(accelerator, empty, SHARDED, None)
    load_weights(empty, source)
    assert_equal_weights(empty, build_model(MODELS[name], 51, 0, tokens=TOKENS))
    step(accelerator, prepared)

    weights = gathered(prepared.model.named_parameters())
    moments = gathered(_optimizer_state(prepared.model, prepared.optimizer))
    if host.main:
        (directory / "whole").mkdir(parents=True)
        save_model(prepared.model, directory / "whole", weights)
        save_file(moments, directory / "whole" / "optimizer.safetensors")
    host.wait()
    snapshot = take_snapshot(prepared.model, prepared.optimizer, main=host.main)
    assert snapshot is not None
    for piece in snapshot.weights.values():
        assert piece.tensor.numel() <= -(-torch.Size(piece.shape).numel() // 2) + 16
    assert bool(snapshot.weights) == (accelerator.process_index < 2), "one copy writes"
    checkpoints = Checkpoints(directory, frozenset({1}), {})
    checkpoints.save(1, snapshot, Spent(), host)

    checkpoint = checkpoints.read(1)
    assert checkpoint.sharded
    model = empty_decoder(checkpoint.architecture)
    again = prepare(accelerator, model, SHARDED, None)
    with patch.object(StoredTensors, "whole", no_matrix_whole):
        load_weights(model, checkpoint.weights())
        load_optimizer_tensors(model, again.optimizer, checkpoint.optimizer())
    for each in (prepared, again):
        step(accelerator, each)
    assert_equal_weights(prepared.model, again.model)


if __name__ == "__main__":
    accelerator, _ = make_accelerator(SHARDED, PROCESSES)
    host = join_host(accelerator)
    for name in MODELS:
        check(Path(sys.argv[1]) / name, name, accelerator, host)
    torch.distributed.destroy_process_group()
