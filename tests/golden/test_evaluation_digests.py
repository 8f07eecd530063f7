"""Pinned outputs of the evaluation stages on a tiny input.

A value that changes means that the stage's `code_version` must change with it.
"""

import hashlib
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.evaluation.stage import EVALUATION as STAGE
from paribus.evaluation.stage import build_scores, build_tasks
from paribus.tokenization import Tokenizer
from support.evaluations import WORDS, stage_context, write_checkpoints, write_drawn_corpus

EVALUATION = EvaluationConfig(continuation_items=12, heldout_documents=10, document_bytes=200, shots=(0, 2))
TASKS = {
    "continuation.fewshot.jsonl": "78d3a4ae3d98e10d",
    "continuation.jsonl": "a89ecb41a22e5e3e",
    "continuation.yaml": "ff0aab79e8039a80",
    "heldout.jsonl": "5796ec71773c4200",
    "heldout.order.json": "9f066b33cf0e6a9c",
}
CODE_VERSION = 11
"""Of what the scores below were computed with; of beam search, whose rounding they do not reach, too."""
METRICS = {
    "eval/continuation/0shot/choice_bits": 18.2053,
    "eval/continuation/2shot/choice_bits": 11.7456,
    "eval/bits_per_byte": 1.6550,
}


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    write_drawn_corpus(tmp_path)
    build_tasks(stage_context(tmp_path, EVALUATION, "tasks", "corpus"))
    return tmp_path / "tasks"


def test_task_files_keep_their_digests(tasks: Path) -> None:
    assert {p.name: hashlib.sha256(p.read_bytes()).hexdigest()[:16] for p in sorted(tasks.iterdir())} == TASKS


def test_scores_keep_their_values(tasks: Path) -> None:
    assert STAGE.code_version == CODE_VERSION
    root = tasks.parent
    write_checkpoints(root, Tokenizer.train([" ".join(WORDS)] * 3, vocab_size=320, special_tokens=["<|endoftext|>"]))
    result = build_scores(stage_context(root, EVALUATION, "evaluation", "training", "tasks", "corpus"))
    metrics = result["metrics"]
    assert isinstance(metrics, dict)
    assert {name: metrics[name] for name in METRICS} == pytest.approx(METRICS, abs=2e-3)
    table = pq.read_table(root / "evaluation" / "items.parquet")
    assert table.column_names == ["checkpoint", "task", "shots", "item", "doc_hash", "metric", "value"]
    assert pq.read_table(root / "evaluation" / "heldout.parquet").column_names == [
        "checkpoint",
        "document",
        "bits",
        "bytes",
    ]
