"""A tiny checkpoint, a tiny task in the layouts of SCROLLS and QMSum, and how to run the stages of fine-tuning."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

from paribus.config.groups.evaluation import EvaluationConfig, ScrollsFinetuning
from paribus.config.groups.model import LlamaModel
from paribus.config.groups.training import TrainingConfig
from paribus.config.schema import RunConfig
from paribus.evaluation.scrolls import build_data
from paribus.evaluation.stage import build_finetuning
from paribus.modeling.models import build_model, save_model
from paribus.stage import JSON, SilentListener
from paribus.tokenization import Tokenizer
from support.corpora import write_jsonl
from support.run_config import run_config
from support.stages import context_at

MODEL = LlamaModel(width=16, layers=1, heads=2, ffn_width=32, context_length=64, initializer_range=0.3)
TRAINING = TrainingConfig(checkpoint_every=100, micro_batch=4, device="cpu", log_every=5)
STEP = 7


def finetuning_config(root: Path, **fields: Any) -> RunConfig:
    """A run that fine-tunes a model of a few thousand parameters on the files in `root`/data."""
    chosen = {"tasks": ("qasper",), "global_batch": 4, "answer_characters": 24, "learning_rate": 0.01} | fields
    return run_config(
        model=MODEL,
        training=TRAINING,
        evaluation=EvaluationConfig(batch_tokens=300, device="cpu"),
        finetuning=ScrollsFinetuning(data=str(root / "data"), **chosen),
        seed=1,
    )


def scrolls_record(name: str, question: str, document: str, answer: str) -> dict[str, str]:
    """A record as the hub has it."""
    return {"id": name, "pid": f"{name}_0", "input": f"{question}\n\n{document}", "output": answer}


def write_task(root: Path, task: str = "qasper", examples: int = 10) -> None:
    """Examples whose answer is the word that the question names, with documents of one to nine sentences."""
    draw = random.Random(3)
    for split, number in (("train", examples), ("validation", 5)):
        records = []
        for place in range(number):
            word = draw.choice(("red", "green", "blue"))
            document = " ".join(f"Box {index} is {word}." for index in range(draw.randint(1, 9))) + f" {split} {place}"
            records.append(scrolls_record(f"{split}{place}", "What colour?", document, word))
        write_jsonl(root / "data" / task / f"{split}.jsonl", records)


def write_checkpoint(root: Path, tokenizer: Tokenizer | None = None) -> Tokenizer:
    """The artefact `training` with a model of random weights, in bytes unless a tokenizer is given."""
    tokenizer = tokenizer or Tokenizer.train((), algorithm="bytes", special_tokens=("<|endoftext|>",))
    directory = root / "training" / f"step_{STEP:08d}"
    directory.mkdir(parents=True)
    save_model(build_model(MODEL, tokenizer.vocab_size, 0, eos_id=tokenizer.eos_id), directory)
    tokenizer.save(directory / "tokenizer")
    return tokenizer


def run_data(root: Path, config: RunConfig) -> dict[str, JSON]:
    """Run the stage `finetuning_data` in `root`."""
    return build_data(context_at(root / "finetuning_data", root / "data.work", config, {}))


def run_finetuned(root: Path, config: RunConfig, name: str = "finetuning") -> dict[str, JSON]:
    """Run the stage `finetuning` into `root`/`name`; what it reported is written beside it."""
    inputs = {stage: root / stage for stage in ("training", "finetuning_data")}
    report = SilentListener()
    result = build_finetuning(context_at(root / name, root / f"{name}.work", config, inputs, listener=report))
    (root / f"{name}.reported.json").write_text(json.dumps(report.metrics))
    return result


def finetuned(root: Path, **fields: Any) -> dict[str, JSON]:
    """Both stages on `write_task`'s examples from `write_checkpoint`'s model."""
    config = finetuning_config(root, **fields)
    run_data(root, config)
    return run_finetuned(root, config)


def with_training(config: RunConfig, **changes: Any) -> RunConfig:
    """The same run, trained otherwise."""
    return replace(config, training=replace(config.training, **changes))
