"""The summed cross-entropy that never has the logits of all tokens."""

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


def drawn(dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Hidden states, output matrix and targets, some of which are not there."""
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(TOKENS, WIDTH, generator=generator).to(dtype).requires_grad_()
    output = torch.randn(VOCABULARY, WIDTH, generator=generator).to(dtype).requires_grad_()
    targets = torch.randint(0, VOCABULARY, (TOKENS,), generator=generator)
    targets[::7] = -1
    return hidden, output, targets


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Sums of several threads are where an order can come in."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def expected(hidden: torch.Tensor, output: torch.Tensor, targets: torch.Tensor) -> list[torch.Tensor]:
    """Loss and gradients in double precision."""
    exact = [tensor.detach().double().requires_grad_() for tensor in (hidden, output)]
    loss = cross_entropy(linear(*exact), targets, ignore_index=-1, reduction="sum")
    return [loss.detach(), *torch.autograd.grad(loss / 3, exact)]


def test_loss_and_gradients_are_those_of_all_logits() -> None:
    hidden, output, targets = drawn()
    loss = summed_cross_entropy(hidden, output, targets)
    found = [loss, *torch.autograd.grad(loss / 3, [hidden, output])]
    for ours, exact in zip(found, expected(hidden, output, targets), strict=True):
        torch.testing.assert_close(ours.double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("weights", [torch.float32, torch.bfloat16])
def test_in_bfloat16_sums_are_in_float32(weights: torch.dtype) -> None:
    hidden, output, targets = drawn(torch.bfloat16)
    output = output.detach().to(weights).requires_grad_()
    loss = summed_cross_entropy(hidden, output, targets)
    assert loss.dtype == torch.float32
    found = [loss, *torch.autograd.grad(loss / 3, [hidden, output])]
    exact = expected(hidden.bfloat16(), output.bfloat16(), targets)
    assert abs(float(loss.detach()) / float(exact[0]) - 1) < 2e-4
    for ours, sought in zip(found[1:], exact[1:], strict=True):
        assert float((ours.double() - sought).norm() / sought.norm()) < 5e-3


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_compiled_gives_the_same(dtype: torch.dtype) -> None:
    hidden, output, targets = (tensor[:300] for tensor in drawn(dtype))
    logits = (hidden @ output.T).detach()
    compiled = torch.compile(fused_loss_and_difference, backend="aot_eager")
    expected = loss_and_difference(logits.clone(), targets)
    for found, sought in zip(compiled(logits, targets), expected, strict=True):
        assert found.dtype == sought.dtype
        torch.testing.assert_close(found, sought, rtol=1e-5, atol=1e-6)
    given = [
        torch.autograd.grad(summed_cross_entropy(hidden, output, targets, of_logits=of), hidden)
        for of in (loss_and_difference, compiled)
    ]
    torch.testing.assert_close(*given)


def test_targets_that_are_not_there_have_no_gradient() -> None:
    hidden, output, targets = drawn()
    summed_cross_entropy(hidden, output, targets).backward()
    assert hidden.grad is not None
    assert not hidden.grad[::7].any()
    assert hidden.grad[1::7].any()


class OnGPU(torch.Tensor):
    """Of a CPU, and says otherwise."""

    is_cuda = True


def test_a_gpu_adds_products_to_the_sum_without_rounding_them(monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_threads_of_a_cpu_give_the_same_bits_each_time(smoothing: float, two_threads: None) -> None:
    """A resumed training has the bytes of one that was not interrupted only then."""
    generator = torch.Generator().manual_seed(0)
    tokens = max(TOKENS, 4 * 32_768 // WIDTH)  # PyTorch divides what has more than 32,768 numbers
    hidden = torch.randn(tokens, WIDTH, generator=generator).requires_grad_()
    output = torch.randn(VOCABULARY, WIDTH, generator=generator).requires_grad_()
    targets = torch.randint(0, VOCABULARY, (tokens,), generator=generator)
    found = set()
    for _ in range(10):
        loss = summed_cross_entropy(hidden, output, targets, smoothing)
        gradients = torch.autograd.grad(loss, [hidden, output])
        found.add(b"".join(each.detach().numpy().tobytes() for each in (loss, *gradients)))
    assert len(found) == 1


# Attention within documents, against models that read each document alone.

EOS, LENGTH = 31, 12
MODEL = LlamaModel(width=16, layers=2, heads=2, ffn_width=24, context_length=LENGTH, initializer_range=0.3)
SIZES = [3, 5, 1, 0, 30, 4, 7, 2, 11, 12, 0]
PACKINGS = [
    (ConcatenatePacking(attention="document"), DocumentEnd(EOS)),
    (BestFitPacking(window=None, attention="document"), DocumentEnd(EOS, begins=True)),
]
each = pytest.mark.parametrize(("packing", "end"), PACKINGS, ids=str)


def packed(packing: PackingConfig) -> Contexts:
    offsets = np.concatenate([[0], np.cumsum(SIZES)])
    ids = np.random.default_rng(0).integers(0, EOS, offsets[-1])
    return pack(packing, ids, offsets, FixedOrder(np.arange(len(SIZES))), EOS, LENGTH)


def tensors(contexts: Contexts) -> tuple[torch.Tensor, torch.Tensor]:
    inputs, targets = contexts.rows(np.arange(contexts.count))
    return torch.tensor(inputs), torch.tensor(targets)


def alone(model: Decoder, contexts: Contexts, index: int) -> list[tuple[slice, torch.Tensor]]:
    """Logits (tokens, vocabulary) of each piece of a context read by itself, and where it stands in the row.

    Where contexts begin with an end-of-document token, a piece is read from the one before it on.
    """
    pieces, inputs = contexts.pieces([index]), tensors(contexts)[0][index]
    starts = zip(pieces.columns - pieces.lead, pieces.lengths, strict=True)
    places = [slice(a, min(a + n, LENGTH)) for a, n in starts if a < LENGTH]
    return [(place, model.logits(inputs[place][None])[0]) for place in places]


def test_a_token_attends_to_those_before_it_in_its_document() -> None:
    row = torch.tensor([[5, 6, EOS, 7, EOS, EOS, 8, 9]])
    for end, document in ((PACKINGS[0][1], [0, 0, 0, 1, 1, 2, 3, 3]), (PACKINGS[1][1], [0, 0, 1, 1, 2, 3, 3, 3])):
        expected = [[document[i] == document[j] and j <= i for j in range(8)] for i in range(8)]
        assert document_attention(row, end)[0, 0].tolist() == expected


@each
@torch.no_grad()
def test_logits_of_a_packed_row_are_those_of_each_document_alone(packing: PackingConfig, end: DocumentEnd) -> None:
    model, contexts = build_model(MODEL, 32, 0), packed(packing)
    inputs, _ = tensors(contexts)
    together = model.logits(inputs, document_attention(inputs, end))
    across = model.logits(inputs)
    largest = 0.0
    for index in range(contexts.count):
        for place, logits in alone(model, contexts, index):
            torch.testing.assert_close(together[index, place], logits, rtol=0, atol=1e-5)
            largest = max(largest, float((across[index, place] - logits).abs().max()))
    assert largest > 0.1


@each
@torch.no_grad()
def test_in_bfloat16_they_differ_by_no_more_than_its_rounding(packing: PackingConfig, end: DocumentEnd) -> None:
    model, contexts = build_model(MODEL, 32, 0), packed(packing)
    inputs, _ = tensors(contexts)
    exact = [logits for index in range(contexts.count) for _, logits in alone(model, contexts, index)]
    model.computes_in = torch.bfloat16
    together = model.logits(inputs, document_attention(inputs, end))
    by_itself = [(together[i, place], x) for i in range(contexts.count) for place, x in alone(model, contexts, i)]
    difference = torch.cat([row - logits for row, logits in by_itself]).square().mean().sqrt()
    rounding = torch.cat([row[1] - logits for row, logits in zip(by_itself, exact, strict=True)]).square().mean().sqrt()
    assert difference < 1.5 * rounding


@each
def test_gradients_of_a_packed_batch_are_those_of_each_document_alone(packing: PackingConfig, end: DocumentEnd) -> None:
    model, contexts = build_model(MODEL, 32, 0), packed(packing)
    inputs, targets = tensors(contexts)
    loss = SummedLoss(model, end)(inputs, targets)
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    expected = sum(
        cross_entropy(logits, targets[index, place], ignore_index=-1, reduction="sum")
        for index in range(contexts.count)
        for place, logits in alone(model, contexts, index)
    )
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=0)
    for found, sought in zip(gradients, torch.autograd.grad(expected, list(model.parameters())), strict=True):
        torch.testing.assert_close(found, sought, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("document_end", [None, DocumentEnd(EOS), DocumentEnd(EOS, begins=True)])
def test_padding_changes_neither_loss_nor_gradient(document_end: DocumentEnd | None) -> None:
    model = build_model(MODEL, 32, 0)
    row = torch.tensor([[1, 2, 3, EOS, 4, 5]])
    following = torch.tensor([[2, 3, EOS, 4, 5, EOS]])
    padded = torch.cat([row, torch.full((1, 6), EOS)], dim=1), torch.cat([following, torch.full((1, 6), -1)], dim=1)
    losses = [SummedLoss(model, document_end)(*pair) for pair in ((row, following), padded)]
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-6, atol=0)
    gradients = [torch.autograd.grad(loss, list(model.parameters())) for loss in losses]
    for short, long in zip(*gradients, strict=True):
        assert (short - long).norm() <= 1e-5 * long.norm()  # single entries round by what the sums are of


@pytest.mark.parametrize("document_end", [None, DocumentEnd(EOS), DocumentEnd(EOS, begins=True)])
def test_the_loss_of_a_step_is_the_mean_over_the_targets_of_the_global_batch(document_end: DocumentEnd | None) -> None:
    inputs, targets = (tokens.numpy() for tokens in tensors(packed(BestFitPacking(window=4))))
    losses = []
    for micro_batch in (1, 2, len(inputs)):
        training = TrainingConfig(device="cpu", precision="fp32", micro_batch=micro_batch)
        stepper = make_stepper(build_model(MODEL, 32, 0), training, document_end)
        result = stepper.step(make_batch(inputs, targets), rate=0.01)
        losses.append((result.loss, result.gradient_norm))
    model = build_model(MODEL, 32, 0)
    total = SummedLoss(model, document_end)(torch.tensor(inputs), torch.tensor(targets)).item()
    assert (targets < 0).any()
    assert losses[0][0] == pytest.approx(total / (targets >= 0).sum(), rel=1e-5)
    assert np.allclose(losses, losses[0], rtol=1e-5)
