"""Losses of a family on the device beside those of the CPU, float32 and bfloat16."""

from dataclasses import replace

import torch

from acceptance.given import Answer, Given
from acceptance.stepping import losses, stepper
from paribus.config.groups.model import EncoderDecoderModel, GPTNeoXModel, LlamaModel, ModelConfig
from paribus.config.groups.training import TrainingConfig

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
LIMITS = {"fp32": 1e-5, "bf16": 2e-3}
"""By how much of itself a loss of the first steps may differ. Later ones are told: AdamW makes whole steps of gradients
that are nothing but rounding, and an encoder-decoder has such. On one CPU its eighth loss differs by 2e-5 if layers are
compiled, its fourth by 5e-7."""


def measure(given: Given) -> Answer:
    """The largest relative difference of a family's losses, by precision; of decoders within documents too."""
    answer, model = Answer(), FAMILIES[given.of]
    for precision, limit in LIMITS.items():
        for documents in (False, True) if given.of != "encoder_decoder" else (False,):
            here, there = (
                _losses(model, precision, device, given, documents=documents)
                for device in (torch.device("cpu"), given.torch_device)
            )
            differences = [abs(one / other - 1) for one, other in zip(there, here, strict=True)]
            found = max(differences[:COMPARED])
            what = f"{precision}{' documents' if documents else ''}"
            answer.numbers |= {what: found, f"{what}, {STEPS} steps": max(differences)}
            answer.expect(found <= limit, f"{what}: losses differ by {found:.2g} from the CPU's, above {limit:g}")
            answer.expect(there[-1] < there[0], f"{what}: the loss does not fall ({there[0]:.4f}, {there[-1]:.4f})")
    return answer


def _losses(model: ModelConfig, precision: str, device: torch.device, given: Given, *, documents: bool) -> list[float]:
    rows, length, vocabulary = ROWS, model.context_length, VOCABULARY
    if given.tiny:
        rows, length, vocabulary = 2, 32, 200
        model = replace(model, width=32, ffn_width=48)
    training = TrainingConfig(precision=precision, micro_batch=rows // 2, global_batch=rows, compile="auto")
    stepped = stepper(replace(model, context_length=length), vocabulary, training, device, documents=documents)
    return losses(stepped, rows, length, vocabulary, STEPS)
