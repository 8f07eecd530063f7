"""From the runs of a command to the comparison table, through records alone."""

import math
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from paribus.commands.chosen import choose
from paribus.commands.further.more_seeds import seeds_of_another, with_more_seeds
from paribus.commands.json_output import print_json
from paribus.commands.rest import show_rest
from paribus.commands.statistics import show_verb_of_table
from paribus.config.arguments import Command, override_key, override_value
from paribus.config.compose import Composition
from paribus.config.groups.execution import SweepConfig
from paribus.config.groups.experiment import table_of
from paribus.config.identity import digest, everything
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError, InfrastructureError, ParibusError, classify
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepare import describe_sweep, refuse_idle_factors
from paribus.pipeline.prepared_run import PreparedRun
from paribus.pipeline.record.records import collect
from paribus.pipeline.record.sweep_record import read_sweep
from paribus.pipeline.vocabularies import compare_vocabularies
from paribus.store import atomic
from paribus.store.claim import exclusive
from paribus.tracking.destination import Destination
from paribus.tracking.events import FILE_NAME, EventLog
from paribus.tracking.follower import Follower

if TYPE_CHECKING:
    from rich.console import RenderableType

    from paribus.reporting.report import Report
    from paribus.reporting.table.frame import MissingRun

DESCRIPTION_TAG = "mlflow.note.content"
"""What MLflow shows as the description of a run, Markdown."""
EXIT_INCOMPLETE, EXIT_USAGE = 1, 2
_OF_TABLE = ("experiment.table", "experiment.title", "experiment.question", "experiment.paper")
"""Fields that say of the runs of a sweep what its report shows."""
FAILURE_LOG = "report.log"
PICTURES = "pictures.json"
"""Beside the events of a sweep: the pictures of its report, which are drawn again once they show something else."""


def report_command(command: Command, console: Console) -> int:
    """Write the report of a command's runs and print the table; 1 when a run of it is not done."""
    chosen = choose(command, partial(console.print, style="dim", markup=False, soft_wrap=True))
    composition, runs = chosen.composition, chosen.runs
    refuse_idle_factors(runs)
    with _explained(composition, runs):
        if command.asks_why:
            return explain(composition, runs, console)
        if command.asks_null:
            return compare_arms_with_themselves(chosen.command, composition, runs, console)
        show_rest(chosen.command, composition, runs, console)
        show_verb_of_table(chosen.command, composition, runs, console)
        show = _print_plain if command.asks_json else None
        return 0 if compare(composition, runs, console, show) else EXIT_INCOMPLETE


def show_table(composition: Composition, runs: Sequence[PreparedRun], console: Console) -> None:
    """The table of a finished sweep. Runs that it refuses or fails on are no failure of running them."""
    try:
        with _explained(composition, runs):
            compare(composition, runs, console)
    except ParibusError as error:
        console.print(f"no table: {error}", style="yellow", markup=False, soft_wrap=True)


def explain(composition: Composition, runs: Sequence[PreparedRun], console: Console) -> int:
    """Print every field in which the finished runs differ, declared or not; 2 where the table would be refused."""
    from paribus.reporting.fairness.why import explanation

    records, missing = collect(runs, composition.factors, OutputRoot.of(composition.jobs[0].config))
    lines, fair = explanation(records, composition.factors)
    for line in [*lines, *(f"left out, {', '.join(run.factors.values())}: {run.reason}" for run in missing)]:
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    return 0 if fair else EXIT_USAGE


def compare_arms_with_themselves(
    command: Command, composition: Composition, runs: Sequence[PreparedRun], console: Console
) -> int:
    """Print how often a table would find a difference between two halves of the runs of one arm.

    ConfigurationError, with a command that runs enough, where no arm has as many runs as that takes.
    """
    from paribus.reporting.significance.null_experiment import null_experiment
    from paribus.reporting.table.comparison import compare as compared

    records, missing = collect(runs, composition.factors, OutputRoot.of(composition.jobs[0].config))
    table = table_of(composition.jobs[0].config.experiment)
    comparison = compared(records, composition.factors, missing, table)
    try:
        lines = null_experiment(comparison)
    except ConfigurationError as error:
        why = next(filter(None, (seeds_of_another(job.config) for job in composition.jobs)), None)
        told = f"; but {why}" if why else f":\n  {with_more_seeds(command, composition)}"
        raise ConfigurationError(f"{error}{told}") from error
    for line in lines:
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    for run in missing:
        told = f"left out, {', '.join(run.factors.values())}: {run.reason}"
        console.print(told, soft_wrap=True, markup=False, highlight=False)
    return EXIT_INCOMPLETE if missing else 0


Show = Callable[["Report"], None]


