"""What the head of a report says of rows of one factor, and which row the others are compared with."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from paribus.config.groups.experiment import default_table
from paribus.reporting.notes.summary import summary
from paribus.reporting.report import write_report
from paribus.reporting.table.column import BITS_PER_BYTE, Column
from paribus.reporting.table.comparison import Comparison, compare
from paribus.reporting.table.frame import MissingRun
from paribus.reporting.table.layout import size
from support.bits_tables import FACTORS, rows
from support.tables import notes

STEADY = (0.001, -0.003, 0.002, -0.001, 0.004)
NOTHING = "Nothing can be said of Held-out text bits / byte: "


def lines(root: Path, shifts: Mapping[str, Sequence[float]], missing: Sequence[MissingRun] = ()) -> list[str]:
    return summary(compare(rows(root, shifts), FACTORS, missing)).lines


def said(comparison: Comparison) -> str:
    return " ".join(summary(comparison).rows)


def test_it_names_the_better_and_the_worse_row_and_what_is_open(tmp_path: Path) -> None:
    apart, alike = lines(
        tmp_path / "worse", {"bpe": STEADY, "alike": STEADY[::-1], "apart": [0.5 + each for each in STEADY]}
    )
    assert apart.startswith("tokenizer: apart is worse than bpe: +0.499 bits per byte (+0.49")
    assert apart.endswith(" with 95 % confidence for all 2 effects; p < 0.0001).")
    assert alike.startswith("tokenizer: it is open whether alike or bpe is better: ")
    assert "which other seeds or documents could reverse" in alike
    (better,) = lines(tmp_path / "better", {"bpe": STEADY, "apart": [-0.5 + each for each in STEADY]})
    assert "apart is better than bpe: −0.5" in better and "effects" not in better


def test_rows_that_cannot_be_judged_are_named_and_not_taken_for_alike(tmp_path: Path) -> None:
    for name, shifts in {"two seeds": (0.5, 0.5), "one seed": (0.5,), "no number": (0.5, 0.5, float("nan"))}.items():
        comparison = compare(
            rows(tmp_path / name, {"bpe": STEADY[:3], "alike": STEADY[2::-1], "apart": shifts}), FACTORS
        )
        (only,) = summary(comparison).findings
        assert "alike or bpe" in only.text
        (left,) = summary(comparison).rows
        assert left.startswith("Nothing can be said of apart: a judgement takes finite scores of 3 seeds"), name


def test_a_table_that_judges_nothing_says_so_and_why(tmp_path: Path) -> None:
    def why(name: str, shifts: Mapping[str, Sequence[float]], missing: Sequence[MissingRun] = ()) -> str:
        (line,) = lines(tmp_path / name, shifts, missing)
        return line.removeprefix(NOTHING)

    assert why("one", {"bpe": (0.0,), "apart": (0.5,)}) == "a judgement takes 3 seeds an arm."
    lost = [MissingRun({"tokenizer": "bpe"}, "the loss of step 40 is not finite", diverged=True, after=0)] * 3
    base = "the row that others are compared with has no "
    assert why("gone", {"alike": STEADY, "apart": (0.5, 0.6)}, lost) == f"{base}finished run."
    assert why("nan", {"bpe": (0.0, 0.1, float("nan")), "apart": (0.5, 0.6, 0.5)}) == f"{base}score there."
    late = [MissingRun({"tokenizer": "late"}, "still running")]
    assert why("late", {"bpe": STEADY}, late) == "no row that is compared with another has a finished run."
    runs = rows(tmp_path / "bases", {"bpe": STEADY, "apart": (0.5, 0.6, 0.5)})
    assert lines(tmp_path / "alone", {"bpe": STEADY}) == []
    few = [replace(run) for run in rows(tmp_path / "short", {"bpe": STEADY, "apart": STEADY[::-1]})]
    comparison = compare(few, FACTORS)
    short = [
        replace(row, cells={**row.cells, key: replace(row.cells[key], items=8, fewest=8, crossed=None)})
        for row in comparison.rows
        for key in [BITS_PER_BYTE.key]
    ]
    told = said(replace(comparison, rows=tuple(short), effects=()))
    assert told.startswith(
        f"{NOTHING}its scores are of 8 items, and a judgement takes 30 (more with evaluation.heldout_doc"
    )
    assert len(runs) == 8


def test_a_deciding_measure_of_which_nothing_can_be_said_is_named(tmp_path: Path) -> None:
    shifts = {"bpe": STEADY, "apart": [0.5 + each for each in STEADY]}
    runs = rows(tmp_path / "runs", shifts, accuracy={("boolq", 0): [0.0, 1.0] * 10})
    found = summary(compare(runs, FACTORS, table=replace(default_table(), primary=("bits_per_byte", "boolq")))).lines
    assert "apart is worse than bpe" in found[0]
    assert found[1].startswith("Nothing can be said of boolq") and found[1].endswith(
        "of 20 items, and a judgement takes 30."
    )
    absent = said(compare(runs, FACTORS, table=replace(default_table(), primary=("boolq/5_shot",))))
    assert absent == "Nothing can be said of which row is better: the table has no column that decides it."


def test_the_first_row_that_was_asked_for_stays_the_baseline_when_none_of_its_runs_finished(tmp_path: Path) -> None:
    runs = rows(tmp_path / "runs", {"alike": STEADY[:3], "apart": [0.5 + each for each in STEADY[2:]]})
    lost = [
        MissingRun({"tokenizer": "bpe"}, f"seed {seed}: the loss is not finite", diverged=True, after=0)
        for seed in range(3)
    ]
    comparison = compare(runs, FACTORS, lost)
    assert [row.labels for row in comparison.rows] == [("bpe",), ("alike",), ("apart",)]
    assert all(cell.p_value is None for row in comparison.rows for cell in row.cells.values())
    told = notes(comparison)
    assert "Runs of these rows diverged and none is left, so they have no numbers: bpe." in told
    assert "Not tested, as the row that they would be compared with is not there: alike; apart." in told
    between = compare(runs, FACTORS, [replace(each, after=3) for each in lost])
    assert [row.labels for row in between.rows] == [("alike",), ("bpe",), ("apart",)]
    assert between.rows[2].cells["bits_per_byte"].p_adjusted is not None
    written = write_report(runs, title="t", directory=tmp_path / "report", factors=FACTORS, missing=lost)
    assert "bpe" in (tmp_path / "report" / "report.md").read_text(encoding="utf-8") and written.files


def test_differences_of_shares_are_in_points() -> None:
    assert size(-0.092, Column("average", "Mean", "accuracy", "accuracy", "higher")) == "9.2 points"
    assert size(0.0912, BITS_PER_BYTE) == "0.091"
