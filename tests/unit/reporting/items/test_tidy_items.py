"""All items as one table: every metric of every run, checkpoint and item; and their texts."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from paribus.reporting.items.item_text import ItemText
from paribus.reporting.items.scored import all_scored
from paribus.reporting.items.tidy import items_table, texts_table
from paribus.reporting.table.comparison import Comparison, compare
from support.tables import record, write_scores


@pytest.fixture(name="comparison")
def _comparison(tmp_path: Path) -> Comparison:
    answers = {("boolq", shots): [1, 0, 1, 0] for shots in (0, 5)}
    heldout = [(900.5, 400), (800.0, 300), (700.0, 200)]
    runs = [
        record(tmp_path, f"bpe{seed}", {"tokenizer": "bpe"}, answers, seed=seed, checkpoints=2, heldout=heldout)
        for seed in (0, 1)
    ]
    return compare(runs, ["tokenizer"])


def made(comparison: Comparison) -> pa.Table:
    return items_table(comparison, list(all_scored(comparison).values()), comparison.scores)


def test_every_value_of_every_run_is_in_the_table(comparison: Comparison) -> None:
    found = made(comparison).to_pandas()
    tasks = found[found.task == "boolq"]
    assert len(tasks) == 2 * 2 * 2 * 4 and len(found) - len(tasks) == 2 * 2 * 3
    assert sorted(set(tasks.groupby(["run_id", "checkpoint", "shots", "item"]).size())) == [1]
    assert tasks.groupby("item").value.mean().tolist() == [1, 0, 1, 0]
    documents = found[found.task == "heldout"]
    assert set(documents.metric) == {"bits"} and documents.shots.isna().all()
    assert documents[documents.item == "doc-000"][["value", "bytes"]].drop_duplicates().to_numpy().tolist() == [
        [900.5, 400]
    ]
    assert not found.left_out.any() and set(found.tokenizer) == {"bpe"} and set(found.seed) == {0, 1}


def test_texts_are_a_line_an_item() -> None:
    texts = {
        "boolq": {"boolq-0001": ItemText("Is it, 真的?\n", ("yes", 'n"o'), 0)},
        "heldout": {"doc-002": ItemText("a")},
    }
    first, second = texts_table(texts).to_pylist()
    assert first == {"task": "boolq", "item": "boolq-0001", "question": "Is it, 真的?\n", "choices": ["yes", 'n"o'],
                     "right": 0, "ending": None, "accepted": None}  # fmt: skip
    assert (second["item"], second["question"], second["choices"]) == ("doc-002", "a", None)


def test_what_models_wrote_stands_beside_its_item_and_checkpoint(tmp_path: Path) -> None:
    run = record(tmp_path, "a", {"tokenizer": "bpe"}, {("translation", 0): [0.2, 0.3]}, metric="bleu", checkpoints=2)
    assert run.scores is not None
    written = [(step, "translation", f"translation-{item:04d}", f"{step} {item}") for step in (0, 1) for item in (0, 1)]
    columns = ["checkpoint", "task", "document", "translation"]
    pd.DataFrame(written, columns=columns).to_parquet(run.scores / "translations.parquet")
    comparison = compare([run], ["tokenizer"])
    found = made(comparison).to_pandas()
    assert {(line.checkpoint, line.item[-1], line.written) for line in found.itertuples()} == {
        (step, str(item), f"{step} {item}") for step in (0, 1) for item in (0, 1)
    }


def test_answers_after_fine_tuning_are_of_the_last_checkpoint_alone(tmp_path: Path) -> None:
    run = record(tmp_path, "a", {"tokenizer": "bpe"}, {("boolq", 0): [1, 0]}, checkpoints=2)
    tuned = write_scores(tmp_path / "tuned", {("squad", 0): [1, 0]}, metric="exact_match")
    items = pd.read_parquet(tuned / "items.parquet")
    items.assign(checkpoint=1).to_parquet(tuned / "items.parquet")
    about = {"checkpoint": 1, "tasks": {"squad": {"documents_cut": 0, "document_bytes": 10.0}}}
    (tuned / "statistics.json").write_text(json.dumps(about), encoding="utf-8")
    comparison = compare([replace(run, finetuned=tuned)], ["tokenizer"])
    lines = made(comparison).to_pylist()
    steps = {(line["task"], line["checkpoint"]) for line in lines}
    assert steps == {("boolq", 0), ("boolq", 1), ("squad", 1)}
