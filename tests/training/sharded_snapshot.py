"""One of the processes of a group: python sharded_snapshot.py ROOT, in the environment of the group.

Shards models, trains a step, and saves them by rows and, gathered, whole; then fills others from the rows. Four
processes are two copies of two shards each.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch.distributed.tensor import DTensor

from paribus.config.groups.model import GPTNeoXModel, LlamaModel
from paribus.modeling.architecture import WEIGHTS
from paribus.modeling.models import build_empty, build_model, empty_decoder, save_model
from paribus.training.checkpoint import Checkpoints, _optimizer_state, load_optimizer_tensors, take_snapshot
from paribus.training.data import Batch
from paribus.training.distributed import Host, join_host
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
SHARED = replace(TRAINING, parallel="fsdp", micro_batch=2)
TOKENS = [bytes([number]) for number in range(51)]
"""51 rows are no multiple of two."""


def step(accelerator: Any, prepared: Prepared) -> None:
    tokens = torch.from_numpy(np.random.default_rng(accelerator.process_index).integers(0, 51, (2, 8)))
    stepper = Stepper(accelerator, prepared, list(prepared.model.parameters()), 2, 1.0, 1e9)
    stepper.step(Batch(0, np.arange(4), tokens, tokens, 32), 0.01)


def whole(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    gathered = {name: t.full_tensor() if isinstance(t, DTensor) else t for name, t in tensors.items()}
    return {name: tensor.detach().contiguous() for name, tensor in gathered.items()}


def weights(prepared: Prepared) -> dict[str, torch.Tensor]:
    return whole(dict(prepared.model.named_parameters()))


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(value, other[key]) for key, value in one.items())


def shared(accelerator: Any) -> Any:
    return replace(SHARED, shard_processes=2 if accelerator.num_processes == 4 else 0)


def drawn_rows_are_those_of_the_whole(name: str, accelerator: Any) -> Prepared:
    """The model, its weights drawn on `meta`."""
    empty, source = build_empty(MODELS[name], 51, 0, eos_id=None, tokens=TOKENS)
    prepared = prepare(accelerator, empty, shared(accelerator), None)
    load_weights(empty, source)
    assert equal(weights(prepared), dict(build_model(MODELS[name], 51, 0, tokens=TOKENS).named_parameters()))
    return prepared


def save(directory: Path, prepared: Prepared, accelerator: Any, host: Host) -> None:
    gathered = weights(prepared), whole(_optimizer_state(prepared.model, prepared.optimizer))
    if host.main:
        (directory / "whole").mkdir(parents=True)
        save_model(prepared.model, directory / "whole", gathered[0])
        save_file(gathered[1], directory / "whole" / "optimizer.safetensors")
    host.wait()
    snapshot = take_snapshot(prepared.model, prepared.optimizer, main=host.main)
    assert snapshot is not None
    assert all(
        piece.tensor.numel() <= -(-torch.Size(piece.shape).numel() // 2) + 16 for piece in snapshot.weights.values()
    )
    assert bool(snapshot.weights) == (accelerator.process_index < 2), "one copy writes"
    Checkpoints(directory, frozenset({1}), {}).save(1, snapshot, Spent(), host)


def read_no_matrix_whole(self: StoredTensors, of: str) -> torch.Tensor:
    assert not self.shapes[of], f"{of} was read whole"
    return ORIGINAL(self, of)


ORIGINAL = StoredTensors.whole


def check(root: Path, name: str, accelerator: Any, host: Host) -> None:
    prepared = drawn_rows_are_those_of_the_whole(name, accelerator)
    step(accelerator, prepared)
    directory = root / name
    save(directory, prepared, accelerator, host)
    checkpoint = Checkpoints(directory, frozenset({1}), {}).read(1)
    assert checkpoint.sharded
    model = empty_decoder(checkpoint.architecture)
    again = prepare(accelerator, model, shared(accelerator), None)
    StoredTensors.whole = read_no_matrix_whole  # type: ignore[method-assign]
    load_weights(model, checkpoint.weights())
    load_optimizer_tensors(model, again.optimizer, checkpoint.optimizer())
    StoredTensors.whole = ORIGINAL  # type: ignore[method-assign]
    for pair in (prepared, again):
        step(accelerator, pair)
    assert equal(weights(prepared), weights(again))
    assert (directory / "whole" / WEIGHTS).exists()


def main(root: Path) -> None:
    accelerator, _ = make_accelerator(SHARED, int(sys.argv[2]))
    host = join_host(accelerator)
    for name in MODELS:
        check(root, name, accelerator, host)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
