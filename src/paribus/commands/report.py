"""The verb `paribus report`: the table of a command's runs, printed, written as a report and put into the tracker.

Where `until` ends the runs before a training there is no such table: the verb that makes one then is named.
"""

import json
import math
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from paribus.commands.output import print_json
from paribus.commands.selection import select
from paribus.commands.status import UNTIL, show_unfinished, typed_command
from paribus.config.arguments import Command, override_key, override_value
from paribus.config.compose import Composition
from paribus.config.groups.evaluation import table_of
from paribus.config.groups.execution import RunStage, SweepConfig
from paribus.config.identity import digest, to_plain
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError, InfrastructureError, ParibusError, classify
from paribus.pipeline.prepare import describe_sweep, same_run_twice
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.recorder import read_state
from paribus.pipeline.records import read_sweep, read_sweeps
from paribus.pipeline.results import collect, compare_vocabularies
from paribus.pipeline.root import OutputRoot, report_directory
from paribus.reporting.measures import SEEDS_TO_JUDGE
from paribus.store import files
from paribus.store.claims import exclusive
from paribus.tracking.destination import Destination
from paribus.tracking.events import FILE_NAME, EventLog
from paribus.tracking.sync import Follower

if TYPE_CHECKING:
    from rich.console import RenderableType

    from paribus.reporting.report import Report
    from paribus.reporting.runs import FinishedRun, MissingRun


EXIT_INCOMPLETE, EXIT_USAGE = 1, 2
FAILURE_LOG = "report.log"


def report_command(command: Command, console: Console) -> int:
    """Write the report of a command's runs and print the table; 1 when a run of it is not done."""
    chosen = select(command, partial(console.print, style="dim", markup=False, soft_wrap=True))
    composition, runs = chosen.composition, chosen.runs
    if repeated := same_run_twice(runs):
        raise repeated
    with _logging_failures(composition, runs):
        if command.asks_why:
            return explain_differences(composition, runs, console)
        show_unfinished(chosen.command, composition, runs, console)
        show_verb_of_table(chosen.command, composition, runs, console)
        show = (lambda report: print_json(report.plain)) if command.asks_json else None
        return 0 if compare_runs(composition, runs, console, show) else EXIT_INCOMPLETE


def show_table(composition: Composition, runs: Sequence[PreparedRun], console: Console) -> None:
    """The table of a finished sweep. Runs that it refuses or fails on are no failure of running them."""
    try:
        with _logging_failures(composition, runs):
            compare_runs(composition, runs, console)
    except ParibusError as error:
        console.print(f"no table: {error}", style="yellow", markup=False, soft_wrap=True)


def explain_differences(composition: Composition, runs: Sequence[PreparedRun], console: Console) -> int:
    """Print every field in which the finished runs differ, declared or not; 2 where the table would be refused."""
    from paribus.reporting.fairness import explanation

    records, missing = collect(runs, composition.factors, OutputRoot.of(composition.jobs[0].config))
    lines, fair = explanation(records, composition.factors)
    for line in [*lines, *(f"left out, {', '.join(run.factors.values())}: {run.reason}" for run in missing)]:
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    return 0 if fair else EXIT_USAGE


@contextmanager
def _logging_failures(composition: Composition, runs: Sequence[PreparedRun]) -> Iterator[None]:
    """Whatever a report raises becomes an InfrastructureError of one line; where it arose is written to a file."""
    try:
        yield
    except ParibusError:
        raise
    except Exception as error:  # the runs took hours, so no mistake in drawing them may look like a failure of theirs
        root = OutputRoot.of(composition.jobs[0].config)
        log = root.sweep(describe_sweep(composition, runs).id) / FAILURE_LOG
        what = " ".join(classify(error)["message"].split())
        raise InfrastructureError(f"{what} ({_log_traceback(log)})") from error


