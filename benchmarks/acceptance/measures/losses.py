"""Losses of a family on the device beside those of the CPU, float32 and bfloat16."""

from dataclasses import replace

import torch

from acceptance.given import Answer, Given
from acceptance.stepping import batches, difference, distance, gradients, losses, stepper
from paribus.config.groups.model import EncoderDecoderModel, GPTNeoXModel, LlamaModel, ModelConfig
from paribus.config.groups.training import TrainingConfig
from paribus.training.step import Stepper

FAMILIES: dict[str, ModelConfig] = {
    "llama": LlamaModel(width=256, layers=4, heads=4, ffn_width=688, context_length=256),
    "gpt_neox": GPTNeoXModel(width=256, layers=4, heads=4, ffn_width=1024, context_length=256),
    "encoder_decoder": EncoderDecoderModel(
        width=256,
        encoder_layers=2,
        decoder_layers=2,
        heads=4,
        ffn_width=512,
        context_length=256,
        positions=257,
        dropout=0.0,
    ),
}
VOCABULARY, ROWS, STEPS, COMPARED = 4096, 8, 8, 4
WIDE = 0.1
"""Standard deviation of first weights for gradients: with that of training, positions and documents hardly matter."""
LIMITS = {"fp32": 1e-5, "bf16": 2e-3}
"""By how much of itself a loss of the first steps may differ. Later ones are told: AdamW makes whole steps of gradients
that are nothing but rounding, and an encoder-decoder has such. On one CPU its eighth loss differs by 2e-5 if layers are
compiled, its fourth by 5e-7."""
ROUNDING = 1e-4
"""Distance of float32 gradients that rounding makes."""
TWICE = 2.0
"""Of the distance that bfloat16 makes on the CPU."""


def measure(given: Given) -> Answer:
    """The largest relative difference of a family's losses and gradients, by precision; of decoders by documents too.

    Gradients of a batch, whose distance from those of the CPU in float32 may be `TWICE` that of the CPU in bfloat16,
    see what losses of a few steps do not: a mask that is wrong, or positions that are not turned back.
    """
    answer, model, here = Answer(), FAMILIES[given.of], torch.device("cpu")
    for documents in (False, True) if given.of != "encoder_decoder" else (False,):
        expected = gradients_of(model, "fp32", here, given, documents=documents)
        for precision, limit in LIMITS.items():
            what = f"{precision}{' documents' if documents else ''}"
            _compare_losses(answer, what, model, precision, given, documents=documents, limit=limit)
            found = distance(gradients_of(model, precision, given.torch_device, given, documents=documents), expected)
            most = ROUNDING
            if precision == "bf16":
                most = TWICE * distance(gradients_of(model, precision, here, given, documents=documents), expected)
            answer.numbers[f"{what} gradients"] = {"from float32": found, "at most": most}
            answer.expect(
                found <= most, f"{what}: gradients are {found:.2g} from the CPU's in float32, above {most:.2g}"
            )
    return answer


def _compare_losses(
    answer: Answer, what: str, model: ModelConfig, precision: str, given: Given, *, documents: bool, limit: float
) -> None:
    here, there = (
        _losses(model, precision, device, given, documents=documents)
        for device in (torch.device("cpu"), given.torch_device)
    )
    found = difference(there[:COMPARED], here[:COMPARED])
    answer.numbers |= {what: found, f"{what}, {STEPS} steps": difference(there, here)}
    answer.expect(found <= limit, f"{what}: losses differ by {found:.2g} from the CPU's, above {limit:g}")
    answer.expect(there[-1] < there[0], f"{what}: the loss does not fall ({there[0]:.4f}, {there[-1]:.4f})")


def _losses(model: ModelConfig, precision: str, device: torch.device, given: Given, *, documents: bool) -> list[float]:
    stepped = _stepper(model, precision, device, given, documents=documents)
    return losses(stepped, *_sizes(given), STEPS)


def gradients_of(
    model: ModelConfig, precision: str, device: torch.device, given: Given, *, documents: bool
) -> dict[str, torch.Tensor]:
    """Of one batch and `WIDE` first weights, by the name of the parameter."""
    wide = replace(model, initializer_range=WIDE)
    stepped = _stepper(wide, precision, device, given, documents=documents)
    return gradients(stepped, next(batches(*_sizes(given), 1)))


def _sizes(given: Given) -> tuple[int, int, int]:
    """Rows of a batch, their length, and tokens of the vocabulary."""
    return (2, 32, 200) if given.tiny else (ROWS, 256, VOCABULARY)


def _stepper(model: ModelConfig, precision: str, device: torch.device, given: Given, *, documents: bool) -> Stepper:
    rows, length, vocabulary = _sizes(given)
    shape = replace(model, width=32, ffn_width=48) if given.tiny else model
    training = TrainingConfig(precision=precision, micro_batch=rows // 2, global_batch=rows, compile="auto")
    return stepper(replace(shape, context_length=length), vocabulary, training, device, documents=documents)
