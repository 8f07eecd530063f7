"""Items of all runs: which are shown first with what was answered, and all of them as one table."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from paribus.reporting.compare import Comparison, compare
from paribus.reporting.items import (
    ItemText,
    Texts,
    all_scored,
    items_table,
    left_out,
    most_different,
    texts_table,
    with_left_out,
)
from support.tables import record, write_scores

ITEMS = 40
RIGHT = [1.0] * 20 + [0.0] * 20


def changed(places: Sequence[int]) -> list[float]:
    return [1 - value if place in places else value for place, value in enumerate(RIGHT)]


def table(root: Path, arms: Mapping[str, Sequence[Sequence[float]]], **scores: Any) -> Comparison:
    """Arms with the answers of each seed."""
    runs = [
        record(root, f"{arm}{seed}", {"tokenizer": arm}, {("boolq", 0): values}, seed=seed, **scores)
        for arm, seeds in arms.items()
        for seed, values in enumerate(seeds)
    ]
    return compare(runs, ["tokenizer"])


def with_bits(root: Path, arm: str, answers: Sequence[float], bits: Sequence[float], seed: int = 0) -> Any:
    run = record(root, f"{arm}{seed}", {"tokenizer": arm}, {("boolq", 0): [*answers]}, seed=seed)
    assert run.scores is not None
    path = run.scores / "items.parquet"
    judged = pd.read_parquet(path)
    measured = judged.assign(metric="choice_bits", value=[*bits, *([1.0] * (len(answers) - len(bits)))])
    pd.concat([judged, measured], ignore_index=True).to_parquet(path)
    return run


def lines(comparison: Comparison, task: str = "boolq", limit: int = ITEMS, texts: Texts | None = None) -> Any:
    scored = all_scored(comparison)[task]
    _, *found = most_different(comparison, scored, comparison.scores, texts or {}, limit).lines
    return found


def test_items_in_which_rows_differ_most_come_first(tmp_path: Path) -> None:
    arms = {"bpe": [RIGHT, RIGHT], "scaffold_bpe": [changed([7, 30]), changed([7])]}
    comparison = table(tmp_path, arms)
    found = lines(comparison)
    assert len(found) == ITEMS
    assert found[0] == ["boolq-0007", "", "2 of 2 right", "0 of 2 right"]
    assert found[1] == ["boolq-0030", "", "0 of 2 right", "1 of 2 right"]
    assert [item for item, *_ in lines(comparison, limit=1)] == ["boolq-0007"]


def test_of_items_that_differ_alike_those_come_first_that_differ_in_bits(tmp_path: Path) -> None:
    runs = [
        with_bits(tmp_path, "bpe", RIGHT, []),
        with_bits(tmp_path, "scaffold_bpe", changed([7]), [1.0] * 9 + [3.0, 9.0]),
    ]
    found = lines(compare(runs, ["tokenizer"]), limit=3)
    assert [item for item, *_ in found] == ["boolq-0007", "boolq-0010", "boolq-0009"]
    assert found[1][2:] == ["0 of 1 right, 1.00 bits", "0 of 1 right, 9.00 bits"] or found[1][3].endswith("9.00 bits")


def test_items_that_the_table_leaves_out_are_among_them(tmp_path: Path) -> None:
    names = [f"boolq-{place:04d}" for place in range(3)]
    runs = [
        record(tmp_path, arm, {"tokenizer": arm}, {("boolq", 0): changed(places)},
               statistics={"heldout": {}, "tasks": {"boolq": {"chance": 0.5, "truncated_items": {"0": cuts}}}})
        for arm, places, cuts in (("bpe", [], []), ("scaffold_bpe", [0, 35], names))
    ]  # fmt: skip
    comparison = compare(runs, ["tokenizer"])
    scored = all_scored(comparison)["boolq"]
    assert left_out(scored, comparison) == set(names)
    found = most_different(comparison, scored, with_left_out(comparison, runs), {}, ITEMS)
    assert found.count == ITEMS
    assert [item for item, *_ in found.lines[1:3]] == ["boolq-0000", "boolq-0035"]


def test_a_text_is_one_line_that_cannot_control_what_is_around_it(tmp_path: Path) -> None:
    comparison = table(tmp_path, {"bpe": [RIGHT], "scaffold_bpe": [changed([7])]})
    text = ItemText("before " * 100 + "Is\n it \u202e\x1b[2J?", ("yes", "no"), 1, accepted=())
    ((_, shown, *_),) = lines(comparison, limit=1, texts={"boolq-0007": text})
    question, *choices = shown.split(" / ")
    assert question.endswith("Is it \\u202e\\x1b[2J?") and len(question) == 300
    assert choices == ["· yes", "✓ no"]


def test_documents_are_shown_from_their_beginning_with_their_bits(tmp_path: Path) -> None:
    runs = [
        record(tmp_path, arm, {"tokenizer": arm}, {}, heldout=[(bits, 400), (800.0, 400)])
        for arm, bits in (("bpe", 800.0), ("scaffold_bpe", 900.0))
    ]
    found = lines(compare(runs, ["tokenizer"]), "heldout", texts={"doc-000": ItemText("begins here " * 100)})
    assert found[0][0] == "doc-000" and found[0][1].startswith("begins here") and len(found[0][1]) == 300
    assert found[0][2:] == ["2.0000 bits a byte", "2.2500 bits a byte"]


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
