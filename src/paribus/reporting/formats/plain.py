"""A comparison as plain data, for programs: the keys are described in docs/json.md."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from paribus.reporting.notes.summary import Finding, Summary
from paribus.reporting.table.comparison import Comparison, ComparisonRow
from paribus.reporting.table.frame import MissingRun

_OF_A_ROW = ("row", "measure", "run_ids", "run_seeds", "missing")


def report_document(
    comparison: Comparison,
    tidy: pa.Table,
    *,
    title: str,
    summary: Summary,
    notes: Sequence[str],
    files: Mapping[str, Path],
    missing: Sequence[MissingRun],
) -> dict[str, Any]:
    """Rows with their cells as `report.csv` has them, what is said below the table, and where the report is."""
    return {
        "title": title,
        "factors": list(comparison.factors),
        "primary": sorted(comparison.primary),
        "setting": list(summary.setting),
        "findings": [_finding(finding) for finding in summary.findings],
        "rows": _rows(comparison, tidy.to_pylist()),
        "notes": [*summary.rows, *notes],
        "missing": missing_document(missing),
        "files": {name: str(path) for name, path in sorted(files.items())},
    }


def row_document(comparison: Comparison, row: ComparisonRow) -> dict[str, Any]:
    """What a row is, whatever is said of it."""
    return {
        "factors": dict(zip(comparison.factors, row.labels, strict=True)),
        "runs": [run.run_id for run in row.runs],
        "seeds": [run.seed for run in row.runs],
        "missing": list(row.missing),
    }


def missing_document(missing: Sequence[MissingRun]) -> list[dict[str, Any]]:
    """Runs that are not done, and why."""
    return [{"factors": dict(run.factors), "reason": run.reason} for run in missing]


def _finding(finding: Finding) -> dict[str, Any]:
    effect, judged = finding.effect, finding.effect.p_adjusted is not None
    return {
        "factors": list(effect.contrast.factors),
        "values": list(effect.contrast.values),
        "references": list(effect.contrast.references),
        "measure": effect.column,
        "state": finding.state,
        "difference": effect.test.difference,
        "low": effect.test.low if judged else None,
        "high": effect.test.high if judged else None,
        "p_value": effect.test.p_value if judged else None,
        "p_adjusted": effect.p_adjusted,
        "detectable": effect.test.detectable if judged else None,
        "seeds": effect.test.seeds,
        "text": finding.text,
    }


def _rows(comparison: Comparison, cells: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    left_out = {*_OF_A_ROW, *comparison.factors}
    found = []
    for place, row in enumerate(comparison.rows, start=1):
        own = [cell for cell in cells if cell["row"] == place]
        cells_of_row = {
            cell["measure"]: {name: value for name, value in cell.items() if name not in left_out} for cell in own
        }
        found.append(row_document(comparison, row) | {"cells": cells_of_row})
    return found
