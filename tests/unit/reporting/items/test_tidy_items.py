"""All items as one table: every metric of every run, checkpoint and item, with texts, in each of the file forms."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paribus.reporting.items.item_text import ItemText, Texts
from paribus.reporting.items.scored import all_scored, at_checkpoint
from paribus.reporting.items.tidy import WRITERS, items_table
from paribus.reporting.items.view import items_view
from paribus.reporting.table.comparison import Comparison, compare
from support.tables import record, write_scores

TEXTS = {"boolq-0001": ItemText("Is it, 真的?\n", ("yes", 'n"o'), 0), "doc-002": ItemText("a document")}


def texts_of(task: str) -> Texts:
    return {"boolq": TEXTS, "heldout": TEXTS}.get(task, {})


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
    return items_table(comparison, list(all_scored(comparison).values()), comparison.scores, texts_of)


def test_every_value_of_every_run_is_in_the_table(comparison: Comparison) -> None:
    found = made(comparison).to_pandas()
    tasks = found[found.task == "boolq"]
    assert len(tasks) == 2 * 2 * 2 * 4 and len(found) - len(tasks) == 2 * 2 * 3
    assert sorted(set(tasks.groupby(["run_id", "checkpoint", "shots", "item"]).size())) == [1]
    assert tasks.groupby("item").value.mean().tolist() == [1, 0, 1, 0]
    (text,) = {
        (line.question, tuple(line.choices), line.right) for line in tasks[tasks.item == "boolq-0001"].itertuples()
    }
    assert text == ("Is it, 真的?\n", ("yes", 'n"o'), 0)
    documents = found[found.task == "heldout"]
    assert set(documents.metric) == {"bits"} and documents.shots.isna().all()
    assert documents[documents.item == "doc-000"][["value", "bytes"]].drop_duplicates().to_numpy().tolist() == [
        [900.5, 400]
    ]
    assert set(documents[documents.item == "doc-002"].question) == {"a document"}
    assert not found.left_out.any() and set(found.tokenizer) == {"bpe"} and set(found.seed) == {0, 1}


def test_the_forms_of_the_file_say_the_same(comparison: Comparison) -> None:
    table = made(comparison)
    assert pq.read_table(io.BytesIO(WRITERS[".parquet"](table))) == table
    assert [json.loads(line) for line in WRITERS[".jsonl"](table).splitlines()] == table.to_pylist()
    lines = pd.read_csv(io.BytesIO(WRITERS[".csv"](table)), keep_default_na=False, dtype=str)
    assert lines.columns.tolist() == table.column_names and len(lines) == table.num_rows
    with_text = lines[lines.choices != ""]
    assert {tuple(json.loads(choices)) for choices in with_text.choices} == {("yes", 'n"o')}
    assert set(with_text.question) == {"Is it, 真的?\n"}


def test_a_carriage_return_ends_no_line_of_csv(comparison: Comparison) -> None:
    texts = {"boolq-0001": ItemText("one\rline")}
    table = items_table(comparison, [all_scored(comparison)["boolq"]], comparison.scores, lambda task: texts)
    lines = pd.read_csv(io.BytesIO(WRITERS[".csv"](table)), keep_default_na=False, dtype=str)
    assert len(lines) == table.num_rows and set(lines.question) == {"", "one\rline"}


def test_seeds_that_are_a_factor_have_one_column(tmp_path: Path) -> None:
    runs = [record(tmp_path, f"a{seed}", {"seed": str(seed)}, {("boolq", 0): [1, 0]}, seed=seed) for seed in (0, 1)]
    table = made(compare(runs, ["seed"]))
    assert table.column_names.count("seed") == 1
    assert table["seed"].to_pylist() == [0, 0, 1, 1]


def test_a_value_that_is_no_number_of_json_is_null_there_alone(comparison: Comparison) -> None:
    finite = made(comparison)
    values = [float("inf"), *finite["value"].to_pylist()[1:]]
    table = finite.set_column(finite.column_names.index("value"), "value", pa.array(values))

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    lines = [json.loads(line, parse_constant=refuse) for line in WRITERS[".jsonl"](table).splitlines()]
    assert [line["value"] for line in lines] == [None, *values[1:]]
    assert pq.read_table(io.BytesIO(WRITERS[".parquet"](table)))["value"].to_pylist() == values


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
    scored = all_scored(comparison)["translation"]
    for asked, step in (("0", 0), ("last", 1)):
        one = compare([run], ["tokenizer"])
        scores = at_checkpoint(one.scores, asked)
        view = items_view(replace(one, scores=scores), scored, scores, {}, limit=None, better=None, gone=())
        assert [item.rows[0].written for item in view.items] == [f"{step} 0", f"{step} 1"]


def test_answers_after_fine_tuning_are_of_the_last_checkpoint_alone(tmp_path: Path) -> None:
    run = record(tmp_path, "a", {"tokenizer": "bpe"}, {("boolq", 0): [1, 0]}, checkpoints=2)
    tuned = write_scores(tmp_path / "tuned", {("squad", 0): [1, 0]}, metric="exact_match")
    items = pd.read_parquet(tuned / "items.parquet")
    items.assign(checkpoint=1).to_parquet(tuned / "items.parquet")
    about = {"checkpoint": 1, "tasks": {"squad": {"documents_cut": 0, "document_bytes": 10.0}}}
    (tuned / "statistics.json").write_text(json.dumps(about), encoding="utf-8")
    comparison = compare([replace(run, finetuned=tuned)], ["tokenizer"])
    found = {}
    for asked in ("0", "1", "last"):
        scores = at_checkpoint(comparison.scores, asked)
        one = replace(comparison, scores=scores)
        lines = items_table(one, list(all_scored(one).values()), scores, texts_of).to_pylist()
        found[asked] = {(line["task"], line["checkpoint"]) for line in lines}
    both = {("boolq", 1), ("squad", 1)}
    assert found == {"0": {("boolq", 0)}, "1": both, "last": both}
