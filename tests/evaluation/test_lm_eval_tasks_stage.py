"""Borrowed tasks scored by paribus, and by lm-eval itself with its model class `hf` on the same checkpoint."""

import json
from pathlib import Path
from typing import Any

import datasets
import lm_eval.tasks
import numpy as np
import pyarrow.parquet as pq
import pytest
from lm_eval import evaluator

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.evaluation.stage import build_scores, build_tasks
from paribus.tokenization import Tokenizer
from support.borrowed_tasks import CHOICES, WRITTEN, write_tasks
from support.evaluations import WORDS, stage_context, write_checkpoints, write_drawn_corpus

SEED, STEP, SHOTS = 1234, 20, (0, 1)
OWN_TASKS = Path(lm_eval.tasks.__file__).parent
"""Of lm-eval; to look into all of its 14,000 files takes it seconds."""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint, and no cache of data sets but a fresh one."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    # lm-eval would ask pip and git about this machine each time it evaluates.
    monkeypatch.setattr(evaluator, "add_env_info", lambda results: None)
    write_drawn_corpus(tmp_path)
    text = " ".join(WORDS)
    tokenizer = Tokenizer.train([text] * 3, vocab_size=320, special_tokens=["<|endoftext|>"])
    write_checkpoints(tmp_path, tokenizer, (STEP,))
    tokenizer.to_huggingface().save_pretrained(tmp_path / "training" / f"step_{STEP:08d}")
    return tmp_path


def ours(root: Path, evaluation: EvaluationConfig) -> dict[tuple[str, int, str], list[float]]:
    """Values of items in order, by task, shots and metric."""
    build_tasks(stage_context(root, evaluation, "tasks", "corpus"))
    build_scores(stage_context(root, evaluation, "evaluation", "training", "tasks", "corpus"))
    found: dict[tuple[str, int, str], list[float]] = {}
    for row in pq.read_table(root / "evaluation" / "items.parquet").to_pylist():
        found.setdefault((row["task"], row["shots"], row["metric"]), []).append(row["value"])
    return found


def theirs(root: Path, include_path: Path, task: str, shots: int) -> list[dict[str, Any]]:
    """lm-eval's own samples of a task of a directory."""
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    checkpoint = root / "training" / f"step_{STEP:08d}"
    model = HFLM(pretrained=str(checkpoint), dtype="float32", device="cpu", batch_size=4)
    manager = TaskManager(include_path=include_path, include_defaults=False)
    results = evaluator.simple_evaluate(
        model, tasks=[task], num_fewshot=shots, task_manager=manager, fewshot_random_seed=SEED, bootstrap_iters=0
    )
    samples: list[dict[str, Any]] = results["samples"][task]
    return samples


def test_multiple_choice_of_a_directory_has_lm_evals_accuracy_and_likelihoods(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = write_tasks(root / "own", CHOICES)
    monkeypatch.chdir(own)
    evaluation = EvaluationConfig(tasks=("colours",), include_path=str(own), shots=SHOTS, heldout_documents=10)
    found = ours(root, evaluation)
    for shots in SHOTS:
        expected = theirs(root, own, "colours", shots)
        for metric in ("acc", "acc_norm"):
            assert found["colours", shots, metric] == [sample[metric] for sample in expected]
        logs = np.array([[answer[0] for answer in sample["filtered_resps"]] for sample in expected])
        right = logs[np.arange(len(logs)), [int(sample["target"]) for sample in expected]]
        bits = (np.log(np.exp(logs).sum(axis=1)) - right) / np.log(2)
        np.testing.assert_allclose(found["colours", shots, "choice_bits"], bits, rtol=1e-4, atol=1e-4)


def test_written_answers_of_a_directory_are_lm_evals(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a model that has learned nothing; so the accepted answers are what lm-eval's own run of it wrote."""
    own = write_tasks(root / "own", WRITTEN)
    monkeypatch.chdir(own)
    written = [sample["filtered_resps"][0] for sample in theirs(root, own, "follows", 0) if sample["filter"] == "whole"]
    records = [json.loads(line) for line in (own / "colours.jsonl").read_text().splitlines()]
    lines = [json.dumps(record | {"b": text}) for record, text in zip(records[::2], written[::2], strict=True)]
    rest = [json.dumps(record) for record in records[1::2]]
    (own / "colours.jsonl").write_text("".join(f"{line}\n" for line in (*lines, *rest)))
    evaluation = EvaluationConfig(tasks=("follows",), include_path=str(own), shots=SHOTS, heldout_documents=10)
    found = ours(root, evaluation)
    for shots in SHOTS:
        expected = theirs(root, own, "follows", shots)
        for way, metric in (("whole", "exact_match"), ("word", "exact_match_word")):
            values = [sample["exact_match"] for sample in expected if sample["filter"] == way]
            assert found["follows", shots, metric] == values
    assert sum(found["follows", 0, "exact_match"]) >= len(lines)


def test_a_task_of_lm_eval_has_its_own_numbers(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """lm-eval is given the same records in place of the hub's."""
    records = {
        split: [
            {
                "question": f"{WORDS[place % 12]} {split}?",
                "choices": list(WORDS[place : place + 4]),
                "answer": place % 4,
            }
            for place in range(8)
        ]
        for split in ("test", "dev")
    }
    for split, found in records.items():
        file = root / "data" / "mmlu_astronomy" / f"{split}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(record) + "\n" for record in found))
    evaluation = EvaluationConfig(tasks=("mmlu_astronomy",), data=str(root / "data"), shots=(2,), heldout_documents=10)
    values = ours(root, evaluation)
    splits = {split: datasets.Dataset.from_list(found) for split, found in records.items()}
    monkeypatch.setattr(datasets, "load_dataset", lambda **_: splits)
    samples = theirs(root, OWN_TASKS / "mmlu" / "default", "mmlu_astronomy", 2)
    assert values["mmlu_astronomy", 2, "acc"] == [sample["acc"] for sample in samples]
