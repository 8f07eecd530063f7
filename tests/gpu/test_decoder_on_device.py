"""What of a decoder differs from device to device: on the first GPU where there is one, else on the CPU."""

import dataclasses

import pytest
import torch

from paribus.config.groups.model import DecoderModel
from paribus.modeling.decoder import Decoder
from paribus.modeling.models import build_model
from paribus.training.losses import (
    DocumentEnd,
    SummedLoss,
    document_attention,
    document_bounds,
    fused_loss_and_difference,
    loss_and_difference,
    summed_cross_entropy,
)
from support.models import GPT_NEOX, LLAMA
from support.transformers_models import in_transformers

pytestmark = pytest.mark.gpu
DEVICE = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
GPU = DEVICE.type == "cuda"
MODELS = {
    "llama": dataclasses.replace(LLAMA, width=128, ffn_width=256, context_length=64, initializer_range=0.1),
    "gpt_neox": dataclasses.replace(GPT_NEOX, width=128, ffn_width=256, context_length=64, initializer_range=0.1),
}
each = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
EOS = 3


def built(model: DecoderModel) -> Decoder:
    decoder: Decoder = build_model(model, 512, 0)
    return decoder.to(DEVICE).train()


def drawn(rows: int = 4, length: int = 64) -> torch.Tensor:
    ids = torch.randint(0, 512, (rows, length), generator=torch.Generator().manual_seed(0))
    return ids.masked_fill(ids % 11 == 0, EOS).to(DEVICE)


def gradients(loss: SummedLoss, ids: torch.Tensor) -> list[torch.Tensor]:
    return list(torch.autograd.grad(loss(ids, ids), list(loss.parameters())))


def close(found: list[torch.Tensor], sought: list[torch.Tensor], limit: float) -> None:
    for ours, expected in zip(found, sought, strict=True):
        assert (ours - expected).norm() <= limit * expected.norm() + 1e-9


@each
def test_logits_are_those_of_transformers(model: DecoderModel) -> None:
    decoder, ids = built(model), drawn()
    with torch.no_grad():
        sought = in_transformers(decoder).to(DEVICE)(ids).logits
        torch.testing.assert_close(decoder.logits(ids), sought, rtol=0, atol=1e-4)


@each
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_layers_and_loss_give_the_gradients_of_uncompiled_ones(
    model: DecoderModel, dtype: torch.dtype
) -> None:
    torch._dynamo.reset()
    decoder, ids = built(model), drawn()
    decoder.computes_in = dtype
    loss = SummedLoss(decoder)
    sought = gradients(loss, ids)
    backend = "inductor" if GPU else "aot_eager"
    for layer in decoder.layers:
        layer.compile(backend=backend)
    loss.of_logits = torch.compile(fused_loss_and_difference, backend=backend)
    close(gradients(loss, ids), sought, 1e-4 if dtype == torch.float32 else 3e-2)


@each
@pytest.mark.skipif(not GPU, reason="flash attention of documents has a kernel for GPUs only")
@pytest.mark.parametrize("compiled", [False, True])
def test_documents_without_a_mask_are_those_with_one(model: DecoderModel, compiled: bool) -> None:
    torch._dynamo.reset()
    decoder, ids = built(model), drawn()
    decoder.computes_in = torch.bfloat16
    if compiled:
        for layer in decoder.layers:
            layer.compile()
    found = []
    end = DocumentEnd(EOS)
    for mask in (document_bounds(ids, end), document_attention(ids, end)):
        hidden = decoder(ids, mask=mask)
        total = summed_cross_entropy(hidden.flatten(0, 1), decoder.output_weight, ids.flatten())
        found.append(list(torch.autograd.grad(total, list(decoder.parameters()))))
    close(*found, 3e-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_fused_loss_is_the_plain_one(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = (3 * torch.randn(700, 1000, generator=generator)).to(DEVICE, dtype)
    targets = torch.randint(-1, 1000, (700,), generator=generator).to(DEVICE)
    compiled = torch.compile(fused_loss_and_difference, backend="inductor" if GPU else "aot_eager")
    expected = loss_and_difference(logits.clone(), targets)
    for found, sought in zip(compiled(logits, targets), expected, strict=True):
        torch.testing.assert_close(found, sought, rtol=1e-2 if dtype == torch.bfloat16 else 1e-4, atol=1e-5)


def test_the_output_matrix_has_gradients_of_sums_in_float32() -> None:
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(20_000, 64, generator=generator).to(DEVICE, torch.bfloat16).requires_grad_()
    output = torch.randn(512, 64, generator=generator).to(DEVICE).requires_grad_()
    targets = torch.randint(0, 512, (20_000,), generator=generator).to(DEVICE)
    (found,) = torch.autograd.grad(summed_cross_entropy(hidden, output, targets), [output])
    logits = hidden.detach() @ output.detach().bfloat16().T
    _, difference = loss_and_difference(logits, targets)
    exact = difference.double().T @ hidden.detach().double()
    assert (found - exact).norm() <= (2e-4 if GPU else 5e-3) * exact.norm()
