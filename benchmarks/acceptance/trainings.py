"""Steps of training on random tokens, without the artefacts of a run: losses and gradients, and memory."""

import gc
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import torch

from acceptance.given import Answer, Given
from paribus.config.groups.model import DecoderModel, EncoderDecoderModel, GPTNeoXModel, LlamaModel, ModelConfig
from paribus.config.groups.training import TrainingConfig
from paribus.modeling.memory import training_memory, training_setting
from paribus.modeling.models import build_model
from paribus.training.data import Batch
from paribus.training.fit import MARGIN
from paribus.training.losses import DocumentEnd
from paribus.training.parallel import prepare
from paribus.training.step import Stepper

EOS, CPU = 0, torch.device("cpu")
FAMILIES: dict[str, ModelConfig] = {
    "llama": LlamaModel(width=256, layers=4, heads=4, ffn_width=688),
    "gpt_neox": GPTNeoXModel(width=256, layers=4, heads=4, ffn_width=1024),
    "encoder_decoder": EncoderDecoderModel(
        width=256, encoder_layers=2, decoder_layers=2, heads=4, ffn_width=512, positions=257, dropout=0.0
    ),
}
STEPS, COMPARED = 8, 4
"""Steps, and those whose losses must agree. Later ones are told: AdamW makes whole steps of gradients that are nothing
but rounding, and an encoder-decoder has such. On one CPU its eighth loss differs by 2e-5 if layers are compiled, its
fourth by 5e-7."""
LIMITS = {"fp32": 1e-5, "bf16": 2e-3}
"""By how much of itself a loss may differ."""
WIDE = 0.1
"""Standard deviation of first weights for gradients: with that of training, positions and documents hardly matter."""
ROUNDING, TWICE = 1e-4, 2.0
"""Distance of float32 gradients that rounding makes, and the share of the CPU's distance in bfloat16."""


def losses(given: Given) -> Answer:
    """The largest relative difference of a family's losses and gradients, by precision; of decoders by documents too.

    Gradients of a batch, whose distance from those of the CPU in float32 may be `TWICE` that of the CPU in bfloat16,
    see what losses of a few steps do not: a mask that is wrong, or positions that are not turned back.
    """
    answer, there = Answer(), given.torch_device
    for documents in (False, True) if given.of != "encoder_decoder" else (False,):
        exact = Family(given, "fp32", documents)
        expected = exact.gradients(CPU)
        for precision, limit in LIMITS.items():
            family, what = Family(given, precision, documents), f"{precision}{' documents' if documents else ''}"
            here, found = family.losses(CPU), family.losses(there)
            apart = difference(found[:COMPARED], here[:COMPARED])
            answer.numbers |= {what: apart, f"{what}, {STEPS} steps": difference(found, here)}
            answer.expect(apart <= limit, f"{what}: losses differ by {apart:.2g} from the CPU's, above {limit:g}")
            answer.expect(found[-1] < found[0], f"{what}: the loss does not fall ({found[0]:.4f}, {found[-1]:.4f})")
            most = ROUNDING if precision == "fp32" else TWICE * distance(family.gradients(CPU), expected)
            apart = distance(family.gradients(there), expected)
            answer.numbers[f"{what} gradients"] = {"from float32": apart, "at most": most}
            answer.expect(
                apart <= most, f"{what}: gradients are {apart:.2g} from the CPU's in float32, above {most:.2g}"
            )
    return answer


@dataclass(frozen=True)
class Family:
    """A model of one family in one precision."""

    given: Given
    precision: str
    documents: bool

    def losses(self, device: torch.device) -> list[float]:
        """Losses of steps at a learning rate that makes them differ."""
        model, training, vocab_size = self.shape()
        stepper = stepper_of(model, vocab_size, training, device, documents=self.documents)
        found = []
        for batch in batches(training.global_batch, model.context_length, vocab_size, STEPS):
            result = stepper.step(batch, 1e-3)
            if result.problem:
                raise RuntimeError(f"step {batch.step}: {result.problem}")
            found.append(result.loss)
        return found

    def gradients(self, device: torch.device) -> dict[str, torch.Tensor]:
        """Of the summed loss of one batch and `WIDE` first weights, by the name of the parameter; on the CPU."""
        model, training, vocab_size = self.shape()
        wide = replace(model, initializer_range=WIDE)
        prepared = stepper_of(wide, vocab_size, training, device, documents=self.documents).prepared
        batch = next(batches(training.global_batch, model.context_length, vocab_size, 1))
        prepared.wrapped(batch.inputs.to(device), batch.targets.to(device)).backward()
        named = {name: one.grad for name, one in prepared.model.named_parameters() if one.grad is not None}
        return {name: gradient.detach().float().cpu() for name, gradient in named.items()}

    def shape(self) -> tuple[ModelConfig, TrainingConfig, int]:
        """The model, how it is trained, and the tokens of its vocabulary."""
        rows, length, vocab_size = (2, 32, 200) if self.given.tiny else (8, 256, 4096)
        model = replace(FAMILIES[self.given.of], context_length=length)
        if self.given.tiny:
            model = replace(model, width=32, ffn_width=48)
        return model, TrainingConfig(precision=self.precision, micro_batch=rows // 2, global_batch=rows), vocab_size


LLAMA = LlamaModel(width=1024, layers=12, heads=16, ffn_width=2816, context_length=1024)
NEOX = GPTNeoXModel(width=1024, layers=12, heads=16, ffn_width=4096, context_length=1024)


@dataclass(frozen=True)
class Case:
    """A training whose memory is predicted."""

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
    "llama, tied": Case(model=replace(LLAMA, tied_embeddings=True)),
    "llama, 4,096, documents": Case(replace(LLAMA, context_length=4096), micro_batch=2, documents=True),
    "gpt_neox": Case(NEOX),
}


