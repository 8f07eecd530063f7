"""What PyTorch allocates at the most in steps of training, beside the prediction; ten cases."""

import dataclasses
import gc
from dataclasses import dataclass

import torch

from acceptance.given import Answer, Given
from acceptance.stepping import batches, stepper
from paribus.config.groups.model import DecoderModel, GPTNeoXModel, LlamaModel
from paribus.config.groups.training import TrainingConfig
from paribus.modeling.memory import training_memory, training_setting
from paribus.training.fit import MARGIN

LLAMA = LlamaModel(width=1024, layers=12, heads=16, ffn_width=2816, context_length=1024)
NEOX = GPTNeoXModel(width=1024, layers=12, heads=16, ffn_width=4096, context_length=1024)


@dataclass(frozen=True)
class Case:
    """A training."""

    model: DecoderModel = LLAMA
    vocab_size: int = 32_000
    micro_batch: int = 8
    precision: str = "bf16"
    documents: bool = False
    again: bool = False
    """Whether activations are computed again."""
    compile: str = "auto"


CASES = {
    "llama": Case(),
    "llama, micro-batch 16": Case(micro_batch=16),
    "llama, computed again": Case(again=True, micro_batch=16),
    "llama, fp32": Case(precision="fp32", micro_batch=4),
    "llama, fp32, documents": Case(precision="fp32", micro_batch=4, documents=True),
    "llama, not compiled": Case(compile="never"),
    "llama, 128K tokens": Case(vocab_size=128_000),
    "llama, tied": Case(model=dataclasses.replace(LLAMA, tied_embeddings=True)),
    "llama, 4,096, documents": Case(dataclasses.replace(LLAMA, context_length=4096), micro_batch=2, documents=True),
    "gpt_neox": Case(NEOX),
}


def measure(given: Given) -> Answer:
    """Measured over predicted, by case; on a CPU, where nothing is measured, only that each is predicted and trains."""
    answer = Answer()
    for name, case in CASES.items():
        predicted, measured = _peak(case, given)
        if measured is None:
            answer.numbers[name] = f"{predicted / 1e6:.0f} MB predicted"
            continue
        answer.numbers[name] = measured / predicted
        limit = MARGIN
        answer.expect(
            measured <= limit * predicted, f"{name}: {measured / predicted:.3f} of the prediction is above {limit}"
        )
        answer.expect(
            measured >= 0.7 * predicted, f"{name}: only {measured / predicted:.3f} of the prediction was used"
        )
    return answer


def _peak(case: Case, given: Given) -> tuple[int, int | None]:
    device, model = given.torch_device, case.model
    if given.tiny:
        model = dataclasses.replace(model, width=64, layers=2, heads=2, ffn_width=96, context_length=64)
        case = dataclasses.replace(case, vocab_size=500, micro_batch=2)
    training = TrainingConfig(
        micro_batch=case.micro_batch,
        global_batch=2 * case.micro_batch,
        precision=case.precision,
        compile=case.compile,
        activation_checkpointing=case.again,
    )
    how = training_setting(training, case.precision, 1, gpu=device.type == "cuda", documents=case.documents)
    memory = training_memory(model, case.vocab_size, how)
    assert memory is not None
    if device.type == "cuda":
        gc.collect()
        # PyTorch knows no device before the first use of one.
        torch.cuda.init()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    stepped = stepper(model, case.vocab_size, training, device, documents=case.documents)
    for batch in batches(training.global_batch, model.context_length, case.vocab_size, 3):
        stepped.step(batch, 1e-4)
    del stepped
    return memory.device, torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
