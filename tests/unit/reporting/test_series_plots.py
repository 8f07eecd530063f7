"""Scores by the number of examples in the prompt, and by checkpoint."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.config.groups.experiment import TableConfig
from paribus.reporting.report import write_report
from paribus.reporting.significance.least import ITEMS_TO_JUDGE
from paribus.reporting.table.comparison import cells_by_column, compare
from paribus.reporting.table.frame import RunRecord
from support.tables import FACTORS, record

LABELS = ({"encoder": "merge_rank"}, {"encoder": "longest_first"})


def runs(root: Path, scored: Mapping[tuple[str, int], float], **fields: Any) -> list[RunRecord]:
    """Two rows with these shares of right answers to 40 items, or `items`; the second has a tenth more."""
    made, items = [], fields.get("items", 40)
    for place, labels in enumerate(LABELS):
        accuracy = {key: _answers(share + 0.1 * place, items) for key, share in scored.items()}
        whole = {"tokenizer": "bpe", "ordering": "standard"} | labels
        later = [
            {key: _answers(share + 0.1 * place + 0.2 * step, items) for key, share in scored.items()} for step in (1, 2)
        ]
        made += [
            record(root, f"run{place}{seed}", whole, accuracy, seed=seed, later=later if fields.get("three") else ())
            for seed in range(fields.get("seeds", 1))
        ]
    return made


def _answers(share: float, items: int) -> list[float]:
    return (np.arange(items) < round(items * share)).astype(float).tolist()


def written(root: Path, made: list[RunRecord], table: TableConfig | None = None) -> tuple[set[str], str]:
    report = write_report(made, title="Curves", factors=FACTORS, directory=root / "report", table=table)
    names = {Path(name).stem for name in report.files if name.startswith("plots/")}
    return names, (root / "report" / "report.html").read_text(encoding="utf-8")


def test_a_group_of_tasks_is_drawn_by_the_number_of_examples(tmp_path: Path) -> None:
    scored = {(task, shots): 0.2 + 0.1 * place for task in ("sst2", "yelp") for place, shots in enumerate((0, 4, 32))}
    table = TableConfig(columns=("sst2", "Classification"), groups={"Classification": ["sst2", "yelp"]}, shots="each")
    names, page = written(tmp_path, runs(tmp_path, scored), table)
    assert "by_examples" in names
    assert "Classification by the number of examples in the prompt" in page
    told = page[page.index("Classification by the number of examples in the prompt") :]
    for number, share in ((0, 20), (4, 30), (32, 40)):
        assert f"merge_rank · standard {number}: {share}.000" in told


def test_tasks_alone_are_drawn_and_two_numbers_make_no_curve(tmp_path: Path) -> None:
    names, page = written(tmp_path / "a", runs(tmp_path / "a", {("sst2", shots): 0.5 for shots in (0, 1, 4)}))
    assert "by_examples" in names
    assert "sst2 by the number of examples" in page
    names, _ = written(tmp_path / "b", runs(tmp_path / "b", {("sst2", shots): 0.5 for shots in (0, 5)}))
    assert "by_examples" not in names


def test_three_checkpoints_are_a_curve(tmp_path: Path) -> None:
    made = runs(tmp_path, {("race_high", 2): 0.1}, three=True)
    names, page = written(tmp_path, made)
    assert "by_checkpoint" in names
    assert "by checkpoint" in page
    comparison = compare(made, FACTORS)
    column = next(column for column in comparison.columns if column.parts)
    each = [[row[column.key].value for row in cells_by_column(comparison, [column], place)] for place in range(3)]
    assert each == [pytest.approx([0.1, 0.2]), pytest.approx([0.3, 0.4]), pytest.approx([0.5, 0.6])]
    assert "by_checkpoint" not in written(tmp_path / "one", runs(tmp_path / "one", {("race_high", 2): 0.1}))[0]


@pytest.mark.parametrize("items", [ITEMS_TO_JUDGE - 10, ITEMS_TO_JUDGE])
def test_a_curve_of_too_few_items_has_no_bars_as_the_table_has_none(tmp_path: Path, items: int) -> None:
    made = runs(tmp_path, {("race_high", 2): 0.1}, three=True, items=items, seeds=3)
    comparison = compare(made, FACTORS)
    column = next(column for column in comparison.columns if column.parts)
    in_table = [row.cells[column.key].half_width is not None for row in comparison.rows]
    in_curve = [row[column.key].half_width is not None for row in cells_by_column(comparison, [column], 1)]
    assert in_curve == in_table == [items >= ITEMS_TO_JUDGE] * 2
    assert ("by checkpoint; ±" in written(tmp_path, made)[1]) == (items >= ITEMS_TO_JUDGE)