@dataclass(frozen=True)
class _Output:
    """What is called with the table, before anything is drawn or written, and with the written report."""

    shown: Callable[["RenderableType"], None]
    finish: Show
    trouble: list[OSError | SystemExit] = field(default_factory=list)
    """Why the table could not be shown; a closed pipe, of which rich makes an exit."""

    def tell(self, table: "RenderableType") -> None:
        """Show the table; that it cannot be shown is no reason to write no report."""
        try:
            self.shown(table)
        except (OSError, SystemExit) as error:
            self.trouble.append(error)

    def show(self, report: "Report") -> None:
        """Raise what kept the table from being shown, now that nothing can be lost by it; else say what there is."""
        for error in self.trouble:
            raise error
        self.finish(report)


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
        own = root.path / "reports" / f"{sweep.name.replace('/', '-')}-{sweep.id[:8]}"
        beside = _beside_own(composition, events)
        directory, pictures = own.with_name(own.name + beside), None if beside else events / PICTURES
        report, missing, numbers = _write(composition, runs, directory, pictures, output)
        if beside:
            _tell_beside(report, beside, sweep, config, events)
        else:
            _tell(report, numbers, sweep, config, events)
    output.show(report)
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
        report, missing, _ = _write(composition, runs, directory, None, output)
    except BaseException:
        shutil.rmtree(directory)
        raise
    output.show(report)
    root = OutputRoot.of(composition.jobs[0].config).path
    console.print(f"{root} may not be written, so the report is not there", style="dim", markup=False, soft_wrap=True)
    return _is_complete(report, missing)


def _show(report: "Report", console: Console) -> None:
    console.print(
        f"report: {report.files['report.html']} (beside it .md, .csv, .parquet, .tex)", soft_wrap=True, markup=False
    )


def _print_plain(report: "Report") -> None:
    print_json(report.plain)


def _is_complete(report: "Report", missing: Sequence["MissingRun"]) -> bool:
    return not missing and not any(row.missing for row in report.comparison.rows)


@contextmanager
def _explained(composition: Composition, runs: Sequence[PreparedRun]) -> Iterator[None]:
    """Whatever a report raises becomes an InfrastructureError of one line; where it arose is written to a file."""
    try:
        yield
    except (ParibusError, BrokenPipeError):
        raise
    except Exception as error:  # the runs took hours, so no mistake in drawing them may look like a failure of theirs
        root = OutputRoot.of(composition.jobs[0].config)
        log = root.sweep(describe_sweep(composition, runs).id) / FAILURE_LOG
        what = " ".join(classify(error)["message"].split())
        raise InfrastructureError(f"{what} ({_logged(log)})") from error


def _logged(log: Path) -> str:
    """Write the traceback of the exception in hand to `log`; in words, where it is."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_text(log, traceback.format_exc())
    except OSError as error:
        return f"its traceback could not be written to {log}: {error.strerror}"
    return f"traceback: {log}"


def _write(
    composition: Composition, runs: Sequence[PreparedRun], directory: Path, pictures: Path | None, output: _Output
) -> tuple["Report", list["MissingRun"], dict[str, float]]:
    """The report in `directory`, the runs that it lacks, and its numbers for the tracker."""
    from paribus.reporting.report import write_report
    from paribus.reporting.table.numbers import table_numbers

    config = composition.jobs[0].config
    records, missing = collect(runs, composition.factors, OutputRoot.of(config))
    experiment = config.experiment
    titled = experiment.title if experiment else None
    table = table_of(experiment)
    overlap = compare_vocabularies(records, table.names)
    report = write_report(
        records,
        missing=missing,
        title=titled or f"Comparison by {', '.join(composition.factors) or 'run'}",
        question=experiment.question if experiment else "",
        factors=composition.factors,
        directory=directory,
        paper=experiment.paper if experiment else None,
        overlap=overlap,
        table=table,
        tell=output.tell,
        kept=pictures,
    )
    return report, missing, table_numbers(report.comparison) | (overlap.metrics() if overlap else {})


def _tell(report: "Report", numbers: Mapping[str, float], sweep: SweepConfig, config: RunConfig, log: Path) -> None:
    """Put the report into the events of the sweep."""
    with EventLog(log / FILE_NAME) as events:
        events.start(sweep.id, sweep.name, {"id": sweep.id, "name": sweep.name}, everything(config.tracking))
        revise(events, numbers)
        events.artifact(report.files["report.html"].parent, "report")
        events.tag(DESCRIPTION_TAG, report.head)
        events.end("FINISHED")


def _tell_beside(report: "Report", beside: str, sweep: SweepConfig, config: RunConfig, log: Path) -> None:
    """Put the files of a report with another table there too; numbers and description stay those of the sweep's own."""
    with EventLog(log / FILE_NAME) as events:
        events.start(sweep.id, sweep.name, {"id": sweep.id, "name": sweep.name}, everything(config.tracking))
        events.artifact(report.files["report.html"].parent, f"report{beside}")
        events.end("FINISHED")


def revise(events: EventLog, numbers: Mapping[str, float]) -> None:
    """The numbers of this report; those of an earlier one that it lacks become NaN, so that none passes for current."""
    from paribus.reporting.table.numbers import SECTION

    for name in events.revised(SECTION):
        if name not in numbers:
            events.revise(name, math.nan)
    for name, value in numbers.items():
        events.revise(name, value)
