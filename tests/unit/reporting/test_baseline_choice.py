import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.config.groups.experiment import default_table
from paribus.reporting.formats.choice import MOST_DIFFERENCES, baseline_choice
from paribus.reporting.report import Report, write_report
from paribus.reporting.table.comparison import compare
from paribus.reporting.table.frame import MissingRun, RunRecord
from paribus.reporting.table.pairs import pair_differences
from support.bits_tables import rows
from support.browser import CHROMIUM, in_a_browser
from support.tables import FACTORS, demo_runs, record

pytestmark = pytest.mark.usefixtures("undrawn")

HOSTILE = '</script><script>alert("1")</script>'


def arms(root: Path, rows: int, *, seeds: Sequence[int] = (0, 1, 2), items: int = 40) -> list[RunRecord]:
    """Rows of one task, each a little better than the one before."""
    runs = []
    for row in range(rows):
        for seed in seeds:
            luck = np.random.default_rng([row, seed]).random(items)
            labels = {"tokenizer": f"arm {row}"}
            runs.append(record(root, f"r{row}s{seed}", labels, {("task", 0): luck < 0.4 + 0.02 * row}, seed=seed))
    return runs


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    root = tmp_path_factory.mktemp("choice")
    runs = demo_runs(root, seeds=(0, 1, 2), items=60, curves=False)[:12]
    return write_report(runs, title="Choice", factors=FACTORS, directory=root / "report")


def page_of(report: Report) -> str:
    return report.files["report.html"].read_text(encoding="utf-8")


def data_of(page: str) -> Any:
    (found,) = re.findall(r'<script type="application/json" id="differences">(.*?)</script>', page, re.DOTALL)
    return json.loads(found)


def test_differences_from_each_row_are_those_of_a_table_that_declares_it(tmp_path: Path) -> None:
    runs = demo_runs(tmp_path, seeds=(0, 1, 2), items=60, curves=False)[:12]
    runs = [run for run in runs if run.run_id not in ("11a9f3c1", "12a9f3c1", "22a9f3c1")]  # one has 1 seed, one 2
    comparison = compare(runs, FACTORS)
    found = pair_differences(comparison)
    intervals = set()
    for base, row in enumerate(comparison.rows):
        labels = dict(zip(FACTORS, row.labels, strict=True))
        declared = compare(runs, FACTORS, table=replace(default_table(), baseline=labels))
        for place, other in enumerate(declared.rows):
            for key in (column.key for column in comparison.columns if column.scored and place != base):
                cell, pair = other.cells[key], found[place, base, key]
                assert cell.difference == pytest.approx(pair.value, rel=1e-12)
                assert (cell.interval is None) is (pair.interval is None)
                if pair.interval is not None and cell.p_adjusted is None:
                    assert cell.interval == pytest.approx(pair.interval, rel=1e-12)
                intervals.add(pair.interval is None)
    assert intervals == {True, False}


