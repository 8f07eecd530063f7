"""A command's runs from start to end: check everything, let Hydra's launcher run the jobs, say how it went."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape

from paribus.config.arguments import Command
from paribus.config.compose import Composition, compose_command, run_with_hydra
from paribus.config.groups.execution import SweepConfig
from paribus.config.identity import everything
from paribus.config.schema import RunConfig
from paribus.errors import ParibusError, classify
from paribus.pipeline.comparison import compare
from paribus.pipeline.display import Display, duration, open_console
from paribus.pipeline.equality import undeclared
from paribus.pipeline.graph import build_graph
from paribus.pipeline.layout import Layout
from paribus.pipeline.prepare import PreparedRun, describe_sweep, labels, prepare
from paribus.pipeline.recorder import Recorder, read_record
from paribus.pipeline.remaining import announce, write_stages
from paribus.pipeline.runner import run_nodes
from paribus.tracking.events import FILE_NAME, EventLog
from paribus.tracking.follower import Follower

EXIT_FAILED, EXIT_INTERRUPTED = 1, 130


def run_command(command: Command, console: Console) -> int:
    """Run a command's jobs; 0 when every run is done, 130 when stopped by a signal, else 1.

    FairnessError, before anything runs, where the runs' table would be refused.
    """
    started = time.time()
    composition = compose_command(command)
    runs = prepare(composition)
    if unfair := undeclared(runs):
        raise unfair
    sweep = describe_sweep(composition, runs)
    config = runs[0].job.config
    layout = Layout.of(config)
    failures: list[str] = []
    if all(is_done(run, layout) for run in runs):
        console.print(f"{len(runs)} of {len(runs)} runs done already")
    else:
        write_stages(layout, sweep, runs)
        with _shown_sweep(sweep, config, layout, failures) if composition.multirun else nullcontext():
            _launch(command, sweep, console)
            failures += summarize(runs, layout, console, started)
    if composition.multirun and not failures:
        _show_table(composition, runs, console)
    return EXIT_INTERRUPTED if "interrupted" in failures else EXIT_FAILED if failures else 0


def is_done(run: PreparedRun, layout: Layout) -> bool:
    """Whether a run is recorded as done and every artefact of it is there."""
    record = read_record(layout.run(run.run_id))
    if record is None or record["status"] != "done":
        return False
    return all(layout.store.find(node.name, node.key) for node in run.nodes.values())


def _launch(command: Command, sweep: SweepConfig, console: Console) -> None:
    try:
        run_with_hydra(command, [_override(sweep)], JobFunction())
    except KeyboardInterrupt:
        console.print("[red]stopped[/red]: give the same command again to carry on")


def _show_table(composition: Composition, runs: Sequence[PreparedRun], console: Console) -> None:
    """The comparison of a finished sweep; runs that may not be compared are no failure of running them."""
    try:
        compare(composition, runs, console)
    except ParibusError as error:
        console.print(f"no table: {error}", style="yellow", markup=False)


@contextmanager
def _shown_sweep(sweep: SweepConfig, config: RunConfig, layout: Layout, failures: list[str]) -> Iterator[None]:
    """The sweep's own event log, under which the tracker shows its runs; `failures` is filled by then."""
    path = layout.sweep(sweep.id) / FILE_NAME
    with EventLog(path) as events:
        described = {"id": sweep.id, "name": sweep.name}
        events.start(sweep.id, sweep.name, described, everything(config.tracking))
        events.parameter("factors", ", ".join(sweep.factors))
        events.parameter("runs", sweep.jobs)
        yield
        events.end("KILLED" if "interrupted" in failures else "FAILED" if failures else "FINISHED")
    Follower(path.parent, config.tracking, layout.root).finish(config.tracking.patience)


def _override(sweep: SweepConfig) -> str:
    factors = ",".join(f"'{factor}'" for factor in sweep.factors)
    fields = f"id:'{sweep.id}',name:'{sweep.name}',invocation:'{sweep.invocation}',jobs:{sweep.jobs}"
    return f"sweep={{{fields},factors:[{factors}]}}"


@dataclass(frozen=True)
class JobFunction:
    """What Hydra calls once a job. It records failures and never raises them, so that one run cannot stop the rest.

    It holds nothing of the parent process, because launchers send it to others.
    """

    def __call__(self, config: RunConfig, number: int) -> None:
        """Run one configuration; KeyboardInterrupt when the user stopped it, which stops the sweep."""
        display = Display(open_console())
        try:
            self._run(config, number, display)
        except Exception as error:
            failure = classify(error)
            display.message(f"  [red]{failure['class']}[/red]: {escape(failure['message'])}")

    def _run(self, config: RunConfig, number: int, display: Display) -> None:
        layout = Layout.of(config)
        nodes = build_graph(config, layout.cache)
        recorder = Recorder(config, nodes, layout)
        title = f"run {number + 1} of {config.sweep.jobs}" if config.sweep else "run"
        display.message(f"[bold]{title}[/bold]  {recorder.name}  [dim]{recorder.run_id}[/dim]")
        announce(layout, config, display)
        follower = Follower(recorder.directory, config.tracking, layout.root)
        failure = run_nodes(nodes, layout, display, recorder)
        recorder.finish(failure)
        if failure is not None:
            display.message(f"  [red]{failure['class']}[/red]: {escape(failure['message'])}")
        if failure is not None and failure["class"] == "interrupted":
            raise KeyboardInterrupt
        display.message(f"  [dim]{escape(follower.finish(config.tracking.patience))}[/dim]")


def summarize(runs: Sequence[PreparedRun], layout: Layout, console: Console, started: float) -> list[str]:
    """Say how the runs of a command ended; the failure classes of those that did not."""
    records = [read_record(layout.run(run.run_id)) for run in runs]
    ended = [record["status"] if record else "not started" for record in records]
    failures = [
        record["failure"]["class"] if record and record["failure"] else status
        for record, status in zip(records, ended, strict=True)
        if status != "done"
    ]
    noun = "run" if len(runs) == 1 else "runs"
    console.print(f"{ended.count('done')} of {len(runs)} {noun} done in {duration(time.time() - started)}")
    for name, record, status in zip(labels(runs), records, ended, strict=True):
        if status != "done":
            why = f": {record['failure']['message']}" if record and record["failure"] else ""
            console.print(f"  {status}: {name}{why}", markup=False)
    return failures
