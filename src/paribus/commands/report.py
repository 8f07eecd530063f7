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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from paribus.commands.selection import select
from paribus.commands.status import UNTIL, show_unfinished, typed_command
from paribus.config.arguments import Command, override_key, override_value
from paribus.config.compose import Composition
from paribus.config.groups.evaluation import table_of
from paribus.config.identity import digest, to_plain
from paribus.errors import ConfigurationError, InfrastructureError, ParibusError, classify
from paribus.pipeline.display import print_json
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
        if command.has("--why"):
            return explain_differences(composition, runs, console)
        show_unfinished(chosen.command, composition, runs, console)
        show_verb_of_table(chosen.command, composition, runs, console)
        show = (lambda report: print_json(report.plain)) if command.has("--json") else None
        return 0 if compare_runs(composition, runs, console, show) else EXIT_INCOMPLETE


def show_table(composition: Composition, runs: Sequence[PreparedRun], console: Console) -> None:
    """Print the table of a finished sweep. A refused or failed table is no failure of the runs."""
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
    """Turn whatever a report raises into an InfrastructureError of one line, with the traceback in a file."""
    try:
        yield
    except ParibusError:
        raise
    except Exception as error:  # the runs took hours: no mistake in drawing them may look like their failure
        root = OutputRoot.of(composition.jobs[0].config)
        log = root.sweep(describe_sweep(composition, runs).id) / FAILURE_LOG
        where = f"traceback: {log}"
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            files.write_text(log, traceback.format_exc())
        except OSError as unwritten:
            where = f"its traceback could not be written to {log}: {unwritten.strerror}"
        raise InfrastructureError(f"{' '.join(classify(error)['message'].split())} ({where})") from error


_TABLE_FIELDS = ("experiment.table", "experiment.title", "experiment.question", "experiment.paper")
"""Fields that decide what the report of a sweep shows."""


def compare_runs(
    composition: Composition,
    runs: Sequence[PreparedRun],
    console: Console,
    show: Callable[["Report"], None] | None = None,
) -> bool:
    """Print the table, write the report and put it into the tracker; True if every run was there.

    `show` is called with the written report, and nothing else is printed. Another table than the sweep's own is written
    beside that and leaves the tracker's numbers. Where the root cannot be written, a temporary directory holds it.
    """
    config = composition.jobs[0].config
    root = OutputRoot.of(config)
    say = partial(console.print, soft_wrap=True, markup=False)
    tell: Callable[[RenderableType], None] = (lambda shown: None) if show else console.print
    finish = show or (
        lambda report: say(f"report: {report.files['report.html']} (beside it .md, .csv, .parquet, .tex)")
    )
    sweep = describe_sweep(composition, runs)
    if root.path.is_dir() and os.access(root.path, os.W_OK):
        events = root.sweep(sweep.id)
        events.mkdir(parents=True, exist_ok=True)
        with exclusive(events):
            own = report_directory(root.path, sweep.id, sweep.name)
            suffix = _suffix_of_other_table(composition, events)
            report, missing, numbers = _write_report(composition, runs, own.with_name(own.name + suffix), tell)
            with EventLog(events / FILE_NAME) as log:
                log.start(sweep.id, sweep.name, {"id": sweep.id, "name": sweep.name}, to_plain(config.tracking))
                if not suffix:
                    correct_numbers(log, numbers)
                log.artifact(report.files["report.html"].parent, f"report{suffix}")
                if not suffix:
                    log.tag(DESCRIPTION_TAG, report.head)
                log.end("FINISHED")
        finish(report)
        if suffix:
            unchanged = f", whose report {own} is left as it was" if own.is_dir() else ""
            say(f"another table than the sweep's own{unchanged}", style="dim")
        message = Follower(events, config.tracking, root.path).finish(config.tracking.patience)
        console.print(message, style="dim", markup=False)
        if config.tracking.kind == "mlflow":
            say(f"see the runs in MLflow: {Destination.resolve(config.tracking, root.path).how_to_open}")
    else:
        directory = Path(tempfile.mkdtemp(prefix=f"paribus-report-{sweep.id[:8]}-"))
        try:
            report, missing, _ = _write_report(composition, runs, directory, tell)
        except BaseException:
            shutil.rmtree(directory)
            raise
        finish(report)
        say(f"{root.path} may not be written, so the report is not there", style="dim")
    return not missing and not any(row.missing for row in report.comparison.rows)


def _suffix_of_other_table(composition: Composition, sweep: Path) -> str:
    """End of the name of a report that has another table than its sweep was given with; nothing for its own."""
    record, job = read_sweep(sweep), composition.jobs[0]
    if record is None or _table_overrides(record.runs[0].overrides) == _table_overrides(job.overrides):
        return ""
    return f"-table-{digest(to_plain(job.config.experiment))[:8]}"


