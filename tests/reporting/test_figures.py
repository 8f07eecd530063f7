"""Lines of losses, scores by examples, checkpoint, size and budget, embeddings, and overlap of vocabularies."""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from paribus.config.groups.evaluation import TableConfig
from paribus.reporting.compare import cells_by_column, compare
from paribus.reporting.figures import Curve, learning_curves, plots, read_curves
from paribus.reporting.figures_data import OverlapMatrix
from paribus.reporting.measures import ITEMS_TO_JUDGE
from paribus.reporting.plots import style
from paribus.reporting.report import write_report
from paribus.reporting.runs import FinishedRun
from support.tables import FACTORS, config_of, demo_runs, record


def test_learning_curves_come_from_the_events_of_each_run(tmp_path: Path) -> None:
    runs = demo_runs(tmp_path, items=3)
    curves = read_curves(runs)
    assert list(curves) == [run.run_id for run in runs]
    curve = curves[runs[0].run_id]
    assert curve.steps == list(range(8, 257, 8))
    assert curve.amounts["train/tokens"][-1] == runs[0].training["tokens"]


def test_runs_of_unlike_length_have_no_mean_however_many_points_their_lines_have(tmp_path: Path) -> None:
    def curve(steps: int) -> Curve:
        amounts = {f"train/{name}": [float(step) for step in range(1, steps + 1)] for name in ("tokens", "text_bytes")}
        return Curve(range(1, steps + 1), [5.0 - step / 5_000 for step in range(steps)], amounts)

    runs = demo_runs(tmp_path, seeds=(0, 1), items=3, curves=False)[:2]
    comparison = compare(runs, FACTORS)
    for lengths, mean in (((4_000, 4_000), True), ((4_000, 400), False), ((801, 800), False)):
        curves = {run.run_id: curve(steps) for run, steps in zip(runs, lengths, strict=True)}
        with mpl.rc_context(style()):
            plot = learning_curves(comparison, comparison.rows, curves)
        assert plot is not None
        assert (b"mean over seeds" in plot.svg) == mean, lengths


# Scores by the number of examples in the prompt, and by checkpoint


def runs(root: Path, scored: Mapping[tuple[str, int], float], **fields: Any) -> list[FinishedRun]:
    """Two encoders with these shares of right answers to 40 items, or `items`; the second has a tenth more.

    With `three`, the two checkpoints after the first have a fifth more each.
    """
    items = fields.get("items", 40)

    def accuracy(more: float) -> dict[tuple[str, int], list[float]]:
        return {key: (np.arange(items) < round(items * (share + more))).tolist() for key, share in scored.items()}

    return [
        record(
            root,
            f"run{place}{seed}",
            {"tokenizer": "bpe", "ordering": "standard", "encoder": encoder},
            accuracy(0.1 * place),
            seed=seed,
            later=[accuracy(0.1 * place + more) for more in (0.2, 0.4)] if fields.get("three") else (),
        )
        for place, encoder in enumerate(("merge_rank", "longest_first"))
        for seed in range(fields.get("seeds", 1))
    ]


def written(
    root: Path, runs: list[FinishedRun], table: TableConfig | None = None, factors: tuple[str, ...] = FACTORS
) -> tuple[set[str], str]:
    """The names of the pictures of a report, and its page."""
    report = write_report(runs, title="Curves", factors=factors, directory=root / "report", table=table)
    assert all(path.stat().st_size for path in report.files.values())
    names = {Path(name).stem for name in report.files if name.startswith("plots/")}
    return names, report.files["report.html"].read_text(encoding="utf-8")


@pytest.mark.usefixtures("undrawn")
def test_three_numbers_of_examples_are_a_curve_of_a_group_or_a_task(tmp_path: Path) -> None:
    scored = {(task, shots): 0.2 + 0.1 * place for task in ("sst2", "yelp") for place, shots in enumerate((0, 4, 32))}
    table = TableConfig(columns=("sst2", "Classification"), groups={"Classification": ["sst2", "yelp"]}, shots="each")
    names, page = written(tmp_path / "group", runs(tmp_path / "group", scored), table)
    assert "by_examples" in names
    _, _, text = page.partition("Classification by the number of examples in the prompt")
    for number, share in ((0, 20), (4, 30), (32, 40)):
        assert f"merge_rank · standard {number}: {share}.000" in text
    for shots, drawn in (((0, 1, 4), True), ((0, 5), False)):
        root = tmp_path / str(drawn)
        names, page = written(root, runs(root, {("sst2", number): 0.5 for number in shots}))
        assert ("by_examples" in names) == ("sst2 by the number of examples" in page) == drawn, shots


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("items", [ITEMS_TO_JUDGE - 10, ITEMS_TO_JUDGE])
def test_three_checkpoints_are_a_curve_with_bars_where_the_table_has_them(tmp_path: Path, items: int) -> None:
    three = runs(tmp_path, {("race_high", 2): 0.1}, three=True, items=items, seeds=3)
    names, page = written(tmp_path, three)
    assert "by_checkpoint" in names and ("by checkpoint; ±" in page) == (items >= ITEMS_TO_JUDGE)
    comparison = compare(three, FACTORS)
    column = next(column for column in comparison.columns if column.parts)
    cells = [[row[column.key] for row in cells_by_column(comparison, [column], place)] for place in range(3)]
    values = [[cell.value for cell in row] for row in cells]
    assert values == [pytest.approx([0.1, 0.2]), pytest.approx([0.3, 0.4]), pytest.approx([0.5, 0.6])]
    table = [row.cells[column.key] for row in comparison.rows]
    for cell in (*table, *cells[1]):
        assert (cell.half_width is not None) == (items >= ITEMS_TO_JUDGE)
    assert "by_checkpoint" not in written(tmp_path / "one", runs(tmp_path / "one", {("race_high", 2): 0.1}))[0]


