"""Which items are listed first, what each row answered in them, and how they stand in a terminal."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.cells import cell_len
from rich.console import Console

from paribus.errors import ConfigurationError
from paribus.reporting.formats.shown_text import beginning, end, one_line
from paribus.reporting.items.item_text import ItemText
from paribus.reporting.items.scored import all_scored, asked_for, at_checkpoint, with_left_out
from paribus.reporting.items.terminal import item_blocks, overview_tables
from paribus.reporting.items.view import ItemsView, items_view, overview_view
from paribus.reporting.table.comparison import Comparison, compare
from support.tables import record

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


def view(comparison: Comparison, task: str = "boolq", **how: Any) -> ItemsView:
    scored = all_scored(comparison)[task]
    given = {"limit": None, "better": None, "gone": (), **how}
    return items_view(comparison, scored, given.pop("scores", comparison.scores), given.pop("texts", {}), **given)


def shown(found: ItemsView, comparison: Comparison, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, emoji=False)
    assert found.scored is not None
    for block in item_blocks(found.scored, found.items, comparison, console):
        console.print(block, soft_wrap=True)
    return console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO above


def test_items_in_which_rows_part_most_come_first(tmp_path: Path) -> None:
    arms = {"bpe": [RIGHT, RIGHT], "scaffold_bpe": [changed([7, 30]), changed([7])]}
    comparison = table(tmp_path, arms)
    found = view(comparison)
    assert [item.item for item in found.items[:2]] == ["boolq-0007", "boolq-0030"]
    assert len(found.items) == ITEMS
    assert [(row.right, row.answers) for row in found.items[0].rows] == [(2, 2), (0, 2)]
    assert [(row.right, row.answers) for row in found.items[1].rows] == [(0, 2), (1, 2)]
    assert "in which they part in 2" in found.heading
    assert [item.item for item in view(comparison, limit=1).items] == ["boolq-0007"]


def test_a_third_of_the_answers_is_a_third_wherever_it_lies(tmp_path: Path) -> None:
    """1 - 2/3 is more than 1/3 - 0 in floating point, which must not hide that the latter parts further in bits."""
    answered = {"bpe": ([1, 0], [1, 0], [0, 0]), "scaffold_bpe": ([1, 1], [1, 0], [1, 0])}
    runs = []
    for (arm, right), bits in zip(answered.items(), ([1.0, 9.0], [1.0, 1.0]), strict=True):
        for seed, values in enumerate(right):
            run = record(tmp_path, f"{arm}{seed}", {"tokenizer": arm}, {("boolq", 0): [*values, *RIGHT]}, seed=seed)
            assert run.scores is not None
            path = run.scores / "items.parquet"
            judged = pd.read_parquet(path)
            measured = judged.assign(metric="choice_bits", value=[*bits, *([1.0] * ITEMS)])
            pd.concat([judged, measured], ignore_index=True).to_parquet(path)
            runs.append(run)
    found = view(compare(runs, ["tokenizer"]))
    assert [item.item for item in found.items[:2]] == ["boolq-0001", "boolq-0000"]
    gained = view(compare(runs, ["tokenizer"]), better=1)
    assert [item.item for item in gained.items] == ["boolq-0001", "boolq-0000"]


def test_of_items_that_part_alike_those_come_first_that_part_in_bits(tmp_path: Path) -> None:
    runs = []
    for arm, answers, bits in (("bpe", RIGHT, [1.0] * ITEMS), ("scaffold_bpe", changed([7]), [1.0] * 9 + [3.0, 9.0])):
        run = record(tmp_path, arm, {"tokenizer": arm}, {("boolq", 0): answers})
        assert run.scores is not None
        path = run.scores / "items.parquet"
        right = pd.read_parquet(path)
        values = bits + [1.0] * (ITEMS - len(bits))
        pd.concat([right, right.assign(metric="choice_bits", value=values)], ignore_index=True).to_parquet(path)
        runs.append(run)
    found = view(compare(runs, ["tokenizer"]), limit=3)
    assert [item.item for item in found.items] == ["boolq-0007", "boolq-0010", "boolq-0009"]
    assert [(row.right, row.bits) for row in found.items[1].rows] == [(1, 1.0), (1, 9.0)]
    assert "9.00 bits  +8.00\n" in shown(found, compare(runs, ["tokenizer"]))


@pytest.mark.parametrize(("better", "items"), [(0, ["boolq-0007"]), (1, ["boolq-0030"])])
def test_the_items_in_which_one_row_is_better_are_those_alone(better: int, items: list[str], tmp_path: Path) -> None:
    comparison = table(tmp_path, {"bpe": [RIGHT], "scaffold_bpe": [changed([7, 30])]})
    found = view(comparison, better=better)
    assert [item.item for item in found.items] == items
    assert f"1 of {ITEMS} items, of the 1 in which {comparison.row_name(comparison.rows[better])}" in found.heading


def test_of_one_arm_the_items_that_were_answered_worst_come_first(tmp_path: Path) -> None:
    comparison = table(tmp_path, {"bpe": [RIGHT, changed([25])]})
    found = view(comparison, limit=21)
    assert [item.rows[0].right for item in found.items] == [0] * 19 + [1, 2]
    assert "answered worst first" in found.heading
    console = Console(file=io.StringIO(), width=80)
    for part in overview_tables(
        overview_view(comparison, list(all_scored(comparison).values()), ()).overviews, comparison
    ):
        console.print(part)
    assert "51.25" in console.file.getvalue()  # type: ignore[attr-defined]


def cut(items: Sequence[str]) -> dict[str, Any]:
    return {"heldout": {}, "tasks": {"boolq": {"chance": 0.5, "truncated_items": {"0": list(items)}}}}


@pytest.mark.parametrize(("number", "out"), [(3, 3), (11, 0)], ids=["thirty are left", "too few would be left"])
def test_items_that_some_run_cut_are_marked_by_the_rule_of_the_table(number: int, out: int, tmp_path: Path) -> None:
    names = [f"boolq-{place:04d}" for place in range(number)]
    runs = [
        record(tmp_path, arm, {"tokenizer": arm}, {("boolq", 0): changed(places)}, statistics=cut(cuts))
        for arm, places, cuts in (("bpe", [], []), ("scaffold_bpe", [0, 35], names))
    ]
    comparison = compare(runs, ["tokenizer"])
    found = view(comparison, scores=with_left_out(comparison, runs))
    (about,) = found.overviews
    assert (about.items, about.left_out) == (ITEMS - out, out)
    assert about.pairs[0].answers == comparison.rows[0].cells["boolq/mean"].items == ITEMS - out
    assert {item.item for item in found.items if item.left_out} == set(names[:out])
    assert len(found.items) == ITEMS
    assert ("left out of the table" in shown(found, comparison)) == bool(out)
    assert any("3 of 40 items are left out" in line for line in found.warnings) == bool(out)


def test_one_checkpoint_and_one_number_of_shots_are_looked_at_alone(tmp_path: Path) -> None:
    runs = [
        record(
            tmp_path, arm, {"tokenizer": arm}, {("boolq", shots): RIGHT for shots in (0, 5)},
            checkpoints=2, later=[{("boolq", 0): changed(places), ("boolq", 5): RIGHT}],
            heldout=[(900.0, 400)] * ITEMS,
        )
        for arm, places in (("bpe", []), ("scaffold_bpe", [3]))
    ]  # fmt: skip
    comparison = compare(runs, ["tokenizer"])
    (scored,) = asked_for(all_scored(comparison), "boolq", 0)
    for asked, right in (("0", [1, 1]), ("1", [1, 0]), ("last", [1, 0])):
        scores = at_checkpoint(comparison.scores, asked)
        found = items_view(comparison, scored, scores, {}, limit=None, better=None, gone=())
        (item,) = (item for item in found.items if item.item == "boolq-0003")
        assert [(row.right, row.answers) for row in item.rows] == [(value, 1) for value in right]
    with pytest.raises(ConfigurationError, match="--checkpoint 7: was not scored; there are last, 0, 1"):
        at_checkpoint(comparison.scores, "7")
    with pytest.raises(
        ConfigurationError, match="--shots 3: boolq: no answers with so many examples in the prompt; there are 0, 5"
    ):
        asked_for(all_scored(comparison), "boolq", 3)
    with pytest.raises(ConfigurationError, match="--task: 'bolq' is unknown; did you mean 'boolq'"):
        asked_for(all_scored(comparison), "bolq", None)
    assert [one.name for one in asked_for(all_scored(comparison), None, 5)] == ["boolq"]


HOSTILE = "\x1b[2Jgone\x07 \u202ereversed \x9b31m red\r\n new line \u061c1-2"
TEXTS = {
    "boolq-0007": ItemText(
        f"the beginning {'多余的话' * 200} 的结尾？ {HOSTILE} END?", ("yes", "no" * 200, "河" * 100), 1
    ),
    "boolq-0030": ItemText(choices=("before one", "before two"), right=0, ending="the ending"),
}


@pytest.mark.parametrize("width", [40, 80, 140])
def test_texts_fit_the_terminal_end_with_the_question_and_cannot_control_it(width: int, tmp_path: Path) -> None:
    comparison = table(tmp_path, {"bpe": [RIGHT], "scaffold_bpe": [changed([7, 30])]})
    found = shown(view(comparison, texts=TEXTS, limit=2), comparison, width)
    lines = found.splitlines()
    assert max(map(cell_len, lines)) <= width
    assert "END?" in found and "the beginning" not in found and "…" in found
    assert not any(character in found for character in "\x1b\x07\x9b\u202e\u061c\r")
    assert "\\x1b[2Jgone" in found.replace("\n   ", "")
    assert "✓ nono" in found and "· 河" in found and "✓ before one" in found and "  the ending" in found
    assert len(lines) < 26


def test_what_has_no_texts_and_what_is_not_on_record_is_said(tmp_path: Path) -> None:
    comparison = table(tmp_path, {"bpe": [RIGHT], "scaffold_bpe": [changed([7, 30])]})
    assert "Texts of boolq are not on record." in view(comparison).notes
    assert "Which of the wrong choices was taken is not on record." in view(comparison, texts=TEXTS).notes
    two = {name: ItemText("a question", ("a", "b"), 0) for name in TEXTS}
    assert not any("not on record" in line for line in view(comparison, texts=two).notes)
    assert view(comparison, gone=["no texts: gone"]).warnings == ["no texts: gone"]


def test_documents_are_shown_from_their_beginning_with_their_bits(tmp_path: Path) -> None:
    runs = [
        record(
            tmp_path, arm, {"tokenizer": arm}, {},
            heldout=[(bits if number == 4 else 800.0, 400) for number in range(ITEMS)],
        )
        for arm, bits in (("bpe", 800.0), ("scaffold_bpe", 600.0))
    ]  # fmt: skip
    comparison = compare(runs, ["tokenizer"])
    texts = {"doc-004": ItemText(f"It begins here {'and goes on ' * 200} until the end.")}
    found = shown(view(comparison, "heldout", texts=texts, limit=1), comparison)
    assert "1. doc-004  (400 bytes)" in found and "It begins here" in found and "until the end" not in found
    assert "2.0000 bits a byte\n" in found and "1.5000 bits a byte  −0.5000\n" in found


@pytest.mark.parametrize("cells", [10, 25, 80])
@pytest.mark.parametrize("text", ["plain words " * 40, "河流把水带到大海" * 40, "mixed 河流 words " * 40, "a" * 400])
def test_a_text_is_shortened_to_its_cells(text: str, cells: int) -> None:
    for cut_text in (beginning(text, cells), end(text, cells)):
        assert cells - 13 <= cell_len(cut_text) <= cells
    assert one_line(text).startswith(beginning(text, cells).removesuffix("…"))
    assert one_line(text).endswith(end(text, cells).removeprefix("…"))
    assert beginning("short", cells) == end("short", cells) == "short"


def test_seeds_and_checkpoints_are_those_of_runs_that_have_scores(tmp_path: Path) -> None:
    runs = [
        record(tmp_path, f"bpe{seed}", {"tokenizer": "bpe"}, {("boolq", 0): RIGHT}, seed=seed, checkpoints=4)
        for seed in range(3)
    ]
    lost = replace(runs[2], scores=None, gone=("its evaluation is gone",))
    found = view(compare([*runs[:2], lost], ["tokenizer"]))
    assert found.notes[0].startswith("Each row has 8 answers an item (2 seeds, 4 checkpoints), right")
