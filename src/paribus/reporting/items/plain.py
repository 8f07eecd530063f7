"""Items as plain data, for programs: the keys are described in docs/json.md."""

from collections.abc import Sequence
from typing import Any

from paribus.reporting.formats.plain import missing_document, row_document
from paribus.reporting.items.listed import ListedItem, Overview
from paribus.reporting.items.pairs import Pair
from paribus.reporting.items.view import ItemsView
from paribus.reporting.table.comparison import Comparison
from paribus.reporting.table.frame import MissingRun


def items_document(comparison: Comparison, view: ItemsView, missing: Sequence[MissingRun]) -> dict[str, Any]:
    """Rows, tasks in numbers, and the items that are listed."""
    return {
        "factors": list(comparison.factors),
        "rows": [row_document(comparison, row) | {"baseline": row.baseline} for row in comparison.rows],
        "tasks": [_task(each) for each in view.overviews],
        "items": [_item(each) for each in view.items],
        "notes": [*view.notes, *view.warnings],
        "missing": missing_document(missing),
    }


def _task(about: Overview) -> dict[str, Any]:
    scored = about.scored
    return {
        "task": scored.name,
        "kind": scored.kind,
        "metric": scored.metric,
        "shots": list(scored.shots),
        "better": scored.column.better,
        "items": about.items,
        "left_out": about.left_out,
        "values": list(about.values),
        "pairs": [_pair(pair) for pair in about.pairs],
    }


def _pair(pair: Pair) -> dict[str, Any]:
    return {
        "row": pair.row,
        "baseline": pair.baseline,
        "answers": pair.answers,
        "both_right": pair.both,
        "better_row": pair.better_row,
        "better_baseline": pair.better_baseline,
        "neither_right": pair.neither,
        "value_row": pair.value_row,
        "value_baseline": pair.value_baseline,
        "difference": pair.difference,
    }


def _item(item: ListedItem) -> dict[str, Any]:
    text = item.text
    return {
        "item": item.item,
        "left_out": item.left_out,
        "question": text.question or None,
        "choices": list(text.choices),
        "right": text.right,
        "ending": text.ending or None,
        "accepted": list(text.accepted),
        "bytes": item.size,
        "rows": [vars(row) for row in item.rows],
    }
