"""A step that runs out of memory is computed again with half of the micro-batch, and gives the same loss."""

from dataclasses import replace
from typing import Any

import torch

from acceptance.given import Answer, Given
from acceptance.stepping import batches, stepper
from paribus.config.groups.model import LlamaModel
from paribus.config.groups.training import TrainingConfig
from paribus.training.step import StepMemoryError, Stepper

MODEL = LlamaModel(width=1024, layers=12, heads=16, ffn_width=2816, context_length=1024)
LIMIT = 1e-3


def measure(given: Given) -> Answer:
    """The micro-batch that was left, and how far the loss is from one with memory enough."""
    model, vocabulary, rows = MODEL, 32_000, 64
    if given.tiny:
        model, vocabulary, rows = replace(MODEL, width=64, layers=2, heads=2, ffn_width=96, context_length=32), 500, 8
    training = TrainingConfig(micro_batch=rows, global_batch=rows, compile="never")
    batch = next(iter(batches(rows, model.context_length, vocabulary, 1)))
    enough = stepper(model, vocabulary, replace(training, micro_batch=2), given.torch_device).step(batch, 0.0).loss
    stepped = _short(stepper(model, vocabulary, training, given.torch_device), given)
    halvings = 0
    while True:
        try:
            loss = stepped.step(batch, 0.0).loss
            break
        except StepMemoryError:
            halvings += 1
        stepped = replace(stepped, micro_batch=stepped.micro_batch // 2)
    differs = abs(loss / enough - 1)
    answer = Answer({"halved": halvings, "micro-batch": stepped.micro_batch, "loss differs by": differs})
    answer.expect(halvings > 0, "memory never ran out")
    answer.expect(differs <= LIMIT, f"the loss differs by {differs:.2g} from one with memory enough")
    return answer


def _short(stepped: Stepper, given: Given) -> Stepper:
    """With memory for a part of the micro-batch: of a GPU's really, of a CPU's in appearance."""
    if given.device == "cuda":
        free = torch.cuda.mem_get_info()[1]
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(min(1.0, (torch.cuda.memory_allocated() + 12 * 2**30) / free))
        return stepped
    whole = stepped.prepared.wrapped

    def short(inputs: torch.Tensor, targets: torch.Tensor) -> Any:
        if len(inputs) > 2:
            raise torch.OutOfMemoryError("out of memory in appearance")
        return whole(inputs, targets)

    return replace(stepped, prepared=replace(stepped.prepared, wrapped=short))
