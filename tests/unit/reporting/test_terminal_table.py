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
