"""The stages `tasks` and `evaluation` on pairs: bits per byte of targets given their sources."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from sacrebleu.metrics.bleu import BLEU

from paribus.config.groups.evaluation import default_table
from paribus.config.schema import RunConfig
from paribus.corpus.artifact import CorpusArtifact, CorpusWriter
from paribus.evaluation.heldout import read_pairs
from paribus.evaluation.stage import build_scores, build_tasks
from paribus.evaluation.translation import tokenized_bleu
from paribus.modeling.models import build_model, save_model
from paribus.reporting.columns import columns_of
from paribus.reporting.runs import load_scores
from paribus.tokenization import Tokenizer
from support.stages import context_at
from support.training_inputs import TRAINING, TRANSLATOR, pair_config, pair_texts

EOS = 256
MODEL = replace(TRANSLATOR, initialization="normal", initializer_range=0.5)


def write_inputs(root: Path, tokenizer: Tokenizer | None = None, said: Callable[[str], str] = str) -> Tokenizer:
    """Sources are as `said` makes them of those that there are."""
    tokenizer = tokenizer or Tokenizer.train((), algorithm="bytes", special_tokens=("<|endoftext|>",))
    with CorpusWriter(root / "corpus", heldout=0.5, pairs=True) as writer:
        longer = [(text * 4, text * 4) for text, _ in pair_texts(9)]
        for number, (source, target) in enumerate([*pair_texts(30), *longer]):
            writer.add(f"pair{number}", said(source), "test", target)
    for step in (10, 20):
        directory = root / "training" / f"step_{step:08d}"
        directory.mkdir(parents=True)
        save_model(build_model(MODEL, 257, step, eos_id=EOS), directory)
        tokenizer.save(directory / "tokenizer")
    return tokenizer


def scored(root: Path, config: RunConfig) -> dict[str, float]:
    inputs = {name: root / name for name in ("corpus", "tasks", "training")}
    build_tasks(context_at(root / "tasks", root / "tasks.work", config, inputs))
    result = build_scores(context_at(root / "evaluation", root / "scores.work", config, inputs))
    return result["metrics"]  # type: ignore[return-value]


def bits_one_token_at_a_time(model: torch.nn.Module, source: str, target: str) -> float:
    """Bits of a target that fits the context, a forward pass for each token."""
    encoded, total, written = [*source.encode()[:7], EOS], 0.0, [EOS]
    for token in target.encode():
        with torch.inference_mode():
            logits = model(
                input_ids=torch.tensor([encoded]), decoder_input_ids=torch.tensor([written]), use_cache=False
            ).logits
        total -= float(torch.log_softmax(logits[0, -1].double(), 0)[token])
        written.append(token)
    return total / math.log(2)


def test_what_a_tokenizer_loses_of_sources_changes_no_document_that_bits_are_of(tmp_path: Path) -> None:
    found = {}  # by the side whose characters the tokenizer knows
    for side in ("targets", "sources"):
        texts = [target if side == "targets" else source.upper() for source, target in pair_texts(39)]
        knowing = {"unit": "character", "unknown": "token", "pretokenizer": "none", "vocab_size": 200}
        tokenizer = Tokenizer.train(texts, special_tokens=("<|endoftext|>",), **knowing)  # type: ignore[arg-type]
        write_inputs(tmp_path / side, tokenizer, str.upper)
        config = pair_config(training=replace(TRAINING, checkpoints=2))
        evaluation = replace(config.evaluation, last_checkpoints=1, translations=0)
        scored(tmp_path / side, replace(config, model=MODEL, evaluation=evaluation))
        found[side] = json.loads((tmp_path / side / "evaluation/statistics.json").read_text())["changed_documents"]
    assert found["targets"] == 0 < found["sources"]


def test_every_held_out_target_has_the_bits_its_source_leaves_it_under_each_checkpoint(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    config = pair_config(training=replace(TRAINING, checkpoints=2))
    config = replace(
        config, model=MODEL, evaluation=replace(config.evaluation, last_checkpoints=2, batch_tokens=80, translations=0)
    )
    metrics = scored(tmp_path, config)
    table = pq.read_table(tmp_path / "evaluation" / "heldout.parquet").to_pylist()
    heldout = {document.id: document for document in CorpusArtifact(tmp_path / "corpus").documents("heldout")}
    assert {(row["checkpoint"], row["document"]) for row in table} == {
        (step, id) for step in (10, 20) for id in heldout
    }
    for step in (10, 20):
        model = build_model(MODEL, 257, step, eos_id=EOS).eval()
        for row in (row for row in table if row["checkpoint"] == step):
            pair = heldout[row["document"]]
            assert row["bytes"] == len((pair.target or "").encode())
            if row["bytes"] <= 8:
                expected = bits_one_token_at_a_time(model, pair.text, pair.target or "")
                assert row["bits"] == pytest.approx(expected, rel=1e-4)
    means = [
        sum(row["bits"] for row in table if row["checkpoint"] == step)
        / sum(row["bytes"] for row in table if row["checkpoint"] == step)
        for step in (10, 20)
    ]
    assert metrics == {"eval/bits_per_byte": pytest.approx(sum(means) / 2)}
    assert len(load_scores(tmp_path / "evaluation").heldout) == len(heldout)
    assert {pair.id for pair in read_pairs(tmp_path / "tasks" / "heldout.jsonl")} == heldout.keys()


def test_held_out_pairs_are_translated_and_their_bleu_is_that_of_the_translations(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    config = pair_config(training=replace(TRAINING, checkpoints=2))
    evaluation = replace(config.evaluation, last_checkpoints=2, batch_tokens=80, translations=9, beams=2)
    metrics = scored(tmp_path, replace(config, model=MODEL, evaluation=evaluation))
    pairs = {pair.id: pair for pair in read_pairs(tmp_path / "tasks" / "heldout.jsonl")}
    translated = pq.read_table(tmp_path / "evaluation" / "translations.parquet").to_pylist()
    items = pq.read_table(tmp_path / "evaluation" / "items.parquet").to_pylist()
    scores = []
    for step in (10, 20):
        own = [row for row in translated if row["checkpoint"] == step]
        assert [row["document"] for row in own] == list(pairs)[:9]
        references = [pairs[row["document"]].target for row in own]
        scores.append(BLEU().corpus_score([row["translation"] for row in own], [references]).score / 100)
        values = [row["value"] for row in items if row["checkpoint"] == step]
        assert sum(values) / 9 == pytest.approx(scores[-1])
    assert metrics["eval/translation/0shot/bleu"] == pytest.approx(sum(scores) / 2)
    assert {row["metric"] for row in items} == {"bleu"}, "the language of held-out pairs may be unknown"


def test_a_test_set_is_translated_as_held_out_pairs_are(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    (tmp_path / "data" / "wmt14_en_de").mkdir(parents=True)
    lines = [json.dumps({"translation": {"en": source, "de": target}}) for source, target in pair_texts(12)]
    (tmp_path / "data" / "wmt14_en_de" / "test.jsonl").write_text("\n".join(lines))
    config = pair_config(training=replace(TRAINING, checkpoints=2))
    evaluation = replace(
        config.evaluation, tasks=("wmt14_en_de",), data=str(tmp_path / "data"), translations=0, beams=2, limit=10
    )
    metrics = scored(tmp_path, replace(config, model=MODEL, evaluation=evaluation))
    translated = pq.read_table(tmp_path / "evaluation" / "translations.parquet").to_pylist()
    assert {(row["checkpoint"], row["task"]) for row in translated} == {(20, "wmt14_en_de")}
    assert [row["document"] for row in translated] == [f"test/{line}" for line in range(1, 11)]
    references = [target for _, target in pair_texts(12)[:10]]
    metric = BLEU()
    score = metric.corpus_score([row["translation"] for row in translated], [references]).score / 100
    assert metrics["eval/wmt14_en_de/0shot/bleu"] == pytest.approx(score)
    assert "eval/translation/0shot/bleu" not in metrics
    statistics = json.loads((tmp_path / "evaluation" / "statistics.json").read_text())
    assert statistics["bleu"] == str(metric.get_signature())
    tokenized = tokenized_bleu([row["translation"] for row in translated], references, "de")
    assert metrics["eval/wmt14_en_de/0shot/tokenized_bleu"] == pytest.approx(tokenized.score / 100)
    assert statistics["tokenized_bleu"] == tokenized.signature
    found = load_scores(tmp_path / "evaluation")
    labels = [column.label for column in columns_of([found], [{}], default_table()) if column.group == "wmt14_en_de"]
    assert labels == ["BLEU", "tokenized BLEU"]
    chosen = set(pq.read_table(tmp_path / "evaluation" / "heldout.parquet")["document"].to_pylist())
    files = sorted((tmp_path / "corpus" / "heldout").glob("*.parquet"))
    sources = {row["id"]: row["text"] for file in files for row in pq.read_table(file).to_pylist()}
    cut = [name for name in chosen if len(sources[name].encode()) > MODEL.context_length - 1]
    assert 0 < len(cut) < len(chosen)
    assert statistics["cut_sources"] == len(cut)