def _log_traceback(log: Path) -> str:
    """Write the traceback of the exception in hand to `log`; in words, where it is."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        files.write_text(log, traceback.format_exc())
    except OSError as error:
        return f"its traceback could not be written to {log}: {error.strerror}"
    return f"traceback: {log}"


_TABLE_FIELDS = ("experiment.table", "experiment.title", "experiment.question", "experiment.paper")
"""Fields that say of the runs of a sweep what its report shows."""
Show = Callable[["Report"], None]


@dataclass(frozen=True)
class _Output:
    """What is called with the table, before anything is drawn or written, and with the written report."""

    shown: Callable[["RenderableType"], None]
    finish: Show


def compare_runs(
    composition: Composition, runs: Sequence[PreparedRun], console: Console, show: Show | None = None
) -> bool:
    """Print the table, write the report and put it into the tracker; whether every run was there.

    Given `show`, that is called with the written report, and nothing else is printed of it.

    Another table than the sweep was given with is written beside the sweep's own, in the root and in the tracker.

    Commands that end at once write one after the other, each what it finds then, so that no report is a mixture. Where
    the output root may only be read, or is not there, the report is written beside the system's temporary files.
    """
    config = composition.jobs[0].config
    root = OutputRoot.of(config)
    output = (
        _Output(lambda shown: None, show) if show else _Output(console.print, partial(_print_path, console=console))
    )
    sweep = describe_sweep(composition, runs)
    if not (root.path.is_dir() and os.access(root.path, os.W_OK)):
        return _compare_aside(composition, runs, sweep, console, output)
    events = root.sweep(sweep.id)
    events.mkdir(parents=True, exist_ok=True)
    with exclusive(events):
        own = report_directory(root.path, sweep.id, sweep.name)
        beside = _suffix_of_other_table(composition, events)
        report, missing, numbers = _write_report(composition, runs, own.with_name(own.name + beside), output)
        if beside:
            track_other_table(report, beside, sweep, config, events)
        else:
            track_report(report, numbers, sweep, config, events)
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


def _suffix_of_other_table(composition: Composition, sweep: Path) -> str:
    """What the name of a report ends in that has another table than its sweep was given with; nothing of its own."""
    record, job = read_sweep(sweep), composition.jobs[0]
    if record is None or _table_overrides(record.runs[0].overrides) == _table_overrides(job.overrides):
        return ""
    return f"-table-{digest(to_plain(job.config.experiment))[:8]}"


def _table_overrides(overrides: Sequence[str]) -> dict[str, str]:
    """Field -> value of the overrides that decide what a report shows; a file of arms may have a table too."""
    given = {override_key(text): override_value(text) for text in overrides}
    return {key: value for key, value in given.items() if key == "experiment" or key.startswith(_TABLE_FIELDS)}


def _compare_aside(
    composition: Composition, runs: Sequence[PreparedRun], sweep: SweepConfig, console: Console, output: _Output
) -> bool:
    """`compare` without anything written below the output root, and so without the tracker."""
    directory = Path(tempfile.mkdtemp(prefix=f"paribus-report-{sweep.id[:8]}-"))
    try:
        report, missing, _ = _write_report(composition, runs, directory, output)
    except BaseException:
        shutil.rmtree(directory)
        raise
    output.finish(report)
    root = OutputRoot.of(composition.jobs[0].config).path
    console.print(f"{root} may not be written, so the report is not there", style="dim", markup=False, soft_wrap=True)
    return _is_complete(report, missing)


def _print_path(report: "Report", console: Console) -> None:
    console.print(
        f"report: {report.files['report.html']} (beside it .md, .csv, .parquet, .tex)", soft_wrap=True, markup=False
    )


def _is_complete(report: "Report", missing: Sequence["MissingRun"]) -> bool:
    return not missing and not any(row.missing for row in report.comparison.rows)


def _write_report(
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


def _earlier_reports(records: Sequence["FinishedRun"], sweep: str, root: OutputRoot) -> dict[str, int]:
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


DESCRIPTION_TAG = "mlflow.note.content"
"""What MLflow shows as the description of a run, Markdown."""


def track_report(
    report: "Report", numbers: Mapping[str, float], sweep: SweepConfig, config: RunConfig, log: Path
) -> None:
    """Put the report into the events of the sweep: its numbers, its files, and its first lines as the description."""
    with EventLog(log / FILE_NAME) as events:
        events.start(sweep.id, sweep.name, {"id": sweep.id, "name": sweep.name}, to_plain(config.tracking))
        revise_numbers(events, numbers)
        events.artifact(report.files["report.html"].parent, "report")
        events.tag(DESCRIPTION_TAG, report.head)
        events.end("FINISHED")


def track_other_table(report: "Report", beside: str, sweep: SweepConfig, config: RunConfig, log: Path) -> None:
    """Put the files of a report with another table there too; numbers and description stay those of the sweep's own."""
    with EventLog(log / FILE_NAME) as events:
        events.start(sweep.id, sweep.name, {"id": sweep.id, "name": sweep.name}, to_plain(config.tracking))
        events.artifact(report.files["report.html"].parent, f"report{beside}")
        events.end("FINISHED")


def revise_numbers(events: EventLog, numbers: Mapping[str, float]) -> None:
    """The numbers of this report; those of an earlier one that it lacks become NaN, so that none passes for current."""
    from paribus.reporting.compare import SECTION

    for name in events.revised(SECTION):
        if name not in numbers:
            events.revise(name, math.nan)
    for name, value in numbers.items():
        events.revise(name, value)


TOKEN_STATISTICS, ORDER_STATISTICS = "tokens statistics", "orders"
VERB_OF_STAGE: Mapping[RunStage, str] = {
    "vocabulary": TOKEN_STATISTICS,
    "tokens": TOKEN_STATISTICS,
    "embeddings": ORDER_STATISTICS,
    "neighbours": ORDER_STATISTICS,
    "lexical_neighbours": ORDER_STATISTICS,
    "duplicates": ORDER_STATISTICS,
    "order": ORDER_STATISTICS,
    "contexts": ORDER_STATISTICS,
}
"""Stage -> the verb whose table is of what is made up to it."""


def show_verb_of_table(
    command: Command, composition: Composition, runs: Sequence[PreparedRun], console: Console
) -> None:
    """Say with which command the table of what `until` ends at is made; nothing where models are its end.

    ConfigurationError, with the same words, where no run is done, of which a report would be.
    """
    until = composition.jobs[0].config.until
    if until is None or until not in VERB_OF_STAGE:
        return
    typed = typed_command(command, without=UNTIL, multirun=composition.multirun, verb=VERB_OF_STAGE[until])
    told = f"{UNTIL}={until} ends before the models that a report compares; the table of what is there then: {typed}"
    root = OutputRoot.of(composition.jobs[0].config)
    if not any(read_state(root, run).status == "done" for run in runs):
        raise ConfigurationError(told)
    console.print(told, style="dim", markup=False, soft_wrap=True)
