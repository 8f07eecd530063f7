"""The last sentence under a table, and which row the others are compared with."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paribus.config.groups.experiment import default_table
from paribus.reporting.notes.notes import notes as all_notes
from paribus.reporting.notes.verdict import verdict
from paribus.reporting.report import write_report
from paribus.reporting.significance.crossed import LEVEL, crossed_tests, pooled_variance
from paribus.reporting.table.column import BITS_PER_BYTE, Column
from paribus.reporting.table.comparison import Comparison, compare
from paribus.reporting.table.frame import MissingRun
from paribus.reporting.table.layout import size
from support.bits_tables import FACTORS, rows
from support.tables import notes

STEADY = (0.001, -0.003, 0.002, -0.001, 0.004)
BEGINNING = "What these numbers allow one to say: "


def last(root: Path, shifts: Mapping[str, Sequence[float]], missing: Sequence[MissingRun] = ()) -> str:
    return said(compare(rows(root, shifts), FACTORS, missing))


def said(comparison: Comparison) -> str:
    told = all_notes(comparison).warnings
    return "".join(verdict(comparison, warned=any(line.startswith("Warning") for line in told)))


def test_it_names_the_better_and_the_worse_row_and_what_could_go_unseen_of_the_others(tmp_path: Path) -> None:
    shifts = {"bpe": STEADY, "alike": STEADY[::-1], "apart": [0.5 + each for each in STEADY]}
    found = last(tmp_path / "worse", shifts)
    assert found.startswith(
        f"{BEGINNING}in Held-out text bits / byte, apart is worse than bpe beyond chance, "
        "by +0.499 (95 % interval +0.496 to +0.503); alike does not differ from bpe beyond chance: the difference is "
    )
    assert found.endswith(" could easily go unseen.")
    better = last(tmp_path / "better", {"bpe": STEADY, "apart": [-0.5 + each for each in STEADY]})
    assert "apart is better than bpe beyond chance, by −0.5" in better and "unseen" not in better
    alike = last(tmp_path / "alike", {"bpe": STEADY, "alike": STEADY[::-1], "other": STEADY[1:] + STEADY[:1]})
    assert "no row differs beyond chance from the one it is compared with: the largest difference is " in alike


def test_rows_that_cannot_be_judged_are_named_and_not_taken_for_alike(tmp_path: Path) -> None:
    for name, shifts in {"two seeds": (0.5, 0.5), "one seed": (0.5,), "no number": (0.5, 0.5, float("nan"))}.items():
        found = last(tmp_path / name, {"bpe": STEADY[:3], "alike": STEADY[2::-1], "apart": shifts})
        assert "alike does not differ from bpe" in found and found.endswith("; nothing is said of apart.")


def test_what_could_go_unseen_is_of_the_rows_that_do_not_differ(tmp_path: Path) -> None:
    wild = {"bpe": STEADY, "alike": STEADY[::-1], "wild": (2.5, 3.2, 2.9, 3.4, 2.7)}
    found = last(tmp_path, wild)
    assert "wild is worse than bpe" in found
    assert float(found.split("a true one below ")[1].split(" ")[0]) < 0.02


def test_a_table_that_judges_nothing_says_so_and_why(tmp_path: Path) -> None:
    def why(name: str, shifts: Mapping[str, Sequence[float]], missing: Sequence[MissingRun] = ()) -> str:
        return last(tmp_path / name, shifts, missing).removeprefix(f"{BEGINNING}not which row is better, since ")

    assert why("one", {"bpe": (0.0,), "apart": (0.5,)}) == "a judgement takes 3 seeds a row."
    lost = [MissingRun({"tokenizer": "bpe"}, "the loss of step 40 is not finite", diverged=True, after=0)] * 3
    base = "the row that others are compared with has no "
    assert why("gone", {"alike": STEADY, "apart": (0.5, 0.6)}, lost) == f"{base}finished run."
    assert why("nan", {"bpe": (0.0, 0.1, float("nan")), "apart": (0.5, 0.6, 0.5)}) == f"{base}score there."
    late = [MissingRun({"tokenizer": "late"}, "still running")]
    assert why("late", {"bpe": STEADY}, late) == "no row that is compared with another has a finished run."
    runs = rows(tmp_path / "bases", {"bpe": STEADY, "apart": (0.5, 0.6, 0.5)})
    by_size = [replace(run, factors={"size": run.factors["tokenizer"], "tokenizer": "bpe"}) for run in runs]
    alike = compare(by_size, ("size", "tokenizer"), table=replace(default_table(), baseline={"tokenizer": "bpe"}))
    assert said(alike).endswith("since no row has another beside it that experiment.table.baseline compares it with.")
    assert not last(tmp_path / "alone", {"bpe": STEADY}).startswith(BEGINNING)


def test_a_deciding_measure_of_which_nothing_can_be_said_is_named(tmp_path: Path) -> None:
    shifts = {"bpe": STEADY, "apart": [0.5 + each for each in STEADY]}
    runs = rows(tmp_path / "runs", shifts, accuracy={("boolq", 0): [0.0, 1.0] * 10})
    found = said(compare(runs, FACTORS, table=replace(default_table(), primary=("bits_per_byte", "boolq"))))
    assert "apart is worse than bpe" in found
    assert "; nothing is said of boolq" in found and "of 20 items and a judgement takes 30." in found
    absent = said(compare(runs, FACTORS, table=replace(default_table(), primary=("boolq/5_shot",))))
    assert absent == f"{BEGINNING}not which row is better, since the table has no column that decides it."


def test_too_little_held_out_text_says_what_gives_more(tmp_path: Path) -> None:
    few = [replace(run) for run in rows(tmp_path, {"bpe": STEADY, "apart": STEADY[::-1]})]
    column, comparison = BITS_PER_BYTE, compare(few, FACTORS)
    short = [
        replace(row, cells={**row.cells, column.key: replace(row.cells[column.key], items=8, fewest=8, p_holm=None)})
        for row in comparison.rows
    ]
    told = said(replace(comparison, rows=tuple(short)))
    assert "since its scores are of 8 items and a judgement takes 30 (more with evaluation.heldout_documents" in told


def test_small_differences_have_digits_to_read(tmp_path: Path) -> None:
    tiny = [each / 1000 for each in STEADY]
    found = last(tmp_path, {"bpe": tiny, "apart": [each - 0.0003 for each in tiny[::-1]]})
    assert "−0.000 " not in found and "below 0.000 " not in found


def test_where_some_rows_cannot_be_judged_only_the_others_are_called_alike(tmp_path: Path) -> None:
    shifts = {"bpe": STEADY, "alike": STEADY[::-1], "other": STEADY[1:] + STEADY[:1], "apart": (0.5,)}
    assert "none of the 2 rows that can be judged differs beyond chance" in last(tmp_path, shifts)


def test_the_first_row_that_was_asked_for_stays_the_baseline_when_none_of_its_runs_finished(tmp_path: Path) -> None:
    runs = rows(tmp_path / "runs", {"alike": STEADY[:3], "apart": [0.5 + each for each in STEADY[:3]]})
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
    assert between.rows[2].cells["bits_per_byte"].p_holm is not None
    written = write_report(runs, title="t", directory=tmp_path / "report", factors=FACTORS, missing=lost)
    assert "bpe" in (tmp_path / "report" / "report.md").read_text(encoding="utf-8") and written.files


def test_warnings_are_pointed_to(tmp_path: Path) -> None:
    lost = [MissingRun({"tokenizer": "apart"}, "the loss is not finite", diverged=True)]
    shifts = {"bpe": STEADY, "apart": [0.5 + each for each in STEADY]}
    assert last(tmp_path / "warned", shifts, lost).endswith(" Read this with the warnings below.")
    assert "warnings" not in last(tmp_path / "calm", shifts)


@pytest.mark.parametrize("tests", [1, 3])
def test_the_difference_that_one_of_several_tests_detects_is_found_in_four_of_five_tables(tests: int) -> None:
    generator, rows_, seeds, items = np.random.default_rng(0), 4, 3, 40

    def table(difference: float) -> np.ndarray:
        found = generator.normal(0, 1, (rows_, seeds, 1)) + generator.normal(0, 2, (rows_, 1, items))
        found = found + generator.normal(0, 2, (rows_, seeds, items))
        found[1] += difference
        return found

    def tested(difference: float) -> list:
        tables = [table(difference) for _ in range(600)]
        return [crossed_tests([(each[1], each[0])], [pooled_variance(each.mean(axis=2))])[0] for each in tables]

    shown = float(np.median([each.detectable_among(tests) for each in tested(0.0)]))
    found = float(np.mean([each.p_value < LEVEL / tests for each in tested(shown)]))
    assert 0.75 < found < 0.87


def test_a_spread_that_is_shown_is_explained_where_no_score_has_one(tmp_path: Path) -> None:
    runs = rows(tmp_path, {"bpe": (0.0, 0.1, 0.2)})
    few = [replace(each, scores=None, training={**each.training, "text_bytes": 9_000 + each.seed}) for each in runs]
    assert "± is half the 95 % interval of a number over other seeds." in notes(compare(few, FACTORS))


def test_differences_of_shares_are_in_points() -> None:
    assert size(-0.092, Column("average", "Mean", "accuracy", "accuracy", "higher")) == "9.2 points"
    assert size(0.0912, BITS_PER_BYTE) == "0.091"


def test_what_could_go_unseen_is_a_range_where_rows_are_known_with_other_certainty(tmp_path: Path) -> None:
    # The seeds of the second pair differ by more than luck makes of those of all, so it keeps its own variance.
    shifts = {"bpe": STEADY, "alike": STEADY[::-1], "other": (0.012, -0.011, 0.013, -0.012, 0.001)}
    assert re.search(r" below 0\.\d+ to 0\.\d+, by row, could easily go unseen\.$", last(tmp_path, shifts))
