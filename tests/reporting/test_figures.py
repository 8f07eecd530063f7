"""Lines of losses, scores by checkpoint, size and budget, embeddings, and looks of rows in all pictures."""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from paribus.config.groups.evaluation import TableConfig
from paribus.reporting.compare import cells_by_column, compare
from paribus.reporting.figures import read_curves
from paribus.reporting.measures import ITEMS_TO_JUDGE
from paribus.reporting.page import inline
from paribus.reporting.plots import COLOURS, Looks, picture, style
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


# Scores by checkpoint


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


@pytest.mark.usefixtures("without_plots")
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


# Colours and shapes

CROSSED = list(product(("bpe", "scaffold_bpe", "unigram"), ("merge_rank", "longest_first")))


def test_a_value_has_one_colour_and_a_combination_of_the_others_one_shape() -> None:
    looks = Looks(("tokenizer", "encoder"), CROSSED)
    colours = {(tokenizer, looks.of((tokenizer, encoder)).colour) for tokenizer, encoder in CROSSED}
    shapes = {(encoder, looks.of((tokenizer, encoder)).sign) for tokenizer, encoder in CROSSED}
    assert sorted(colours) == sorted(zip(("bpe", "scaffold_bpe", "unigram"), COLOURS, strict=False))
    assert shapes == {("merge_rank", "●"), ("longest_first", "■")}
    assert looks.colour_of("tokenizer", "unigram") == COLOURS[2]
    assert looks.colour_of("encoder", "longest_first") is None
    assert looks.legend_factors == ("tokenizer", ("encoder",))


def test_colours_follow_the_theme_and_texts_do_not_change() -> None:
    def draw(figure: Figure) -> None:
        figure.subplots().set_title("colour #222222 & <b>")

    with mpl.rc_context(style()):
        plot = picture("one", "A caption", "A text", (9.2, 3.0), draw)
    text = inline(plot.svg, "one", 'what "it" shows')
    assert "fill: light-dark(#222222, #e3e6e9)" in text
    assert ">colour #222222 &amp; &lt;b&gt;<" in text
    assert text.startswith('<svg role="img" aria-label="what &quot;it&quot; shows" viewBox="0 0 662.4 216"')
    assert "<style" not in text and "<metadata" not in text  # they would hold for the whole page
