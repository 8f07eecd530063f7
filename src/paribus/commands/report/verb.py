"""`paribus report`: the table of a command's runs, and why it would be refused."""

import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from paribus.commands.chosen import choose
from paribus.commands.json_output import print_json
from paribus.commands.report.compare import compare
from paribus.commands.rest import show_rest
from paribus.commands.statistics import show_verb_of_table
from paribus.config.arguments import Command
from paribus.config.compose import Composition
from paribus.errors import InfrastructureError, ParibusError, classify
from paribus.pipeline.prepare import describe_sweep, refuse_repeated
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.results import collect
from paribus.pipeline.root import OutputRoot
from paribus.store import files

if TYPE_CHECKING:
    from paribus.reporting.report import Report

EXIT_INCOMPLETE, EXIT_USAGE = 1, 2
FAILURE_LOG = "report.log"


def report_command(command: Command, console: Console) -> int:
    """Write the report of a command's runs and print the table; 1 when a run of it is not done."""
    chosen = choose(command, partial(console.print, style="dim", markup=False, soft_wrap=True))
    composition, runs = chosen.composition, chosen.runs
    refuse_repeated(runs)
    with _explained(composition, runs):
        if command.asks_why:
            return explain(composition, runs, console)
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
    from paribus.reporting.fairness import explanation

    records, missing = collect(runs, composition.factors, OutputRoot.of(composition.jobs[0].config))
    lines, fair = explanation(records, composition.factors)
    for line in [*lines, *(f"left out, {', '.join(run.factors.values())}: {run.reason}" for run in missing)]:
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    return 0 if fair else EXIT_USAGE


def _print_plain(report: "Report") -> None:
    print_json(report.plain)


@contextmanager
def _explained(composition: Composition, runs: Sequence[PreparedRun]) -> Iterator[None]:
    """Whatever a report raises becomes an InfrastructureError of one line; where it arose is written to a file."""
    try:
        yield
    except ParibusError:
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
        files.write_text(log, traceback.format_exc())
    except OSError as error:
        return f"its traceback could not be written to {log}: {error.strerror}"
    return f"traceback: {log}"