# Scores by size and budget

AMOUNTS = {"model": ("parameters", (1e6, 4e6, 1.6e7)), "budget": ("tokens", (1e8, 2e8, 4e8))}


def swept(root: Path, group: str, amounts: tuple[float, ...] | None = None) -> list[FinishedRun]:
    """Two encoders at three sizes or budgets."""
    field, known = AMOUNTS[group]
    swept = []
    for place, (number, encoder) in enumerate(product(range(3), ("merge_rank", "longest_first"))):
        labels = {group: f"arm{number}", "encoder": encoder}
        config = config_of(labels) | {group: {"kind": f"arm{number}"}}
        training = {"parameters": 1e6, "tokens": 1e8, "text_bytes": 4e8, "flops": 1e15, "final_loss": 4.0}
        training[field] = (amounts or known)[number]
        scored = (np.random.default_rng(place).random(80) < 0.3 + 0.1 * number).astype(float).tolist()
        heldout = [((2.5 - 0.2 * number) * size, size) for size in range(50, 60)]
        given = {"config": config, "training": training, "heldout": heldout}
        swept.append(record(root, f"run{place}", labels, {("piqa", 0): scored}, **given))
    return swept


@pytest.mark.parametrize(
    ("group", "name", "amount", "largest"),
    [("model", "by_size", "parameters", "1.6e+07"), ("budget", "by_budget", "tokens read", "4e+08")],
)
def test_a_sweep_over_sizes_or_budgets_has_a_plot_by_them(
    tmp_path: Path, group: str, name: str, amount: str, largest: str
) -> None:
    names, page = written(tmp_path, swept(tmp_path, group), factors=(group, "encoder"))
    assert names & {"by_size", "by_budget"} == {name}
    assert f"by {amount}" in page and "± as in the table" not in page
    assert f"longest_first {largest}:" in page
    if group == "model":
        alike = swept(tmp_path / "alike", group, (1e6,) * 3)
        names, _ = written(tmp_path / "alike", alike, factors=(group, "encoder"))
        assert not names & {"by_size", "by_budget"}


# Vocabularies


@pytest.mark.usefixtures("undrawn")
def test_the_overlap_of_vocabularies_is_a_plot_and_numbers(tmp_path: Path) -> None:
    overlap = OverlapMatrix(("bpe", "中文/1"), (300, 200), ((1.0, 0.5), (0.75, 1.0)), ((None, 3.25), (None, None)))
    runs = demo_runs(tmp_path, items=20, curves=False)
    report = write_report(runs, title="T", factors=FACTORS, directory=tmp_path / "report", overlap=overlap)
    assert "plots/vocabulary_overlap.svg" in report.files
    page = report.files["report.html"].read_text(encoding="utf-8")
    assert "bpe in 中文/1 50.0 %, others 3.2 in a million; 中文/1 in bpe 75.0 %" in page
    assert overlap.metrics() == {
        "vocabulary_overlap/bpe in 中文_1": 0.5,
        "vocabulary_overlap/occurrences per million of bpe not in 中文_1": 3.25,
        "vocabulary_overlap/中文_1 in bpe": 0.75,
    }


def test_embeddings_are_drawn_a_panel_a_row_with_their_uniformity(tmp_path: Path) -> None:
    uniformity = {"used": -2.5, "frequent": -2.75, "medium": -2.5, "rare": -1.5, "unused": None}
    statistics = {"heldout": {}, "tasks": {}, "embeddings": {"uniformity": {"input": uniformity}}}
    names = ("bpe", "scaffold_bpe")
    runs = [
        record(tmp_path, name, {"tokenizer": name}, {("boolq", 0): [1, 0]}, statistics=statistics) for name in names
    ]
    files = [tmp_path / "artifacts" / name / "embeddings.parquet" for name in names]
    classes = ["frequent", "medium", "rare", "rare", "unused"]
    points = {"id": range(5), "count": [9, 5, 1, 1, 0], "class": classes, "x": [0.0] * 5, "y": [1.0] * 5}
    for file in files:
        pd.DataFrame(points).to_parquet(file)
    comparison = compare(runs, ("tokenizer",))
    assert comparison.rows[1].cells["uniformity"].value == -2.5
    (plot,) = (plot for plot in plots(comparison, {}) if plot.name == "embeddings")
    assert "bpe: used -2.500, frequent -2.750, medium -2.500, rare -1.500; scaffold_bpe:" in plot.alternative
    assert "Only here" not in plot.caption
    overlap = OverlapMatrix(("bpe", "other"), (5, 5), ((1.0, 0.5), (0.5, 1.0)), ((None, 1.0), (1.0, None)),
                            {runs[0].run_id: {2, 4}, runs[1].run_id: {4}})  # fmt: skip
    (own,) = (plot for plot in plots(comparison, {}, overlap) if plot.name == "embeddings")
    assert "Only here: tokens that occur" in own.caption and own.svg.decode().count("only here") == 1
    files[0].unlink()
    (plot,) = (plot for plot in plots(comparison, {}) if plot.name == "embeddings")
    assert "of scaffold_bpe:" in plot.alternative
