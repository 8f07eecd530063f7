"""A training run of a few thousand parameters: its configuration, its input artefacts, and how to run its stage."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from paribus.config.groups.corpus import ParallelCorpus
from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.model import EncoderDecoderModel, LlamaModel
from paribus.config.groups.ordering import ConcatenatePacking, PackingConfig, PairPacking
from paribus.config.groups.training import BudgetConfig, EqualStepsBudget, EqualTokensBudget, TrainingConfig
from paribus.config.schema import RunConfig
from paribus.ordering.contexts import build as build_contexts
from paribus.ordering.orders import write_order
from paribus.stage import JSON, SilentListener, StageContext
from paribus.tokenization import Tokenizer
from paribus.tokenization.encoded_corpus import EncodedCorpusWriter
from paribus.training.train import build
from support.run_config import run_config
from support.stages import context_at

STEPS, EVERY = 14, 4
TRAINING = TrainingConfig(
    learning_rate=0.01, warmup_share=0.15, global_batch=4, checkpoints=4, keep_checkpoints=2, micro_batch=3,
    checkpoint_every=EVERY, device="cpu", log_every=5,
)  # fmt: skip
MODEL = LlamaModel(width=16, layers=2, heads=2, ffn_width=24, context_length=16)
PACKING = ConcatenatePacking()
TRANSLATOR = EncoderDecoderModel(
    width=32, encoder_layers=1, decoder_layers=1, heads=2, ffn_width=48, context_length=8, positions=8, dropout=0.1
)
PAIR_BUDGET = EqualStepsBudget(steps=STEPS)
BUDGET = EqualTokensBudget(tokens=STEPS * TRAINING.global_batch * MODEL.context_length)


def config(
    budget: BudgetConfig = BUDGET, training: TrainingConfig = TRAINING, packing: PackingConfig = PACKING, **groups: Any
) -> RunConfig:
    """A run with a model of a few thousand parameters."""
    return run_config(**{"packing": packing, "model": MODEL, "budget": budget, "training": training} | groups)


def write_inputs(
    root: Path, text: str = "all else being equal ", tokenizer: Tokenizer | None = None
) -> dict[str, Path]:
    """Artefacts `tokens` and `order` of 40 short documents, in bytes unless a tokenizer is given."""
    tokenizer = tokenizer or Tokenizer.train((), algorithm="bytes", special_tokens=("<|endoftext|>",))
    texts = [text * (1 + number % 3) + str(number) for number in range(40)]
    with EncodedCorpusWriter(root / "tokens", tokenizer) as writer:
        for document in texts:
            ids = tokenizer.encode(document)
            writer.append(ids, np.array([len(ids)]), np.array([len(document.encode())]))
    (root / "order").mkdir()
    write_order(root / "order", np.random.default_rng(3).permutation(len(texts)), kept=len(texts), removed=0)
    return {"tokens": root / "tokens", "order": root / "order"}


def pair_config(**changes: Any) -> RunConfig:
    """A run of a tiny encoder-decoder with dropout on the pairs of `write_pair_inputs`."""
    return config(
        budget=PAIR_BUDGET,
        packing=PairPacking(),
        model=TRANSLATOR,
        corpus=ParallelCorpus(source=("pairs.en",), target=("pairs.de",)),
        evaluation=EvaluationConfig(tasks=()),
        **changes,
    )


def pair_texts(number: int) -> list[tuple[str, str]]:
    """Words of one to six of the letters a to d, and the same written backwards."""
    draw = random.Random(5)
    words = ["".join(draw.choices("abcd", k=draw.randint(1, 6))) for _ in range(number)]
    return [(word, word[::-1]) for word in words]


def write_pair_inputs(root: Path, number: int = 60) -> dict[str, Path]:
    """Artefacts `tokens` and `order` of pairs, in bytes."""
    tokenizer = Tokenizer.train((), algorithm="bytes", special_tokens=("<|endoftext|>",))
    with EncodedCorpusWriter(root / "pairs" / "tokens", tokenizer, pairs=True) as writer:
        for source, target in pair_texts(number):
            ids, lengths = tokenizer.encode(source + target), np.array([len(source)])
            writer.append(ids, np.array([len(ids)]), np.array([len(ids)]), lengths)
    (root / "pairs" / "order").mkdir()
    write_order(root / "pairs" / "order", np.random.default_rng(3).permutation(number), kept=number, removed=0)
    return {"tokens": root / "pairs" / "tokens", "order": root / "pairs" / "order"}


def context(root: Path, name: str, inputs: dict[str, Path], run: RunConfig, report: SilentListener) -> StageContext:
    """The stage context of a training: output empty, work kept from earlier attempts, `contexts` built anew."""
    output, work = root / name / "output", root / name / "work"
    shutil.rmtree(output, ignore_errors=True)
    given = inputs | {"contexts": measure_contexts(root / name / "contexts", inputs, run)}
    return context_at(output, work, run, given, listener=report)


def measure_contexts(directory: Path, inputs: dict[str, Path], run: RunConfig) -> Path:
    """The artefact `contexts` of a run, below `directory`."""
    shutil.rmtree(directory, ignore_errors=True)
    measured = context_at(directory / "output", directory / "work", run, inputs)
    build_contexts(measured)
    return measured.output


def execute(root: Path, name: str, inputs: dict[str, Path], run: RunConfig | None = None) -> dict[str, JSON]:
    """Run the stage; result and reported metrics are written beside the output."""
    report = SilentListener()
    result = build(context(root, name, inputs, run or config(), report))
    (root / name / "messages.json").write_text(json.dumps(report.messages))
    (root / name / "result.json").write_text(json.dumps(result))
    (root / name / "reported.json").write_text(json.dumps(report.metrics))
    return result
