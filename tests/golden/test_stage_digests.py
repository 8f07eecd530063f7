"""What each exact stage makes of tiny inputs is pinned beside its `code_version`, which changes with it.

Stages that compute in floating point are pinned to rounded values; those of ordering are in `test_ordering_digests.py`.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.evaluation.stage import build_scores, build_tasks
from paribus.pipeline.graph import STAGES
from paribus.tokenization import Tokenizer
from support.command_line import OVERRIDES, paribus, write_text_files
from support.evaluations import WORDS, evaluation_context, write_checkpoints, write_drawn_corpus
from support.finetunings import finetuned, write_checkpoint, write_task
from support.stages import files
from support.training_inputs import STEPS, execute, write_inputs

PINNED = {
    "corpus": (3, "47e2b4c34720028b"),
    "vocabulary": (5, "2d9cef2457fb64b0"),
    "tokens": (2, "b318b022d6a0e62f"),
    "order": (2, "648174ae20e15d2b"),
    "contexts": (2, "d926f240aa8db46d"),
    "tasks": (7, "1adadfe9e6a67d91"),
    "prompts": (1, "b017277de1ffac13"),
}
PINNED_OTHERWISE = {
    "embeddings", "neighbours", "lexical_neighbours", "duplicates", "context_statistics", "training", "evaluation",
    "token_statistics", "finetuning_data", "finetuning",
}  # fmt: skip
"""Pinned below, in `test_ordering_digests.py` or in `commands/test_tokens.py`."""


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    directory = tmp_path_factory.mktemp("pipeline")
    write_text_files(directory)
    chosen = ("tokenizer=scaffold_bpe", "encoder=longest_first", "scale.heldout_documents=20")
    chosen += ("scale.context_characters=100", "scale.continuation_characters=40")
    paribus(directory, "run", *OVERRIDES, *chosen)
    paths = (directory / "paribus_runs/artifacts").glob("*/*/record.json")
    return {path.parent.parent.name: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def digest(record: dict[str, Any]) -> str:
    """Of the contents, where a stage reports it, since Parquet files name the library that wrote them."""
    if "digest" in record["result"]:
        return str(record["result"]["digest"])[:16]
    digests = json.dumps({name: entry["sha256"] for name, entry in record["files"].items()}, sort_keys=True)
    return sha256(digests.encode())


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@pytest.mark.parametrize("stage", sorted(PINNED))
def test_a_stage_makes_what_its_code_version_promises(records: dict[str, dict[str, Any]], stage: str) -> None:
    assert (STAGES[stage].code_version, digest(records[stage])) == PINNED[stage]


def test_every_stage_is_pinned() -> None:
    assert set(PINNED) | PINNED_OTHERWISE == {stage.artefact for stage in STAGES.values()}


TEXTS = [
    "In Arizona the zones of the Amazon are zonal; 12 zones, 345 zonal maps.\n",
    "Capitals aren't capital letters, and letters aren't capitals.\n\n    indented text\n",
    "naïve café, 東京 and Straße, again café\n",
] * 3
UNSEEN = "the zonalizations, amazonal capitalettersn't; indentarizona 東 cafés 2023"
TOKENIZERS = {"bpe": "29572b1145e69ade", "scaffold_bpe": "0d270b9605e0b3b7"}
ENCODED = {
    ("bpe", "merge_rank"): "277e9dfe16708599",
    ("bpe", "longest_first"): "1f1eb3d6407f71b6",
    ("scaffold_bpe", "merge_rank"): "f2ed1a183911e5b8",
    ("scaffold_bpe", "longest_first"): "f2ed1a183911e5b8",
}


def train(algorithm: str) -> Tokenizer:
    return Tokenizer.train(TEXTS, algorithm=algorithm, vocab_size=285, special_tokens=["<|endoftext|>"])


@pytest.mark.parametrize("algorithm", TOKENIZERS)
def test_the_saved_tokenizer_is_the_pinned_one(algorithm: str, tmp_path: Path) -> None:
    train(algorithm).save(tmp_path)
    content = [file.name.encode() + b"\0" + file.read_bytes() + b"\0" for file in sorted(tmp_path.iterdir())]
    assert sha256(b"".join(content)) == TOKENIZERS[algorithm]


@pytest.mark.parametrize(("algorithm", "encoder"), ENCODED)
def test_the_encoded_texts_are_the_pinned_ones(algorithm: str, encoder: str) -> None:
    ids, _ = train(algorithm).with_encoder(encoder).encode_batch([*TEXTS, UNSEEN])
    assert sha256(ids.astype("<u4").tobytes()) == ENCODED[algorithm, encoder]


CONTEXTS = "df62eb831f398568419e17da43adfa9bad241cc8e863f29eef49f8f4cfd5fb87"
TEXT_BYTES = 877
LOSSES = {1: 5.57429, 2: 5.47283, 7: 4.47877, STEPS: 3.87407}


def test_training_keeps_its_contexts_and_losses(tmp_path: Path) -> None:
    result = execute(tmp_path, "run", write_inputs(tmp_path))
    output = tmp_path / "run" / "output"
    contexts = json.loads((output / "contexts.json").read_text())
    metrics = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    assert STAGES["training"].code_version == 9
    assert contexts["indices_sha256"] == CONTEXTS
    assert result["text_bytes"] == TEXT_BYTES
    assert {step: metrics[step - 1]["train/loss"] for step in LOSSES} == pytest.approx(LOSSES, rel=1e-3)


EVALUATION = EvaluationConfig(continuation_items=12, heldout_documents=10, document_bytes=200, shots=(0, 2))
TASKS = {
    "continuation.fewshot.jsonl": "78d3a4ae3d98e10d",
    "continuation.jsonl": "a89ecb41a22e5e3e",
    "continuation.yaml": "ff0aab79e8039a80",
    "heldout.jsonl": "5796ec71773c4200",
    "heldout.order.json": "9f066b33cf0e6a9c",
}
METRICS = {
    "eval/continuation/0shot/choice_bits": 18.2053,
    "eval/continuation/2shot/choice_bits": 11.7456,
    "eval/bits_per_byte": 1.6550,
}


def test_task_files_and_scores_keep_their_values(tmp_path: Path) -> None:
    write_drawn_corpus(tmp_path)
    build_tasks(evaluation_context(tmp_path, EVALUATION, "tasks", "corpus"))
    assert {name: sha256(content) for name, content in files(tmp_path / "tasks").items()} == TASKS
    assert STAGES["evaluation"].code_version == 11, "what the scores, and beam search, are computed with"
    write_checkpoints(
        tmp_path, Tokenizer.train([" ".join(WORDS)] * 3, vocab_size=320, special_tokens=["<|endoftext|>"])
    )
    result = build_scores(evaluation_context(tmp_path, EVALUATION, "evaluation", "training", "tasks", "corpus"))
    metrics = result["metrics"]
    assert isinstance(metrics, dict)
    assert {name: metrics[name] for name in METRICS} == pytest.approx(METRICS, abs=2e-3)
    table = pq.read_table(tmp_path / "evaluation" / "items.parquet")
    assert table.column_names == ["checkpoint", "task", "shots", "item", "doc_hash", "metric", "value"]
    heldout = pq.read_table(tmp_path / "evaluation" / "heldout.parquet")
    assert heldout.column_names == ["checkpoint", "document", "bits", "bytes"]


FINETUNING_DATA = {
    "qasper/documents.jsonl": "892ea69efb9a7947",
    "qasper/train.jsonl": "6feec13b6e745418",
    "qasper/validation.jsonl": "bde9b8d50faf9705",
}
FINETUNING_LOSSES = [6.40287, 5.45385, 5.15784]


def test_finetuning_keeps_its_examples_and_losses(tmp_path: Path) -> None:
    write_task(tmp_path)
    write_checkpoint(tmp_path)
    finetuned(tmp_path)
    assert (STAGES["finetuning_data"].code_version, STAGES["finetuning"].code_version) == (1, 4)
    found = files(tmp_path / "finetuning_data")
    assert {name: sha256(content) for name, content in found.items()} == FINETUNING_DATA
    lines = map(json.loads, (tmp_path / "finetuning/metrics.jsonl").read_text().splitlines())
    losses = [line["finetuning/qasper/loss"] for line in lines if "finetuning/qasper/loss" in line]
    assert losses == pytest.approx(FINETUNING_LOSSES, rel=1e-4)
    written = {"items.parquet", "metrics.jsonl", "predictions.parquet", "statistics.json"}
    assert set(files(tmp_path / "finetuning")) == written