def _table_overrides(overrides: Sequence[str]) -> dict[str, str]:
    """Field -> value of the overrides that decide what a report shows; a file of arms may have a table too."""
    given = {override_key(text): override_value(text) for text in overrides}
    return {key: value for key, value in given.items() if key == "experiment" or key.startswith(_TABLE_FIELDS)}


def _write_report(
    composition: Composition, runs: Sequence[PreparedRun], directory: Path, tell: Callable[["RenderableType"], None]
) -> tuple["Report", list["MissingRun"], dict[str, float]]:
    """The report, the runs that it lacks and its numbers for the tracker; `tell` gets the table before that."""
    from paribus.pipeline.item_texts import stored_texts
    from paribus.reporting.compare import table_numbers
    from paribus.reporting.report import write_report

    experiment, root = composition.jobs[0].config.experiment, OutputRoot.of(composition.jobs[0].config)
    records, missing = collect(runs, composition.factors, root)
    table = table_of(experiment)
    overlap = compare_vocabularies(records, table.names)
    report = write_report(
        records,
        missing=missing,
        looks=_earlier_reports(records, describe_sweep(composition, runs).id, root),
        title=(experiment.title if experiment else None) or f"Comparison by {', '.join(composition.factors) or 'run'}",
        question=experiment.question if experiment else "",
        factors=composition.factors,
        directory=directory,
        paper=experiment.paper if experiment else None,
        overlap=overlap,
        table=table,
        texts=stored_texts(runs, root),
        tell=tell,
    )
    return report, missing, table_numbers(report.comparison) | (overlap.metrics() if overlap else {})


def _earlier_reports(records: Sequence["FinishedRun"], sweep: str, root: OutputRoot) -> dict[str, int]:
    """Name of each sweep that judged two or more of these arms by fewer seeds before -> how many those were."""
    earlier = {}
    for other in read_sweeps(root.path):
        ids = {run.run_id for run in other.runs}
        shared = [record for record in records if record.run_id in ids]
        seeds, arms = {record.seed for record in shared}, {tuple(record.factors.values()) for record in shared}
        fewer = len(arms) > 1 and SEEDS_TO_JUDGE <= len(seeds) < len({record.seed for record in records})
        if fewer and _first_reported(root, other.id) < _first_reported(root, sweep):
            earlier[f"{other.name} {other.id[:8]}"] = len(seeds)
    return earlier


def _first_reported(root: OutputRoot, sweep: str) -> float:
    path = root.sweep(sweep) / FILE_NAME
    if not path.is_file():
        return math.inf
    with path.open(encoding="utf-8") as events:
        return float(json.loads(events.readline() or '{"time": "inf"}')["time"])


DESCRIPTION_TAG = "mlflow.note.content"
"""Tag that MLflow shows as the description of a run, Markdown."""


def correct_numbers(events: EventLog, numbers: Mapping[str, float]) -> None:
    """Log the numbers of this report; those of an earlier one that it lacks become NaN, lest they pass for current."""
    from paribus.reporting.compare import SECTION

    last = dict(sorted(events.points()))  # trackers show the last step's
    points = {(name, last.get(name, 0)): value for name, value in numbers.items()}
    events.correct(points, lambda name, step: name.startswith(SECTION) and name not in numbers)


_ORDER_STAGES = ("embeddings", "neighbours", "lexical_neighbours", "duplicates", "order", "contexts")
VERB_OF_STAGE: Mapping[str, str] = {"vocabulary": "tokens statistics", "tokens": "tokens statistics"} | dict.fromkeys(
    _ORDER_STAGES, "orders"
)
"""Verb, by stage, whose table shows what is made up to that stage."""


def show_verb_of_table(
    command: Command, composition: Composition, runs: Sequence[PreparedRun], console: Console
) -> None:
    """Print the command that makes the table of what `until` ends at; ConfigurationError where no run is done."""
    until = composition.jobs[0].config.until
    if until is None or until not in VERB_OF_STAGE:
        return
    typed = typed_command(command, without=UNTIL, multirun=composition.multirun, verb=VERB_OF_STAGE[until])
    message = f"{UNTIL}={until} ends before the models that a report compares; the table of what is there then: {typed}"
    root = OutputRoot.of(composition.jobs[0].config)
    if not any(read_state(root, run).status == "done" for run in runs):
        raise ConfigurationError(message)
    console.print(message, style="dim", markup=False, soft_wrap=True)
