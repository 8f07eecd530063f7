"""The stages `tasks` and `evaluation` on pairs: bits per byte of targets given their sources."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from sacrebleu.metrics.bleu import BLEU

from paribus.corpus.artifact import CorpusArtifact, CorpusWriter
from paribus.evaluation.heldout import read_pairs
from paribus.evaluation.stage import build_scores, build_tasks
from paribus.modeling.models import build_model, save_model
from paribus.reporting.runs import load_scores
from paribus.tokenization import Tokenizer
from support.stages import context_at
from support.training_inputs import TRAINING, TRANSLATOR, pair_config, pair_texts

EOS = 256
MODEL = replace(TRANSLATOR, initialization="normal", initializer_range=0.5)


def write_inputs(root: Path) -> None:
    """Pairs, of which half are held out, and two checkpoints that read bytes."""
    tokenizer = Tokenizer.train((), algorithm="bytes", special_tokens=("<|endoftext|>",))
    with CorpusWriter(root / "corpus", heldout=0.5, pairs=True) as writer:
        longer = [(text * 4, text * 4) for text, _ in pair_texts(9)]
        for number, (source, target) in enumerate([*pair_texts(30), *longer]):
            writer.add(f"pair{number}", source, "test", target)
    for step in (10, 20):
        directory = root / "training" / f"step_{step:08d}"
        directory.mkdir(parents=True)
        save_model(build_model(MODEL, 257, step, eos_id=EOS), directory)
        tokenizer.save(directory / "tokenizer")


def scored(root: Path, **fields: Any) -> dict[str, float]:
    """Metrics of the checkpoints of `write_inputs` under an evaluation with these fields."""
    write_inputs(root)
    config = pair_config(training=replace(TRAINING, checkpoints=2))
    config = replace(config, model=MODEL, evaluation=replace(config.evaluation, **fields))
    inputs = {name: root / name for name in ("corpus", "tasks", "training")}
    build_tasks(context_at(root / "tasks", root / "tasks.work", config, inputs))
    result = build_scores(context_at(root / "evaluation", root / "scores.work", config, inputs))
    return result["metrics"]  # type: ignore[return-value]


def rows(root: Path, name: str, **values: Any) -> list[dict[str, Any]]:
    """Rows of a table of scores that have these values."""
    table = pq.read_table(root / "evaluation" / f"{name}.parquet").to_pylist()
    return [row for row in table if values.items() <= row.items()]


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


def test_every_held_out_target_has_its_bits_given_its_source_under_each_checkpoint(tmp_path: Path) -> None:
    metrics = scored(tmp_path, last_checkpoints=2, batch_tokens=80, translations=0)
    heldout = {document.id: document for document in CorpusArtifact(tmp_path / "corpus").documents("heldout")}
    means = []
    for step in (10, 20):
        model = build_model(MODEL, 257, step, eos_id=EOS).eval()
        table = rows(tmp_path, "heldout", checkpoint=step)
        assert sorted(row["document"] for row in table) == sorted(heldout)
        for row in table:
            pair = heldout[row["document"]]
            assert row["bytes"] == len((pair.target or "").encode())
            if row["bytes"] <= 8:
                expected = bits_one_token_at_a_time(model, pair.text, pair.target or "")
                assert row["bits"] == pytest.approx(expected, rel=1e-4)
        means.append(sum(row["bits"] for row in table) / sum(row["bytes"] for row in table))
    assert metrics == {"eval/bits_per_byte": pytest.approx(sum(means) / 2)}
    assert len(load_scores(tmp_path / "evaluation").heldout) == len(heldout)
    assert {pair.id for pair in read_pairs(tmp_path / "tasks" / "heldout.jsonl")} == heldout.keys()


def test_held_out_pairs_are_translated_and_their_bleu_is_that_of_the_translations(tmp_path: Path) -> None:
    metrics = scored(tmp_path, last_checkpoints=2, batch_tokens=80, translations=9, beams=2)
    targets = {pair.id: pair.target for pair in read_pairs(tmp_path / "tasks" / "heldout.jsonl")}
    scores = []
    for step in (10, 20):
        table = rows(tmp_path, "translations", checkpoint=step)
        assert [row["document"] for row in table] == list(targets)[:9]
        references = [targets[row["document"]] for row in table]
        scores.append(BLEU().corpus_score([row["translation"] for row in table], [references]).score / 100)
        items = rows(tmp_path, "items", checkpoint=step)
        assert sum(row["value"] for row in items) / 9 == pytest.approx(scores[-1])
        assert {row["metric"] for row in items} == {"bleu"}, "the language of held-out pairs may be unknown"
    assert metrics["eval/translation/0shot/bleu"] == pytest.approx(sum(scores) / 2)