def test_what_no_training_has_part_in_is_compared_over_items(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    runs = [
        record(tmp_path, name, {"tokenizer": name}, {("words", 0): generator.random(50)}, metric="word_f1")
        for name in ("one", "two", "three")
    ]
    comparison = compare(runs, ("tokenizer",))
    ((key,),) = {tuple(column.key for column in comparison.columns if column.scored)}
    cell = comparison.rows[2].cells[key]
    assert cell.test is not None
    found = pair_differences(comparison)
    assert found[2, 0, key].interval == cell.interval
    assert cell.interval is not None and cell.interval[0] < cell.test.low < cell.test.high < cell.interval[1]
    assert found[2, 1, key].interval is not None
    assert baseline_choice(comparison).interval == "with its 95 % interval over items alone"


def test_every_pair_of_rows_is_in_the_page_as_text(report: Report) -> None:
    comparison, data = report.comparison, data_of(page_of(report))
    assert data["declared"] == "1"
    assert data["compared"] == {"2": "1", "3": "1", "4": "1"}
    numbers = ["1", "2", "3", "4"]
    assert {base: sorted(rows) for base, rows in data["differences"].items()} == {
        base: [row for row in numbers if row != base] for base in numbers
    }
    scored = [column for column in comparison.columns if column.scored]
    (place,) = (place for place, column in enumerate(scored) if column.key == "bits_per_byte")
    pair = pair_differences(comparison)[2, 1, "bits_per_byte"]
    assert pair.interval is not None
    text, interval = data["differences"]["2"]["3"][place]
    assert float(text.replace("−", "-")) == pytest.approx(pair.value, abs=5e-4)
    low, high = (float(bound.replace("−", "-")) for bound in interval.split(" to "))
    assert (low, high) == pytest.approx(pair.interval, abs=5e-4)
    assert data["differences"]["3"]["2"][place][0].translate({0x2212: "+", 0x2B: "−"}) == text


def test_a_page_without_a_script_has_no_control_and_no_difference_in_the_table(report: Report) -> None:
    page = page_of(report)
    assert '<div class="choice" hidden>' in page
    assert 'class="against"' not in page
    options = re.findall(r'<option value="(\d*)">([^<]*)</option>', page)
    assert options[:2] == [("", "(not shown)"), ("1", "bpe · merge_rank · standard (declared)")]
    assert [value for value, _ in options] == ["", "1", "2", "3", "4"]
    assert "(declared)" not in "".join(text for _, text in options[2:])


def test_a_print_has_no_control_and_cuts_no_table(report: Report) -> None:
    printed = page_of(report).partition("@media print {")[2].partition("</style>")[0]
    assert ".choice label, .tip { display: none; }" in printed
    assert ".wide { overflow: visible; }" in printed


def test_models_of_one_seed_have_differences_without_intervals(tmp_path: Path) -> None:
    choice = baseline_choice(compare(arms(tmp_path, 3, seeds=(0,)), ("tokenizer",)))
    assert choice.data is not None
    texts = [entry for rows in choice.data["differences"].values() for row in rows.values() for entry in row]
    assert texts and all(interval == "" for _, interval in texts)
    assert choice.interval == "without an interval, which takes three seeds that both rows have"
    assert choice.undeclared == "This baseline was chosen after the numbers were seen."


def test_pairs_of_too_few_items_have_no_difference(tmp_path: Path) -> None:
    assert baseline_choice(compare(arms(tmp_path, 3, items=20), ("tokenizer",))).options == ()


def test_one_row_offers_no_choice_and_says_nothing_of_it(tmp_path: Path) -> None:
    choice = baseline_choice(compare(arms(tmp_path, 1), ("tokenizer",)))
    assert (choice.options, choice.absent) == ((), "")


def test_rows_with_baselines_of_their_own_are_a_choice_too(tmp_path: Path) -> None:
    runs = demo_runs(tmp_path, seeds=(0, 1), items=60, curves=False)[:8]
    comparison = compare(runs, FACTORS, table=replace(default_table(), baseline={"ordering": "standard"}))
    choice = baseline_choice(comparison)
    assert choice.options[0] == ("declared", "each row's own (declared)")
    assert choice.data is not None
    assert (choice.data["declared"], choice.data["compared"]) == ("declared", {"2": "1", "4": "3"})


def test_a_table_of_too_many_rows_says_why_there_is_no_choice(tmp_path: Path) -> None:
    runs = arms(tmp_path, 56, seeds=(0,), items=30)
    report = write_report(runs, title="Many", factors=("tokenizer",), directory=tmp_path / "report")
    page = page_of(report)
    assert MOST_DIFFERENCES < 56 * 55
    assert "all pairs of rows have 3,080 differences, and a page holds at most 3,000." in page
    assert 'id="differences"' not in page and '<div class="choice"' not in page


def test_labels_and_data_cannot_end_a_script_and_the_policy_names_the_one_that_runs(tmp_path: Path) -> None:
    runs = [
        replace(
            run, factors={"tokenizer": HOSTILE if run.factors["tokenizer"] == "arm 1" else run.factors["tokenizer"]}
        )
        for run in arms(tmp_path, 3)
    ]
    report = write_report(runs, title="Hostile", factors=("tokenizer",), directory=tmp_path / "report")
    page = page_of(report)
    assert page.count("<script") == page.count("</script>") == 2
    assert "alert(" in page and ">alert(" not in page
    assert set(data_of(page)["differences"]) == {"1", "2", "3"}
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'\"" in page


@pytest.mark.skipif(CHROMIUM is None, reason="takes chromium")
@pytest.mark.parametrize(
    ("fragment", "base", "declared"),
    [("baseline=3", "3", False), ("baseline=1", "1", True), ("baseline=", "", True), ("baseline=9", "", True)],
)
def test_a_link_chooses_the_baseline(fragment: str, base: str, declared: bool, report: Report, tmp_path: Path) -> None:
    page = page_of(report)
    data = data_of(page)
    shown = in_a_browser(report.files["report.html"], tmp_path, fragment)
    table = re.findall(r'<table class="sortable marked[^>]*>.*?</table>', shown, re.DOTALL)[0]
    assert ("marked other" in table) is not declared
    lines = dict(re.findall(r'<tr data-row="(\d)"(.*?)</tr>', table, re.DOTALL))
    assert [row for row, line in lines.items() if 'class="base"' in line] == ([base] if base else [])
    for row, line in lines.items():
        found = re.findall(r'<span class="against">([^< ]+)(?: <span>\(([^<]*)\)</span>)?</span>', line)
        assert [list(each) for each in found] == data["differences"].get(base, {}).get(row, [])
    (told,) = re.findall(r'<p class="told" role="status">(.*?)</p>', shown)
    assert ("chosen after the numbers were seen" in told) is not declared
    names = {number: report.comparison.row_name(row) for number, row in enumerate(report.comparison.rows, start=1)}
    assert (unescape(told) == "") if not base else (names[int(base)] in told)


def test_a_declared_baseline_without_runs_is_not_named_where_it_cannot_be_chosen(tmp_path: Path) -> None:
    table = replace(default_table(), baseline={"tokenizer": "arm 0"})
    runs = arms(tmp_path, 4)
    whole = baseline_choice(compare(runs, ("tokenizer",), table=table))
    assert "shown for the declared one alone" in whole.undeclared
    lacking = compare(runs[3:], ("tokenizer",), [MissingRun({"tokenizer": "arm 0"}, "gone")], table)
    choice = baseline_choice(lacking)
    assert len(choice.options) == 3 and not any("(declared)" in text for _, text in choice.options)
    assert "the declared one" not in choice.undeclared


def test_rows_that_are_not_judged_have_a_difference_without_an_interval_and_the_page_says_so(tmp_path: Path) -> None:
    seeds = (0.0, 0.01, 0.02)
    whole = rows(tmp_path / "0", {"bpe": seeds, "bytes": seeds})
    found = compare([*whole, *rows(tmp_path / "1", {"stripped": seeds}, lossy=True)], ("tokenizer",))
    differences = pair_differences(found)
    intervals = {(row, base): each.interval for (row, base, _), each in differences.items()}
    assert intervals[1, 0] is not None
    assert intervals[2, 0] is None and intervals[2, 1] is None
    choice = baseline_choice(found)
    assert choice is not None
    assert "none for rows that share fewer than three seeds, or that a warning says are not judged" in repr(choice)
