"""Scores by size of the model and by budget."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from paribus.reporting.report import write_report
from paribus.reporting.table.frame import RunRecord
from support.tables import config_of, record

AMOUNTS = {"model": ("parameters", (1e6, 4e6, 1.6e7)), "budget": ("tokens", (1e8, 2e8, 4e8))}


def swept(root: Path, group: str, amounts: tuple[float, ...] | None = None) -> list[RunRecord]:
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


def plots(root: Path, runs: list[RunRecord], group: str) -> set[str]:
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
