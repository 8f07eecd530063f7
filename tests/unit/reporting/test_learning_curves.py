"""Lines of training losses: which runs have a mean, and which line stands in the legend."""

from pathlib import Path

import matplotlib as mpl

from paribus.reporting.plots.lines.curves import Curve, learning_curves
from paribus.reporting.plots.picture import style
from paribus.reporting.table.comparison import compare
from support.tables import FACTORS, demo_runs


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
