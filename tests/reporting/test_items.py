"""Items of all runs: which are shown first with what was answered, and all of them as one table."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from paribus.reporting.compare import Comparison, compare
from paribus.reporting.items import ItemText, Texts, all_scored, items_table, left_out, most_different, with_left_out
from support.tables import record

ITEMS = 40
RIGHT = [1.0] * 20 + [0.0] * 20


def changed(*places: int) -> list[float]:
    return [1 - value if place in places else value for place, value in enumerate(RIGHT)]


def of_arms(root: Path, arms: Mapping[str, Sequence[Sequence[float]]]) -> Comparison:
    """Arms with the answers of each seed."""
    runs = [
        record(root, f"{arm}{seed}", {"tokenizer": arm}, {("boolq", 0): values}, seed=seed)
        for arm, seeds in arms.items()
        for seed, values in enumerate(seeds)
    ]
    return compare(runs, ["tokenizer"])


def lines(comparison: Comparison, task: str = "boolq", limit: int = ITEMS, texts: Texts | None = None) -> list:
    scored = all_scored(comparison)[task]
    _, *lines = most_different(comparison, scored, comparison.scores, texts or {}, limit).lines
    return lines


def test_items_in_which_rows_differ_most_come_first(tmp_path: Path) -> None:
    comparison = of_arms(tmp_path, {"bpe": [RIGHT, RIGHT], "scaffold_bpe": [changed(7, 30), changed(7)]})
    first, second, *others = lines(comparison)
    assert first == ["boolq-0007", "", "2 of 2 right", "0 of 2 right"]
    assert second == ["boolq-0030", "", "0 of 2 right", "1 of 2 right"]
    assert len(others) == ITEMS - 2
    assert lines(comparison, limit=1) == [first]


def test_items_that_the_table_leaves_out_are_among_them(tmp_path: Path) -> None:
    names = [f"boolq-{place:04d}" for place in range(3)]
    runs = [
        record(tmp_path, arm, {"tokenizer": arm}, {("boolq", 0): answers},
               statistics={"heldout": {}, "tasks": {"boolq": {"chance": 0.5, "truncated_items": {"0": cuts}}}})
        for arm, answers, cuts in (("bpe", RIGHT, []), ("scaffold_bpe", changed(0, 35), names))
    ]  # fmt: skip
    comparison = compare(runs, ["tokenizer"])
    scored = all_scored(comparison)["boolq"]
    assert left_out(scored, comparison) == set(names)
    shown = most_different(comparison, scored, with_left_out(comparison, runs), {}, ITEMS)
    assert shown.count == ITEMS
    assert [item for item, *_ in shown.lines[1:3]] == ["boolq-0000", "boolq-0035"]


def test_a_text_is_one_line_that_cannot_control_what_is_around_it(tmp_path: Path) -> None:
    comparison = of_arms(tmp_path, {"bpe": [RIGHT], "scaffold_bpe": [changed(7)]})
    text = ItemText("before " * 100 + "Is\n it \u202e\x1b[2J?", ("yes", "no"), 1, accepted=())
    ((_, shown, *_),) = lines(comparison, limit=1, texts={"boolq-0007": text})
    question, *choices = shown.split(" / ")
    assert question.endswith("Is it \\u202e\\x1b[2J?") and len(question) == 300
    assert choices == ["· yes", "✓ no"]


# All items as one table


def table(comparison: Comparison) -> pd.DataFrame:
    return items_table(comparison, list(all_scored(comparison).values()), comparison.scores).to_pandas()


def test_every_value_of_every_run_is_in_the_table(tmp_path: Path) -> None:
    answers = {("boolq", shots): [1, 0, 1, 0] for shots in (0, 5)}
    heldout = [(900.5, 400), (800.0, 300), (700.0, 200)]
    runs = [
        record(tmp_path, f"bpe{seed}", {"tokenizer": "bpe"}, answers, seed=seed, checkpoints=2, heldout=heldout)
        for seed in (0, 1)
    ]
    items = table(compare(runs, ["tokenizer"]))
    tasks, documents = items[items.task == "boolq"], items[items.task == "heldout"]
    assert (len(tasks), len(documents), len(items)) == (2 * 2 * 2 * 4, 2 * 2 * 3, 32 + 12)
    assert set(tasks.groupby(["run_id", "checkpoint", "shots", "item"]).size()) == {1}
    assert tasks.groupby("item").value.mean().tolist() == [1, 0, 1, 0]
    assert set(documents.metric) == {"bits"} and documents.shots.isna().all()
    first = documents[documents.item == "doc-000"]
    assert first[["value", "bytes"]].drop_duplicates().to_numpy().tolist() == [[900.5, 400]]
    assert not items.left_out.any() and set(items.tokenizer) == {"bpe"} and set(items.seed) == {0, 1}


def test_generated_answers_stand_beside_their_item_and_checkpoint(tmp_path: Path) -> None:
    run = record(tmp_path, "a", {"tokenizer": "bpe"}, {("translation", 0): [0.2, 0.3]}, metric="bleu", checkpoints=2)
    assert run.scores is not None
    written = {(step, f"translation-{item:04d}", f"{step} {item}") for step in (0, 1) for item in (0, 1)}
    columns = ["checkpoint", "document", "translation"]
    translations = pd.DataFrame(sorted(written), columns=columns).assign(task="translation")
    translations.to_parquet(run.scores / "translations.parquet")
    items = table(compare([run], ["tokenizer"]))
    assert {(line.checkpoint, line.item, line.written) for line in items.itertuples()} == written
