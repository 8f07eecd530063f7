"""The stages `tasks` and `evaluation` on sets of texts."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.corpus.artifact import CorpusArtifact
from paribus.evaluation.stage import build_scores, build_tasks
from paribus.reporting.runs import load_scores
from paribus.tokenization import Tokenizer
from support.evaluations import evaluation_context, write_checkpoints, write_drawn_corpus

BYTES = Tokenizer.train([], algorithm="bytes", special_tokens=["<|endoftext|>"])


def scored(root: Path, tokenizer: Tokenizer = BYTES, **fields: Any) -> dict[str, float]:
    """Metrics of a run of two checkpoints."""
    chosen = {"tasks": (), "heldout_documents": 10, "last_checkpoints": 2, "data": str(root / "data")} | fields
    evaluation = EvaluationConfig(**chosen)
    write_checkpoints(root, tokenizer)
    build_tasks(evaluation_context(root, evaluation, "tasks", "corpus"))
    result = build_scores(evaluation_context(root, evaluation, "evaluation", "training", "tasks", "corpus"))
    return result["metrics"]  # type: ignore[return-value]


def test_texts_are_sampled_and_scored_as_held_out_text_is(tmp_path: Path) -> None:
    """A set of the held-out documents themselves has their sample, bits and bytes; half of it has others."""
    write_drawn_corpus(tmp_path)
    heldout = list(CorpusArtifact(tmp_path / "corpus").documents("heldout"))
    for name, documents in (("same", heldout), ("half", heldout[::2])):
        (tmp_path / "data" / name).mkdir(parents=True)
        lines = [json.dumps({"id": document.id, "text": document.text}) for document in documents]
        (tmp_path / "data" / name / "test.jsonl").write_text("\n".join(lines))
    metrics = scored(tmp_path, texts=("same", "half"))
    assert metrics["eval/same/bits_per_byte"] == pytest.approx(metrics["eval/bits_per_byte"])
    assert metrics["eval/half/bits_per_byte"] != pytest.approx(metrics["eval/bits_per_byte"])
    assert (tmp_path / "tasks" / "same.texts.jsonl").read_bytes() == (tmp_path / "tasks" / "heldout.jsonl").read_bytes()
    rows = pq.read_table(tmp_path / "evaluation" / "texts.parquet").to_pylist()
    scores = load_scores(tmp_path / "evaluation").texts["half"]
    half = [row for row in rows if (row["text_set"], row["checkpoint"]) == ("half", 20)]
    size = sum(row["bytes"] for row in half)
    assert len(scores) == len(half) == 10
    assert (scores.bits[1].sum(), scores.bytes.sum()) == (pytest.approx(sum(row["bits"] for row in half)), size)
    about = json.loads((tmp_path / "evaluation" / "statistics.json").read_text())["texts"]
    assert about["half"] == {"documents": 10, "bytes": size, "tokens": size}
    for name in ("half", "half_concatenated"):  # a token is a byte
        steps = [
            sum(row["bits"] for row in rows if (row["text_set"], row["checkpoint"]) == (name, step)) / size
            for step in (10, 20)
        ]
        assert metrics[f"eval/{name}/perplexity"] == pytest.approx(sum(2**step for step in steps) / 2)
    assert metrics["eval/half_concatenated/bits_per_byte"] != pytest.approx(metrics["eval/half/bits_per_byte"])
    order = json.loads((tmp_path / "tasks" / "half.order.json").read_text())
    assert sorted(order) == list(range(10)) != order
