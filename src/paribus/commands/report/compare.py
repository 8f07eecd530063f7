"""The table of a command's runs, printed, written as a report and put into the tracker."""

import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from paribus.commands.report.tracked import tell, tell_beside
from paribus.config.arguments import override_key, override_value
from paribus.config.compose import Composition
from paribus.config.groups.evaluation import table_of
from paribus.config.groups.execution import SweepConfig
from paribus.config.identity import digest, everything
from paribus.pipeline.prepare import describe_sweep
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.records import read_sweep, read_sweeps
from paribus.pipeline.results import collect, compare_vocabularies
from paribus.pipeline.root import OutputRoot, report_directory
from paribus.reporting.measures import SEEDS_TO_JUDGE
from paribus.store.claims import exclusive
from paribus.tracking.destination import Destination
from paribus.tracking.events import FILE_NAME
from paribus.tracking.sync import Follower

if TYPE_CHECKING:
    from rich.console import RenderableType

    from paribus.reporting.report import Report
    from paribus.reporting.runs import MissingRun, RunRecord

_OF_TABLE = ("experiment.table", "experiment.title", "experiment.question", "experiment.paper")
"""Fields that say of the runs of a sweep what its report shows."""
Show = Callable[["Report"], None]


@dataclass(frozen=True)
class _Output:
    """What is called with the table, before anything is drawn or written, and with the written report."""

    shown: Callable[["RenderableType"], None]
    finish: Show


def compare(composition: Composition, runs: Sequence[PreparedRun], console: Console, show: Show | None = None) -> bool:
    """Print the table, write the report and put it into the tracker; whether every run was there.

    Given `show`, that is called with the written report, and nothing else is printed of it.

    Another table than the sweep was given with is written beside the sweep's own, in the root and in the tracker.

    Commands that end at once write one after the other, each what it finds then, so that no report is a mixture. Where
    the output root may only be read, or is not there, the report is written beside the system's temporary files.
    """
    config = composition.jobs[0].config
    root = OutputRoot.of(config)
    output = _Output(lambda shown: None, show) if show else _Output(console.print, partial(_show, console=console))
    sweep = describe_sweep(composition, runs)
    if not (root.path.is_dir() and os.access(root.path, os.W_OK)):
        return _compare_aside(composition, runs, sweep, console, output)
    events = root.sweep(sweep.id)
    events.mkdir(parents=True, exist_ok=True)
    with exclusive(events):
        own = report_directory(root.path, sweep.id, sweep.name)
        beside = _beside_own(composition, events)
        report, missing, numbers = _write(composition, runs, own.with_name(own.name + beside), output)
        if beside:
            tell_beside(report, beside, sweep, config, events)
        else:
            tell(report, numbers, sweep, config, events)
    output.finish(report)
    if beside:
        left = f", whose report {own} is left as it was" if own.is_dir() else ""
        console.print(f"another table than the sweep's own{left}", style="dim", soft_wrap=True, markup=False)
    message = Follower(events, config.tracking, root.path).finish(config.tracking.patience)
    console.print(message, style="dim", markup=False)
    if config.tracking.kind == "mlflow":
        how = Destination.resolve(config.tracking, root.path).how_to_open
        console.print(f"see the runs in MLflow: {how}", soft_wrap=True, markup=False)
    return _is_complete(report, missing)


def _beside_own(composition: Composition, sweep: Path) -> str:
    """What the name of a report ends in that has another table than its sweep was given with; nothing of its own."""
    record, job = read_sweep(sweep), composition.jobs[0]
    if record is None or _of_table(record.runs[0].overrides) == _of_table(job.overrides):
        return ""
    return f"-table-{digest(everything(job.config.experiment))[:8]}"


def _of_table(overrides: Sequence[str]) -> dict[str, str]:
    """Field -> value of the overrides that decide what a report shows; a file of arms may have a table too."""
    given = {override_key(text): override_value(text) for text in overrides}
    return {key: value for key, value in given.items() if key == "experiment" or key.startswith(_OF_TABLE)}


def _compare_aside(
    composition: Composition, runs: Sequence[PreparedRun], sweep: SweepConfig, console: Console, output: _Output
) -> bool:
    """`compare` without anything written below the output root, and so without the tracker."""
    directory = Path(tempfile.mkdtemp(prefix=f"paribus-report-{sweep.id[:8]}-"))
    try:
        report, missing, _ = _write(composition, runs, directory, output)
    except BaseException:
        shutil.rmtree(directory)
        raise
    output.finish(report)
    root = OutputRoot.of(composition.jobs[0].config).path
    console.print(f"{root} may not be written, so the report is not there", style="dim", markup=False, soft_wrap=True)
    return _is_complete(report, missing)


def _earlier_reports(records: Sequence["RunRecord"], sweep: str, root: OutputRoot) -> dict[str, int]:
    """Name of each sweep that judged two or more of these arms by fewer seeds before -> how many those were."""
    found = {}
    for other in read_sweeps(root.path):
        ids = {run.run_id for run in other.runs}
        shared = [record for record in records if record.run_id in ids]
        seeds, arms = {record.seed for record in shared}, {tuple(record.factors.values()) for record in shared}
        fewer = len(arms) > 1 and SEEDS_TO_JUDGE <= len(seeds) < len({record.seed for record in records})
        if fewer and _first_reported(root, other.id) < _first_reported(root, sweep):
            found[f"{other.name} {other.id[:8]}"] = len(seeds)
    return found


def _first_reported(root: OutputRoot, sweep: str) -> float:
    """Time of the first event of a sweep, which its first report writes; infinite before."""
    path = root.sweep(sweep) / FILE_NAME
    if not path.is_file():
        return math.inf
    with path.open(encoding="utf-8") as events:
        return float(json.loads(events.readline() or '{"time": "inf"}')["time"])


def _show(report: "Report", console: Console) -> None:
    console.print(
        f"report: {report.files['report.html']} (beside it .md, .csv, .parquet, .tex)", soft_wrap=True, markup=False
    )


def _is_complete(report: "Report", missing: Sequence["MissingRun"]) -> bool:
    return not missing and not any(row.missing for row in report.comparison.rows)


def _write(
    composition: Composition, runs: Sequence[PreparedRun], directory: Path, output: _Output
) -> tuple["Report", list["MissingRun"], dict[str, float]]:
    """The report in `directory`, the runs that it lacks, and its numbers for the tracker."""
    from paribus.pipeline.item_texts import stored_texts
    from paribus.reporting.compare import table_numbers
    from paribus.reporting.report import write_report

    config = composition.jobs[0].config
    records, missing = collect(runs, composition.factors, OutputRoot.of(config))
    experiment = config.experiment
    titled = experiment.title if experiment else None
    table = table_of(experiment)
    overlap = compare_vocabularies(records, table.names)
    report = write_report(
        records,
        missing=missing,
        looks=_earlier_reports(records, describe_sweep(composition, runs).id, OutputRoot.of(config)),
        title=titled or f"Comparison by {', '.join(composition.factors) or 'run'}",
        question=experiment.question if experiment else "",
        factors=composition.factors,
        directory=directory,
        paper=experiment.paper if experiment else None,
        overlap=overlap,
        table=table,
        texts=stored_texts(runs, OutputRoot.of(config)),
        tell=output.shown,
    )
    return report, missing, table_numbers(report.comparison) | (overlap.metrics() if overlap else {})