def memory(given: Given) -> Answer:
    """Measured over predicted, by case; on a CPU, where nothing is measured, only that each is predicted and trains."""
    answer = Answer()
    for name, case in CASES.items():
        predicted, measured = peak(case, given)
        if measured is None:
            answer.numbers[name] = f"{predicted / 1e6:.0f} MB predicted"
            continue
        answer.numbers[name] = share = measured / predicted
        answer.expect(share <= MARGIN, f"{name}: {share:.3f} of the prediction is above {MARGIN}")
        answer.expect(share >= 0.7, f"{name}: only {share:.3f} of the prediction was used")
    return answer


def peak(case: Case, given: Given) -> tuple[int, int | None]:
    """Bytes of a training that are predicted, and what PyTorch allocates on a GPU at the most."""
    device, model = given.torch_device, case.model
    if given.tiny:
        model = replace(model, width=64, layers=2, heads=2, ffn_width=96, context_length=64)
        case = replace(case, vocab_size=500, micro_batch=2)
    training = TrainingConfig(
        micro_batch=case.micro_batch,
        global_batch=2 * case.micro_batch,
        precision=case.precision,
        compile=case.compile,
        activation_checkpointing=case.again,
    )
    how = training_setting(training, case.precision, 1, gpu=not given.tiny, documents=case.documents)
    predicted = training_memory(model, case.vocab_size, how)
    assert predicted is not None
    if not given.tiny:
        gc.collect()
        # PyTorch knows no device before the first use of one.
        torch.cuda.init()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    stepper = stepper_of(model, case.vocab_size, training, device, documents=case.documents)
    for batch in batches(training.global_batch, model.context_length, case.vocab_size, 3):
        stepper.step(batch, 1e-4)
    return predicted.device, None if given.tiny else torch.cuda.max_memory_allocated(device)


def stepper_of(
    model: ModelConfig, vocab_size: int, training: TrainingConfig, device: torch.device, *, documents: bool
) -> Stepper:
    """What makes steps of a model whose weights are those of seed 0; what it takes of an accelerator does nothing."""
    accelerator = SimpleNamespace(
        device=device,
        num_processes=1,
        prepare_model=lambda model: model,
        unwrap_model=lambda model: model,
        no_sync=lambda model: nullcontext(),
        backward=torch.Tensor.backward,
        reduce=lambda value, how: value,
        clip_grad_norm_=torch.nn.utils.clip_grad_norm_,
    )
    built = build_model(model, vocab_size, 0, eos_id=EOS)
    prepared = prepare(accelerator, built, training, DocumentEnd(EOS) if documents else None)
    parameters = list(prepared.model.parameters())
    return Stepper(accelerator, prepared, parameters, training.micro_batch, training.gradient_clip, math.inf)


def batches(rows: int, length: int, vocab_size: int, steps: int) -> Iterator[Batch]:
    """Random tokens, the same for all, one in 200 of which ends a document; every token predicts the next."""
    random = np.random.default_rng(0)
    for step in range(steps):
        tokens = torch.from_numpy(random.integers(1, vocab_size, (rows, length + 1)))
        tokens[torch.from_numpy(random.random(tokens.shape) < 0.005)] = EOS
        yield Batch(step, np.arange(rows), tokens[:, :-1].clone(), tokens[:, 1:].clone(), rows * length)


def difference(found: Sequence[float], expected: Sequence[float]) -> float:
    """By how much of itself a number differs at the most; infinite where one is not finite."""
    if not all(map(math.isfinite, (*found, *expected))):
        return math.inf
    return max(abs(one / other - 1) for one, other in zip(found, expected, strict=True))


def distance(found: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor]) -> float:
    """The largest of all parameters of the norm of a difference over that of what is expected.

    Of gradients that are nothing but rounding (a bias that all keys have, say) it is over a share of the largest norm.
    """
    norms = {name: float(tensor.norm()) for name, tensor in expected.items()}
    least = 1e-3 * max(norms.values())
    parts = [float((found[name] - tensor).norm()) / max(norms[name], least) for name, tensor in expected.items()]
    return max(parts) if all(map(math.isfinite, parts)) else math.inf
