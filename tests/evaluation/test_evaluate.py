"""A checkpoint that paribus trained and exported, scored here and by lm-eval's own model class `hf`."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from lm_eval.models.huggingface import HFLM

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.model import LlamaModel
from paribus.config.groups.training import EqualStepsBudget
from paribus.evaluation.evaluate import HarnessModel, build_requests, load_task
from paribus.evaluation.prompts import evaluation_tokenizer
from paribus.evaluation.scoring import Scorer, load_checkpoint_model
from paribus.evaluation.stage import build_tasks
from paribus.stage import SilentListener
from paribus.tokenization import Tokenizer
from paribus.training.train import build
from support.evaluations import WORDS, evaluation_context, write_drawn_corpus
from support.real_data import RealData
from support.training_inputs import config, context, write_inputs

TASKS, SHOTS, STEPS = ("continuation", "piqa", "boolq", "openbookqa"), (0, 2), 12
EVALUATION = EvaluationConfig(tasks=TASKS, shots=SHOTS, continuation_items=8, heldout_documents=10, limit=8)
MODEL = LlamaModel(width=32, layers=2, heads=2, ffn_width=48, context_length=2048)


def test_scores_of_a_trained_checkpoint_are_those_of_lm_evals_hf_model(tmp_path: Path, real_data: RealData) -> None:
    tokenizer = Tokenizer.train([" ".join(WORDS)] * 3, vocab_size=320, special_tokens=["<|endoftext|>"])
    inputs = write_inputs(tmp_path, " ".join(WORDS) * 20, tokenizer)
    build(context(tmp_path, "training", inputs, config(EqualStepsBudget(steps=STEPS), model=MODEL), SilentListener()))
    checkpoint = tmp_path / "training" / "output" / f"step_{STEPS:08d}"
    write_drawn_corpus(tmp_path)
    evaluation = replace(EVALUATION, data=str(real_data.benchmarks))
    build_tasks(evaluation_context(tmp_path, evaluation, "tasks", "corpus"))
    requests = build_requests([load_task(tmp_path / "tasks", name, shots) for name in TASKS for shots in SHOTS], 1234)
    requests = [request for request in requests if len("".join(request.args)) < 2000]
    assert {request.task_name for request in requests} == {f"{name}_{shots}shot" for name in TASKS for shots in SHOTS}

    reference = HFLM(pretrained=str(checkpoint), dtype="float32", device="cpu", batch_size=4)
    expected = reference.loglikelihood(requests, disable_tqdm=True)
    scorer = Scorer(load_checkpoint_model(checkpoint, "cpu"), 2048)
    model = HarnessModel(scorer, evaluation_tokenizer(checkpoint / "tokenizer"))
    scores = model.loglikelihood(requests)
    encoded = model.encode(requests)
    assert not encoded.truncated and not encoded.crossed
    np.testing.assert_allclose([score for score, _ in scores], [score for score, _ in expected], rtol=1e-5, atol=1e-5)
    assert [greedy for _, greedy in scores] == [greedy for _, greedy in expected]
