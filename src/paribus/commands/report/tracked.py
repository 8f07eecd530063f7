"""What the tracker keeps of a report: its numbers, its files and its first lines, as the description of the sweep."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.config.groups.execution import SweepConfig
from paribus.config.identity import everything
from paribus.config.schema import RunConfig
from paribus.tracking.events import FILE_NAME, EventLog

if TYPE_CHECKING:
    from paribus.reporting.report import Report

DESCRIPTION_TAG = "mlflow.note.content"
"""What MLflow shows as the description of a run, Markdown."""


def tell(report: "Report", numbers: Mapping[str, float], sweep: SweepConfig, config: RunConfig, log: Path) -> None:
    """Put the report into the events of the sweep."""
    with EventLog(log / FILE_NAME) as events:
        events.start(sweep.id, sweep.name, {"id": sweep.id, "name": sweep.name}, everything(config.tracking))
        revise(events, numbers)
        events.artifact(report.files["report.html"].parent, "report")
        events.tag(DESCRIPTION_TAG, report.head)
        events.end("FINISHED")


def tell_beside(report: "Report", beside: str, sweep: SweepConfig, config: RunConfig, log: Path) -> None:
    """Put the files of a report with another table there too; numbers and description stay those of the sweep's own."""
    with EventLog(log / FILE_NAME) as events:
        events.start(sweep.id, sweep.name, {"id": sweep.id, "name": sweep.name}, everything(config.tracking))
        events.artifact(report.files["report.html"].parent, f"report{beside}")
        events.end("FINISHED")


def revise(events: EventLog, numbers: Mapping[str, float]) -> None:
    """The numbers of this report; those of an earlier one that it lacks become NaN, so that none passes for current."""
    from paribus.reporting.compare import SECTION

    for name in events.revised(SECTION):
        if name not in numbers:
            events.revise(name, math.nan)
    for name, value in numbers.items():
        events.revise(name, value)
