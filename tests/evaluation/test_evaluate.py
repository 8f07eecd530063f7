"""A checkpoint that paribus trained and exported, scored here and by lm-eval's own model class `hf`."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.model import LlamaModel
from paribus.config.groups.training import EqualStepsBudget
from paribus.evaluation.prompts import evaluation_tokenizer
from paribus.evaluation.scoring import load_checkpoint_model
from paribus.evaluation.stage import build_tasks
from paribus.stage import SilentListener
from paribus.tokenization import Tokenizer
from paribus.training.train import build
from support.evaluations import WORDS, stage_context, write_drawn_corpus
from support.real_data import RealData
from support.training_inputs import config, context, write_inputs

TASKS, SHOTS, STEPS = ("continuation", "piqa", "boolq", "openbookqa"), (0, 5), 12
EVALUATION = EvaluationConfig(tasks=TASKS, shots=SHOTS, continuation_items=8, heldout_documents=10, limit=8)
MODEL = LlamaModel(width=32, layers=2, heads=2, ffn_width=48, context_length=512)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The last of a short training."""
    root = tmp_path_factory.mktemp("trained")
    tokenizer = Tokenizer.train([" ".join(WORDS)] * 3, vocab_size=320, special_tokens=["<|endoftext|>"])
    inputs = write_inputs(root, " ".join(WORDS) * 20, tokenizer)
    build(context(root, "training", inputs, config(EqualStepsBudget(steps=STEPS), model=MODEL), SilentListener()))
    return root / "training" / "output" / f"step_{STEPS:08d}"


def write_benchmarks(root: Path) -> Path:
    """Files of the named tasks, of random words."""
    draw = random.Random(3)

    def words(most: int) -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(1, most)))

    records: dict[str, Any] = {
        "piqa/validation": lambda: {"goal": words(9), "sol1": words(9), "sol2": words(9), "label": 1},
        "boolq/validation": lambda: {"passage": words(20), "question": words(6), "label": 0},
        "openbookqa/test": lambda: {
            "question_stem": words(9),
            "choices": {"text": [words(3) for _ in range(4)], "label": list("ABCD")},
            "answerKey": "B",
        },
    }
    for name, record in records.items():
        path = root / f"{name}.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text("".join(json.dumps(record()) + "\n" for _ in range(32)))
    return root


def requests_of(root: Path, data: Path) -> list[Any]:
    from paribus.evaluation.evaluate import build_requests, load_task

    write_drawn_corpus(root)
    build_tasks(stage_context(root, replace(EVALUATION, data=str(data)), "tasks", "corpus"))
    return build_requests([load_task(root / "tasks", name, shots) for name in TASKS for shots in SHOTS], 1234)


def assert_agreement(checkpoint: Path, requests: list[Any]) -> None:
    from lm_eval.models.huggingface import HFLM

    from paribus.evaluation.evaluate import HarnessModel
    from paribus.evaluation.scoring import Scorer

    theirs = HFLM(pretrained=str(checkpoint), dtype="float32", device="cpu", batch_size=4)
    expected = theirs.loglikelihood(requests, disable_tqdm=True)
    model = HarnessModel(
        Scorer(load_checkpoint_model(checkpoint, "cpu"), 2048), evaluation_tokenizer(checkpoint / "tokenizer")
    )
    ours = model.loglikelihood(requests)
    assert not model.encode(requests).truncated
    assert not model.encode(requests).crossed
    np.testing.assert_allclose([score for score, _ in ours], [score for score, _ in expected], rtol=1e-5, atol=1e-5)
    assert [greedy for _, greedy in ours] == [greedy for _, greedy in expected]


def test_scores_of_a_trained_checkpoint_are_those_of_lm_evals_hf_model(checkpoint: Path, tmp_path: Path) -> None:
    requests = requests_of(tmp_path, write_benchmarks(tmp_path / "data"))
    assert {request.task_name for request in requests} == {f"{name}_{shots}shot" for name in TASKS for shots in SHOTS}
    assert_agreement(checkpoint, requests)


def test_scores_of_real_questions_are_those_of_lm_evals_hf_model(
    checkpoint: Path, tmp_path: Path, real_data: RealData
) -> None:
    requests = requests_of(tmp_path, real_data.benchmarks)
    short = [request for request in requests if len("".join(request.args)) < 500]
    assert len({request.task_name for request in short}) >= 5
    assert_agreement(checkpoint, short)
