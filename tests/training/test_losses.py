"""The summed cross-entropy that never has the logits of all tokens, and attention within documents."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, linear

from paribus.config.groups.model import LlamaModel
from paribus.config.groups.ordering import BestFitPacking, ConcatenatePacking, PackingConfig
from paribus.config.groups.training import TrainingConfig
from paribus.modeling.decoder import Decoder
from paribus.modeling.memory import LOSS_TOKENS
from paribus.modeling.models import build_model
from paribus.ordering.contexts import pack
from paribus.ordering.packing import Contexts
from paribus.training.losses import (
    DocumentEnd,
    SummedLoss,
    _add_product,
    document_attention,
    fused_loss_and_difference,
    loss_and_difference,
    summed_cross_entropy,
)
from support.packings import FixedOrder
from support.steps import make_batch, make_stepper

TOKENS, WIDTH, VOCABULARY = 2 * LOSS_TOKENS["cpu"] + 100, 16, 64


def drawn(dtype: torch.dtype = torch.float32, tokens: int = TOKENS) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Hidden states, output matrix and targets, some of which are missing."""
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(tokens, WIDTH, generator=generator).to(dtype).requires_grad_()
    output = torch.randn(VOCABULARY, WIDTH, generator=generator).to(dtype).requires_grad_()
    targets = torch.randint(0, VOCABULARY, (tokens,), generator=generator)
    targets[::7] = -1
    return hidden, output, targets


def exact(hidden: torch.Tensor, output: torch.Tensor, targets: torch.Tensor, smoothing: float) -> list[torch.Tensor]:
    """Loss and gradients of all logits, in double precision."""
    double = [tensor.detach().double().requires_grad_() for tensor in (hidden, output)]
    loss = cross_entropy(linear(*double), targets, ignore_index=-1, reduction="sum", label_smoothing=smoothing)
    return [loss.detach(), *torch.autograd.grad(loss / 3, double)]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_and_gradients_are_those_of_all_logits(smoothing: float) -> None:
    hidden, output, targets = drawn()
    loss = summed_cross_entropy(hidden, output, targets, smoothing)
    computed = [loss, *torch.autograd.grad(loss / 3, [hidden, output])]
    for ours, expected in zip(computed, exact(hidden, output, targets, smoothing), strict=True):
        torch.testing.assert_close(ours.double(), expected, rtol=1e-5, atol=1e-5)
    assert not computed[1][::7].any() and computed[1][1::7].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_loss_is_the_same(dtype: torch.dtype) -> None:
    hidden, output, targets = (tensor[:300] for tensor in drawn(dtype))
    logits = (hidden @ output.T).detach()
    compiled = torch.compile(fused_loss_and_difference, backend="aot_eager")
    for ours, plain in zip(compiled(logits, targets), loss_and_difference(logits.clone(), targets), strict=True):
        assert ours.dtype == plain.dtype
        torch.testing.assert_close(ours, plain, rtol=1e-5, atol=1e-6)
    losses = [summed_cross_entropy(hidden, output, targets, of_logits=of) for of in (loss_and_difference, compiled)]
    torch.testing.assert_close(*(torch.autograd.grad(loss, hidden) for loss in losses))


class OnGPU(torch.Tensor):
    """Of a CPU, and says otherwise."""

    is_cuda = True


