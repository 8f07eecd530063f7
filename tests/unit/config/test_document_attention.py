"""Attention within documents, against models that read each document alone."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from paribus.config.groups.model import LlamaModel
from paribus.config.groups.ordering import BestFitPacking, ConcatenatePacking, PackingConfig
from paribus.config.groups.training import TrainingConfig
from paribus.modeling.decoder import Decoder
from paribus.modeling.models import build_model
from paribus.ordering.contexts import pack
from paribus.ordering.packing import Contexts
from paribus.training.losses import DocumentEnd, SummedLoss, document_attention
from support.packings import FixedOrder
from support.steps import make_batch, make_stepper

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
