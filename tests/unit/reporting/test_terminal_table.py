"""Which columns a terminal of 80 columns shows."""

import io

from rich.console import Console

from paribus.reporting.formats.terminal import terminal_table
from paribus.reporting.table.column import BITS_PER_BYTE, Column, of_texts
from paribus.reporting.table.layout import TableEntry, TableLayout, TableLine

TASK = Column("continuation/0_shot", "continuation", "0-shot", "accuracy", "higher")
SETS = [of_texts(name, "") for name in ("heldout_concatenated", "heldout_clean")]
LABELS = (("bpe", "merge_rank"), ("scaffold_bpe", "longest_first"))


def shown(
    columns: list[Column],
    *,
    primary: set[str],
    chance: str = "25.0",
    empty: tuple[Column, ...] = (),
    factors: tuple[str, str] = ("tokenizer", "encoder"),
) -> str:
    entries = tuple(TableEntry() if column in empty else TableEntry("2.345", "0.123") for column in columns)
    lines = tuple(TableLine(place, labels, entries, (), False) for place, labels in enumerate(LABELS))
    guesses = tuple(TableEntry(chance if column is TASK else "") for column in columns)
    layout = TableLayout("Scores", factors, tuple(columns), lines, guesses, "", frozenset(primary))
    console = Console(file=io.StringIO(), width=80)
    console.print(terminal_table(layout))
    return console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO above


def test_a_task_stays_and_parts_of_the_held_out_text_give_way() -> None:
    found = shown([TASK, BITS_PER_BYTE, *SETS], primary={BITS_PER_BYTE.key})
    assert "continuation" in found and "bits / byte" in found and "clean" not in found
    assert "2 of 4 columns" in found and "chance" in found and "25.0" in found


def test_what_decides_the_question_never_gives_way_and_an_empty_line_of_chance_does() -> None:
    many = [Column(f"task{number}/5_shot", f"task{number}", "5-shot", "accuracy", "higher") for number in range(8)]
    found = shown([TASK, *many, BITS_PER_BYTE, *SETS], primary={SETS[1].key, many[3].key})
    assert "task3" in found and "clean" in found and "chance" not in found


def test_shots_give_way_to_their_mean_where_all_measures_decide() -> None:
    kinds = ("0_shot", "5_shot", "mean")
    every = [Column(f"t{n}/{kind}", f"t{n}", kind, "accuracy", "higher") for n in range(4) for kind in kinds]
    found = shown(every, primary={column.key for column in every})
    assert "mean" in found and "shot" not in found


def test_what_was_not_scored_gives_way_to_what_was() -> None:
    tasks = [Column(f"task{number}/mean", f"task{number}", "mean", "accuracy", "higher") for number in range(4)]
    found = shown([*tasks, BITS_PER_BYTE], primary={BITS_PER_BYTE.key}, empty=(tasks[1], tasks[3]))
    assert "task0" in found and "task2" in found
    assert "task1" not in found and "task3" not in found and "3 of 5 columns" in found


def test_a_long_path_of_a_factor_is_parted_at_its_dots() -> None:
    found = shown(
        [TASK, BITS_PER_BYTE, *SETS], primary={BITS_PER_BYTE.key}, factors=("tokenizer.vocab_size", "encoder")
    )
    lines = [line.split() for line in found.splitlines()]
    first = next(place for place, words in enumerate(lines) if words[:1] == ["tokenizer."])
    assert lines[first + 1][:2] == ["vocab_size", "encoder"]
