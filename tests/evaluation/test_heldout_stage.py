"""Held-out documents that training text has no large part of, beside all of them, in the scores and in the table."""

import dataclasses
import json
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.corpus.artifact import CorpusArtifact
from paribus.evaluation.stage import build_scores, build_tasks
from paribus.reporting.compare import compare
from paribus.reporting.runs import load_scores
from paribus.tokenization import Tokenizer
from support.corpora import build_corpus, files_corpus, write_jsonl
from support.evaluations import WORDS, stage_context, write_checkpoints
from support.tables import notes, record

EVALUATION = EvaluationConfig(tasks=(), heldout_documents=1_000, clean_overlap=0.3, last_checkpoints=2)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of which some held-out ones are half of a training document; scored."""
    root, draw = tmp_path_factory.mktemp("sets"), random.Random(3)
    texts = [draw.choices(WORDS, k=60) for _ in range(100)]
    texts += [text[:30] + draw.choices(WORDS, k=30) for text in texts]
    path = write_jsonl(root / "rows.jsonl", [{"text": " ".join(text)} for text in texts])
    build_corpus(files_corpus(path), root / "corpus")
    build_tasks(stage_context(root, EVALUATION, "tasks", "corpus"))
    write_checkpoints(root, Tokenizer.train([" ".join(WORDS)] * 3, vocab_size=320, special_tokens=["<|endoftext|>"]))
    result = build_scores(stage_context(root, EVALUATION, "evaluation", "training", "tasks", "corpus"))
    (root / "result.json").write_text(json.dumps(result), encoding="utf-8")
    return root


def test_clean_documents_have_the_bits_they_have_among_all(root: Path) -> None:
    wanted = {found.id for found in CorpusArtifact(root / "corpus").documents("heldout") if found.overlap <= 0.3}
    every = pq.read_table(root / "evaluation" / "heldout.parquet").to_pylist()
    assert 0 < len(wanted) < len({row["document"] for row in every})
    clean = [row for row in every if row["document"] in wanted]
    table = pq.read_table(root / "evaluation" / "texts.parquet").to_pylist()
    found = [row for row in table if row.pop("text_set") == "heldout_clean"]
    assert all(row.pop("tokens") for row in found)
    assert found == clean
    metrics = json.loads((root / "result.json").read_text(encoding="utf-8"))["metrics"]
    each = [[row for row in clean if row["checkpoint"] == step] for step in (10, 20)]
    shares = [sum(row["bits"] for row in rows) / sum(row["bytes"] for row in rows) for rows in each]
    assert metrics["eval/heldout_clean/bits_per_byte"] == pytest.approx(sum(shares) / 2)


def test_concatenated_documents_are_all_documents_with_other_bits(root: Path) -> None:
    scores = load_scores(root / "evaluation")
    concatenated = scores.texts["heldout_concatenated"]
    assert concatenated.documents == scores.heldout.documents
    assert (concatenated.bytes == scores.heldout.bytes).all()
    assert (concatenated.bits != scores.heldout.bits).any()


def test_the_table_has_them_beside_all_and_tells_the_overlap(root: Path, tmp_path: Path) -> None:
    overlap = {"documents": 700, "above_80": 0, "above_50": 34, "above_20": 55, "mean": 0.0517}
    corpus = {"overlap": overlap, "moved": {"documents": 102, "bytes": 9}}
    run = dataclasses.replace(record(tmp_path, "one", {}, {}), scores=root / "evaluation", corpus=corpus)
    comparison = compare([run], [])
    columns = [(column.group, column.label) for column in comparison.columns if column.kind == "bits_per_byte"]
    assert columns == [("Held-out text", label) for label in ("bits / byte", "concatenated", "clean")]
    lines = notes(comparison)
    assert any("of them concatenated" in line and "clean ones among them" in line for line in lines)
    assert (
        "Overlap with training text, as the share of a held-out document's 8-grams in one training document: above "
        "80 % in 0, above 50 % in 34, above 20 % in 55 of the corpus' 700 held-out documents, 5.2 % in the mean; 102 "
        "near copies of training text, or of one group with one, had been moved to training."
    ) in lines
