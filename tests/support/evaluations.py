"""Tiny models and tokenizers, and slow, obvious scoring, for tests of evaluation."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from paribus.config.groups.corpus import FilesCorpus
from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.model import GPTNeoXModel, LlamaModel
from paribus.config.groups.training import EqualTokensBudget, TrainingConfig
from paribus.modeling.models import build_model, save_model
from paribus.stage import StageContext
from paribus.tokenization import Tokenizer
from support.corpora import write_corpus
from support.run_config import run_config
from support.stages import context_at

WORDS = ("order", "token", "corpus", "merge", "pair", "rank", "longest", "first", "scaffold", "byte", "model", "budget")
STAGE_MODEL = LlamaModel(width=16, layers=2, heads=2, ffn_width=32, context_length=256, initializer_range=0.3)


class ByteEncoder:
    """One token a byte; each byte pair in `crossing` is one, also across the boundary of context and continuation."""

    def __init__(self, crossing: tuple[bytes, ...] = ()) -> None:
        self.crossing = crossing
        self.vocab_size = 257 + len(crossing)

    @property
    def eos_id(self) -> int:
        return 256

    def encode(self, text: str) -> NDArray[np.int64]:
        data, ids, i = text.encode(), [], 0
        while i < len(data):
            pair = data[i : i + 2]
            ids.append(257 + self.crossing.index(pair) if pair in self.crossing else data[i])
            i += 2 if pair in self.crossing else 1
        return np.array(ids, np.int64)

    def token_bytes(self) -> list[bytes]:
        return [*(bytes([value]) for value in range(256)), b"", *self.crossing]


def tiny_model(
    vocab_size: int, context_length: int = 64, seed: int = 0, family: type[LlamaModel | GPTNeoXModel] = LlamaModel
) -> Any:
    """A causal model of two layers with large weights, so that its predictions are far from uniform."""
    config = family(width=16, layers=2, heads=2, ffn_width=32, context_length=context_length, initializer_range=0.5)
    return build_model(config, vocab_size, seed).eval()


def brute_force(model: Any, context: list[int], continuation: list[int]) -> tuple[float, bool]:
    """Log-probability of a continuation token by token, one whole forward pass each, and whether it is greedy."""
    total, greedy, ids = 0.0, True, list(context)
    for token in continuation:
        with torch.inference_mode():
            logits = model.logits(torch.tensor([ids]))[0, -1].double()
        total += float(torch.log_softmax(logits, 0)[token])
        greedy &= int(logits.argmax()) == token
        ids.append(token)
    return total, greedy


def evaluation_context(root: Path, evaluation: EvaluationConfig, stage: str, *inputs: str) -> StageContext:
    """A stage's context with its artefacts in folders of `root`."""
    config = run_config(
        corpus=FilesCorpus(paths=("corpus.txt",)),
        model=STAGE_MODEL,
        budget=EqualTokensBudget(tokens=1_000),
        training=TrainingConfig(checkpoints=2),
        evaluation=evaluation,
    )
    artefacts = {name: root / name for name in inputs}
    return context_at(root / stage, root / f"{stage}.work", config, artefacts)


def write_drawn_corpus(root: Path, documents: int = 120) -> None:
    """Documents of `WORDS`; about half of them are held out."""
    draw = random.Random(2)
    texts = [" ".join(draw.choices(WORDS, k=60)) for _ in range(documents)]
    write_corpus(root / "corpus", texts, prefix="doc", heldout=0.5)


def write_checkpoints(root: Path, tokenizer: Tokenizer, steps: tuple[int, ...] = (10, 20)) -> None:
    for step in steps:
        directory = root / "training" / f"step_{step:08d}"
        directory.mkdir(parents=True)
        save_model(build_model(STAGE_MODEL, tokenizer.vocab_size, step, eos_id=tokenizer.eos_id), directory)
        tokenizer.save(directory / "tokenizer")
