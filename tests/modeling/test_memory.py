"""The memory of training, by formula and as autograd and the allocator have it."""

import dataclasses
from typing import Any

import pytest
import torch

from paribus.config.groups.model import DecoderModel
from paribus.modeling.memory import TrainingMemory, TrainingSetting, training_memory
from paribus.modeling.models import build_model
from paribus.modeling.parameters import optimizer_bytes, parameter_count
from paribus.training.losses import DocumentEnd, SummedLoss
from support.models import GPT_NEOX, LLAMA, NAMED

VOCABULARY, ROWS = 96, 3
SEQUENTIAL = dataclasses.replace(GPT_NEOX, parallel_residual=False)
MODELS = {
    "llama": LLAMA,
    "llama_wide": dataclasses.replace(LLAMA, width=48, heads=3, ffn_width=200, layers=3, tied_embeddings=True),
    "gpt_neox": dataclasses.replace(GPT_NEOX, rotary_fraction=0.5),
    "sequential": dataclasses.replace(SEQUENTIAL, rotary_fraction=0.5, ffn_width=128),
}
ONE_PROCESS = TrainingSetting(micro_batch=ROWS, share=ROWS)


def predicted(model: Any, how: TrainingSetting, vocab_size: int = VOCABULARY) -> TrainingMemory:
    memory = training_memory(model, vocab_size, how)
    assert memory is not None
    return memory


def prepared(model: DecoderModel, how: TrainingSetting, *, compiled: bool = False) -> torch.nn.Module:
    built = build_model(model, VOCABULARY, 0).train()
    built.computes_in = torch.bfloat16 if how.precision == "bf16" else torch.float32
    if how.sharded and how.precision == "bf16":
        built.layers.to(torch.bfloat16)
    built.activation_checkpointing = how.activation_checkpointing
    if compiled:
        torch._dynamo.reset()
        for layer in built.layers:
            layer.compile(backend="aot_eager_decomp_partition")
    return SummedLoss(built, DocumentEnd(0) if how.documents else None)


def saved_bytes(model: DecoderModel, how: TrainingSetting, *, compiled: bool = False) -> int:
    """Bytes of the storages that autograd saves in a forward pass, parameters and the loss' own gradients apart."""
    loss = prepared(model, how, compiled=compiled)
    own = {parameter.untyped_storage().data_ptr() for parameter in loss.parameters()}
    storages: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    tokens = torch.randint(0, VOCABULARY, (how.micro_batch, model.context_length))
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = loss(tokens, tokens)
    assert result.requires_grad
    return sum(storages.values()) - (how.number * tokens.numel() + 4 * VOCABULARY) * model.width


HOW = {
    "fp32": {},
    "bf16": {"precision": "bf16"},
    "bf16_sharded": {"precision": "bf16", "processes": 2, "parallel": "fsdp"},
}


@pytest.mark.parametrize("how", HOW.values(), ids=HOW.keys())
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_bytes_that_autograd_saves_are_predicted_to_the_byte(model: DecoderModel, how: dict[str, Any]) -> None:
    exact = dataclasses.replace(ONE_PROCESS, **how)
    assert predicted(model, exact).activations == saved_bytes(model, exact)


@pytest.mark.parametrize("how", HOW.values(), ids=HOW.keys())
@pytest.mark.parametrize("model", [LLAMA, MODELS["gpt_neox"]], ids=["llama", "gpt_neox"])
def test_mask_is_saved_once_as_booleans_and_as_numbers_in_every_layer(model: DecoderModel, how: dict[str, Any]) -> None:
    within = dataclasses.replace(ONE_PROCESS, documents=True, **how)
    # The forward pass itself holds the mask: a hook does not see it.
    mask = ROWS * model.context_length**2
    assert predicted(model, within).activations - mask == saved_bytes(model, within)


@pytest.mark.parametrize("model", [LLAMA, MODELS["gpt_neox"]], ids=["llama", "gpt_neox"])
def test_recomputing_layers_keep_their_inputs_and_compiled_ones_what_their_graphs_do(model: DecoderModel) -> None:
    again = dataclasses.replace(ONE_PROCESS, activation_checkpointing=True)
    rotations = 4 * model.context_length * (model.width // model.heads if model is LLAMA else 8)
    assert predicted(model, again).activations - rotations == saved_bytes(model, again)
    half = dataclasses.replace(ONE_PROCESS, micro_batch=8, precision="bf16")
    assert predicted(model, half).activations == pytest.approx(saved_bytes(model, half, compiled=True), rel=0.02)


def test_weights_gradients_and_moments_are_float32() -> None:
    for model in (LLAMA, GPT_NEOX):
        memory, weights = predicted(model, ONE_PROCESS), 4 * parameter_count(model, VOCABULARY)
        assert (memory.weights, memory.gradients, memory.checkpoint) == (weights, weights, 3 * weights)
        assert (memory.moments, memory.phases["optimizer"]) == (optimizer_bytes(model, VOCABULARY), 4 * weights)


def test_fsdp_divides_weights_gradients_and_moments_and_ddp_does_not() -> None:
    alone, ddp, fsdp = (
        predicted(NAMED["6.7b"], dataclasses.replace(ONE_PROCESS, gpu=True, **how), 32_000)
        for how in ({}, {"processes": 8}, {"processes": 8, "parallel": "fsdp"})
    )
    assert ddp.weights == alone.weights == 8 * fsdp.weights
    assert fsdp.device < ddp.device / 2
    assert 8 * fsdp.checkpoint == alone.checkpoint
