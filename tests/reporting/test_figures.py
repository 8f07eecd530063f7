"""Lines of training losses, and of scores by examples in the prompt, checkpoint, size and budget."""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from paribus.config.groups.evaluation import TableConfig
from paribus.reporting.compare import cells_by_column, compare
from paribus.reporting.figures import Curve, learning_curves
from paribus.reporting.measures import ITEMS_TO_JUDGE
from paribus.reporting.plots import style
from paribus.reporting.report import write_report
from paribus.reporting.runs import FinishedRun
from support.tables import FACTORS, config_of, demo_runs, record


def curve(steps: int) -> Curve:
    amounts = {f"train/{name}": [float(step) for step in range(1, steps + 1)] for name in ("tokens", "text_bytes")}
    return Curve(range(1, steps + 1), [5.0 - step / 5_000 for step in range(steps)], amounts)


def drawn(root: Path, first: Curve | None, second: Curve) -> str:
    """The picture of a row of two seeds."""
    runs = demo_runs(root, seeds=(0, 1), items=3, curves=False)[:2]
    comparison = compare(runs, FACTORS)
    curves = {run.run_id: found for run, found in zip(runs, (first, second), strict=True) if found}
    with mpl.rc_context(style()):
        plot = learning_curves(comparison, comparison.rows, curves)
    assert plot is not None
    return plot.svg.decode()


def test_runs_of_unlike_length_have_no_mean_however_many_points_their_lines_have(tmp_path: Path) -> None:
    assert "mean over seeds" in drawn(tmp_path / "alike", curve(4_000), curve(4_000))
    assert "mean over seeds" not in drawn(tmp_path / "unlike", curve(4_000), curve(400))
    assert "mean over seeds" not in drawn(tmp_path / "one_step", curve(801), curve(800))


LABELS = ({"encoder": "merge_rank"}, {"encoder": "longest_first"})


def runs(root: Path, scored: Mapping[tuple[str, int], float], **fields: Any) -> list[FinishedRun]:
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


def written(root: Path, made: list[FinishedRun], table: TableConfig | None = None) -> tuple[set[str], str]:
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


AMOUNTS = {"model": ("parameters", (1e6, 4e6, 1.6e7)), "budget": ("tokens", (1e8, 2e8, 4e8))}


def swept(root: Path, group: str, amounts: tuple[float, ...] | None = None) -> list[FinishedRun]:
    """Two encoders at three sizes or budgets."""
    field, known = AMOUNTS[group]
    runs = []
    for place, (number, encoder) in enumerate(product(range(3), ("merge_rank", "longest_first"))):
        labels = {group: f"arm{number}", "encoder": encoder}
        config = config_of(labels) | {group: {"kind": f"arm{number}"}}
        training = {"parameters": 1e6, "tokens": 1e8, "text_bytes": 4e8, "flops": 1e15, "final_loss": 4.0}
        training[field] = (amounts or known)[number]
        scored = (np.random.default_rng(place).random(80) < 0.3 + 0.1 * number).astype(float).tolist()
        heldout = [((2.5 - 0.2 * number) * size, size) for size in range(50, 60)]
        given = {"config": config, "training": training, "heldout": heldout}
        runs.append(record(root, f"run{place}", labels, {("piqa", 0): scored}, **given))
    return runs


def plots(root: Path, runs: list[FinishedRun], group: str) -> set[str]:
    report = write_report(runs, title="Sizes", factors=(group, "encoder"), directory=root / "report")
    assert all(path.stat().st_size for path in report.files.values())
    return {Path(name).stem for name in report.files if name.startswith("plots/")}


@pytest.mark.parametrize(("group", "name"), [("model", "by_size"), ("budget", "by_budget")])
def test_a_sweep_over_sizes_or_budgets_has_a_plot_by_them(tmp_path: Path, group: str, name: str) -> None:
    found = plots(tmp_path, swept(tmp_path, group), group)
    assert found & {"by_size", "by_budget"} == {name}
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    read = {"by_size": "parameters", "by_budget": "tokens read"}[name]
    assert f"by {read}" in page and "± as in the table" not in page
    assert "longest_first 1.6e+07:" in page or "longest_first 4e+08:" in page


def test_rows_of_one_size_have_none(tmp_path: Path) -> None:
    assert not plots(tmp_path, swept(tmp_path, "model", (1e6,) * 3), "model") & {"by_size", "by_budget"}