def test_gpu_adds_products_to_the_sum_without_rounding_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def addmm(
        total: torch.Tensor, one: torch.Tensor, other: torch.Tensor, *, out_dtype: torch.dtype, out: torch.Tensor
    ) -> None:
        assert out_dtype == torch.float32
        out.copy_(total.as_subclass(torch.Tensor) + one.float() @ other.float())

    monkeypatch.setattr(torch, "addmm", addmm)
    generator = torch.Generator().manual_seed(0)
    difference, states = (torch.randn(50, size, generator=generator).bfloat16() for size in (9, 5))
    total = torch.ones(9, 5)
    _add_product(total.as_subclass(OnGPU), difference, states)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(total, 1 + difference.float().T @ states.float())


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Sums of several threads are where an order can come in."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_threads_of_a_cpu_give_the_same_bits_each_time(smoothing: float) -> None:
    """A resumed training has the bytes of one that was not interrupted only then."""
    # PyTorch divides what has more than 32,768 numbers.
    hidden, output, targets = drawn(tokens=max(TOKENS, 4 * 32_768 // WIDTH))
    results = set()
    for _ in range(10):
        loss = summed_cross_entropy(hidden, output, targets, smoothing)
        gradients = torch.autograd.grad(loss, [hidden, output])
        results.add(b"".join(each.detach().numpy().tobytes() for each in (loss, *gradients)))
    assert len(results) == 1


# Attention within documents, against models that read each document alone.

EOS, LENGTH = 31, 12
MODEL = LlamaModel(width=16, layers=2, heads=2, ffn_width=24, context_length=LENGTH, initializer_range=0.3)
SIZES = [3, 5, 1, 0, 30, 4, 7, 2, 11, 12, 0]
CONCATENATED, BEST_FIT = DocumentEnd(EOS), DocumentEnd(EOS, begins=True)
each_packing = pytest.mark.parametrize(
    ("packing", "end"),
    [
        (ConcatenatePacking(attention="document"), CONCATENATED),
        (BestFitPacking(window=None, attention="document"), BEST_FIT),
    ],
    ids=str,
)
each_end = pytest.mark.parametrize("end", [None, CONCATENATED, BEST_FIT])


def packed(packing: PackingConfig) -> tuple[Contexts, torch.Tensor, torch.Tensor]:
    """Contexts, and their inputs and targets."""
    offsets = np.concatenate([[0], np.cumsum(SIZES)])
    ids = np.random.default_rng(0).integers(0, EOS, offsets[-1])
    contexts = pack(packing, ids, offsets, FixedOrder(np.arange(len(SIZES))), EOS, LENGTH)
    return contexts, *map(torch.tensor, contexts.rows(np.arange(contexts.count)))


def alone(model: Decoder, contexts: Contexts, inputs: torch.Tensor) -> list[tuple[tuple[int, slice], torch.Tensor]]:
    """Logits (tokens, vocabulary) of each piece of the contexts read by itself, and its row and columns.

    Where contexts begin with an end-of-document token, a piece is read from the one before it on.
    """
    places = []
    for row in range(contexts.count):
        pieces = contexts.pieces([row])
        starts = zip(pieces.columns - pieces.lead, pieces.lengths, strict=True)
        places += [(row, slice(start, min(start + n, LENGTH))) for start, n in starts if start < LENGTH]
    return [(place, model.logits(inputs[place][None])[0]) for place in places]


@each_packing
@torch.no_grad()
def test_logits_of_a_packed_row_are_those_of_each_document_alone(packing: PackingConfig, end: DocumentEnd) -> None:
    model, (contexts, inputs, _) = build_model(MODEL, 32, 0), packed(packing)
    together, across = model.logits(inputs, document_attention(inputs, end)), model.logits(inputs)
    expected = alone(model, contexts, inputs)
    for place, logits in expected:
        torch.testing.assert_close(together[place], logits, rtol=0, atol=1e-5)
    assert max(float((across[place] - logits).abs().max()) for place, logits in expected) > 0.1
    # In bfloat16 they differ by no more than its rounding.
    model.computes_in = torch.bfloat16
    together = model.logits(inputs, document_attention(inputs, end))
    rounded = alone(model, contexts, inputs)
    difference = torch.cat([together[place] - logits for place, logits in rounded])
    rounding = torch.cat([logits - sharp for (_, logits), (_, sharp) in zip(rounded, expected, strict=True)])
    assert difference.square().mean().sqrt() < 1.5 * rounding.square().mean().sqrt()


@each_packing
def test_gradients_of_a_packed_batch_are_those_of_each_document_alone(packing: PackingConfig, end: DocumentEnd) -> None:
    model, (contexts, inputs, targets) = build_model(MODEL, 32, 0), packed(packing)
    parameters = list(model.parameters())
    loss = SummedLoss(model, end)(inputs, targets)
    expected = sum(
        cross_entropy(logits, targets[place], ignore_index=-1, reduction="sum")
        for place, logits in alone(model, contexts, inputs)
    )
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=0)
    for ours, gradient in zip(*(torch.autograd.grad(each, parameters) for each in (loss, expected)), strict=True):
        torch.testing.assert_close(ours, gradient, rtol=1e-4, atol=1e-5)


@each_end
def test_padding_changes_neither_loss_nor_gradient(end: DocumentEnd | None) -> None:
    model = build_model(MODEL, 32, 0)
    row, following = torch.tensor([[1, 2, 3, EOS, 4, 5]]), torch.tensor([[2, 3, EOS, 4, 5, EOS]])
    padded = torch.cat([row, torch.full((1, 6), EOS)], dim=1), torch.cat([following, torch.full((1, 6), -1)], dim=1)
    losses = [SummedLoss(model, end)(*pair) for pair in ((row, following), padded)]
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-6, atol=0)
    gradients = [torch.autograd.grad(loss, list(model.parameters())) for loss in losses]
    for short, long in zip(*gradients, strict=True):
        assert (short - long).norm() <= 1e-5 * long.norm()  # single entries round by what the sums are of


@each_end
def test_loss_of_a_step_is_the_mean_over_the_targets_of_the_global_batch(end: DocumentEnd | None) -> None:
    _, inputs, targets = packed(BestFitPacking(window=4))
    losses = []
    for micro_batch in (1, 2, len(inputs)):
        training = TrainingConfig(device="cpu", precision="fp32", micro_batch=micro_batch)
        stepper = make_stepper(build_model(MODEL, 32, 0), training, end)
        result = stepper.step(make_batch(inputs.numpy(), targets.numpy()), rate=0.01)
        losses.append((result.loss, result.gradient_norm))
    total = SummedLoss(build_model(MODEL, 32, 0), end)(inputs, targets).item()
    assert (targets < 0).any()
    assert losses[0][0] == pytest.approx(total / (targets >= 0).sum().item(), rel=1e-5)
    assert np.allclose(losses, losses[0], rtol=1e-5)
