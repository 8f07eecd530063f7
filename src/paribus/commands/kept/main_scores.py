"""The few numbers by which a run is known in a list: bits per byte, and each task by the metric that tables take."""

import re
from collections.abc import Mapping
from statistics import fmean

from paribus.reporting.table.measures import choose_metric

BITS = "bits_per_byte"
_SCORE = re.compile(r"eval/(?P<task>.+)/(?P<shots>\d+)shot/(?P<metric>[^/]+)")


def main_scores(logged: Mapping[str, float]) -> dict[str, float]:
    """Of the numbers of an evaluation, those that a table would show; a task's are averaged over numbers of shots."""
    found: dict[str, dict[str, list[float]]] = {}
    for name, value in logged.items():
        if match := _SCORE.fullmatch(name):
            found.setdefault(match["task"], {}).setdefault(match["metric"], []).append(value)
    bits = {BITS: logged[f"eval/{BITS}"]} if f"eval/{BITS}" in logged else {}
    return bits | {task: fmean(metrics[choose_metric(list(metrics))]) for task, metrics in sorted(found.items())}
