"""A command's runs from start to end: check everything, let Hydra's launcher run the jobs, print how they ended.

A sweep has no state of its own. What a launcher lost is found by its record and its claim, and launched again.
"""

import multiprocessing
import multiprocessing.process
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial

from rich.console import Console

from paribus.checks import checked_run, compose_command
from paribus.commands.report import show_table
from paribus.commands.status import is_made, show_failures, show_unfinished, stopped_early, typed_command
from paribus.config.arguments import Command
from paribus.config.groups.execution import SweepConfig
from paribus.config.hydra_session import run_with_hydra
from paribus.config.identity import to_plain
from paribus.config.metrics import main_scores, score_texts
from paribus.config.units import format_duration
from paribus.engine.processes import interrupt, on_stop
from paribus.errors import classify, is_full_disk
from paribus.pipeline.failures import RETRIED
from paribus.pipeline.graph import EVALUATION, FINETUNING
from paribus.pipeline.prepare import describe_sweep, fetch_prompt_examples, prepare_runs
from paribus.pipeline.prepared import PreparedRun, labels, tag_origin, undeclared, write_sweep
from paribus.pipeline.recorder import LOST, mark_lost, read_state
from paribus.pipeline.records import read_sweep
from paribus.pipeline.root import OutputRoot
from paribus.pipeline.run import JOBLIB, JobFunction
from paribus.pipeline.standings import watched, write_stages
from paribus.planning.plan import remarks_on_judgement, remarks_on_orders
from paribus.planning.show import refuse_over_limit
from paribus.store import files
from paribus.store.claims import describe, machine, read_holder
from paribus.store.provenance import loaded_code
from paribus.tracking.events import FILE_NAME, SCHEDULED, EventLog
from paribus.tracking.sync import finish_all

EXIT_FAILED, EXIT_INTERRUPTED = 1, 130
SECONDS_BETWEEN_LOOKS = 0.5


def run_command(command: Command, console: Console) -> int:
    """Run a command's jobs; 0 when every run is done, or all of it until a stage, 130 when stopped by a signal, else 1.

    FairnessError, before anything runs, where the runs' table would be refused; ConfigurationError where they would
    take more than `plan.max_device_hours`.
    """
    loaded_code()
    started = time.time()
    composition = compose_command(command)
    fetch_prompt_examples(
        composition.jobs, partial(console.print, style="yellow", markup=False, highlight=False, soft_wrap=True)
    )
    runs = prepare_runs(composition)
    if unfair := undeclared(runs):
        raise unfair
    refuse_over_limit(runs, partial(console.print, markup=False, soft_wrap=True))
    sweep = describe_sweep(composition, runs)
    config = runs[0].job.config
    root = OutputRoot.of(config)
    failures: list[str] = []
    pending = [run for run in runs if not is_made(run, root)]
    if not pending:
        # The last sweep of its root, unless that may only be read, which keeps nothing from being shown.
        with suppress(OSError):
            write_sweep(root, sweep, command, runs)
        _show_done(runs, console)
    else:
        root.require_writable()
        for remark in (*remarks_on_judgement(runs, root), *remarks_on_orders(runs, root)):
            console.print(remark, style="yellow", markup=False, highlight=False, soft_wrap=True)
        write_sweep(root, sweep, command, runs)
        write_stages(root, sweep, runs)
        with _shown_sweep(sweep, runs, root, failures, console) if composition.multirun else nullcontext():
            stopped = _Launches(command, runs, sweep, root, console).carry_out(pending)
            failures += summarize(runs, root, console, started)
            failures += ["interrupted"] if stopped else []
    show_unfinished(command, composition, runs, console)
    if not failures and not stopped_early(runs, root):
        if composition.multirun:
            show_table(composition, runs, console)
        elif config.until is None:
            _show_scores(command, runs[0], console)
    return EXIT_INTERRUPTED if "interrupted" in failures else EXIT_FAILED if failures else 0


def _show_scores(command: Command, run: PreparedRun, console: Console) -> None:
    """Print the main scores of a single run, and the command of its report."""
    store = OutputRoot.of(run.job.config).store
    nodes = [run.nodes[stage] for stage in (EVALUATION, FINETUNING) if stage in run.nodes]
    results = [artifact.record()["result"] for node in nodes if (artifact := store.find(*node.place)) is not None]
    scores = {name: value for result in results for name, value in main_scores(result.get("metrics", {})).items()}
    if scores:
        console.print(" · ".join(score_texts(scores)), markup=False, soft_wrap=True)
    report = typed_command(command, multirun=False, verb="report")
    console.print(f"its report:\n  {report}", markup=False, soft_wrap=True)


def _show_done(runs: Sequence[PreparedRun], console: Console) -> None:
    """Print that nothing is left to do, and the identifiers by which other commands take the runs."""
    noun = "run" if len(runs) == 1 else "runs"
    console.print(f"{len(runs)} of {len(runs)} {noun} done{_until(runs)} already")
    for name, run in zip(labels(runs), runs, strict=True):
        console.print(f"  {run.run_id}  {name}", markup=False, soft_wrap=True)


@dataclass
class _Launches:
    """Launches the jobs of a command until none is left that another launch could help."""

    command: Command
    runs: Sequence[PreparedRun]
    sweep: SweepConfig
    root: OutputRoot
    console: Console

    def carry_out(self, pending: Sequence[PreparedRun]) -> bool:
        """Launch runs until no launch helps; True if the user stopped it."""
        launches: Counter[str] = Counter()
        try:
            while pending:
                message = self._launch(pending)
                elsewhere = self._await_others(pending)
                launches.update(run.run_id for run in pending if run.run_id not in elsewhere)
                pending = [run for run in pending if self._is_to_launch(run, message, launches[run.run_id], elsewhere)]
        except KeyboardInterrupt:
            self.console.print("[red]stopped[/red]: give the same command again to carry on")
            return True
        finally:
            self.root.stop_mark(self.sweep).unlink(missing_ok=True)
        return False

    def _launch(self, runs: Sequence[PreparedRun]) -> str | None:
        """Launch runs; return the launcher's message of jobs that it lost, None when it lost none."""
        numbers = {run.run_id: number for number, run in enumerate(self.runs, start=1)}
        jobs = [[*run.job.overrides, self._sweep_override(run.run_id, numbers[run.run_id])] for run in runs]
        shown = {name: self.root.run(run.run_id) for name, run in zip(labels(runs), runs, strict=True)}
        try:
            stopping = self._jobs_end_first(runs) if self.sweep.launcher == JOBLIB else nullcontext()
            with stopping, watched(self.sweep.launcher, shown, self.console):
                run_with_hydra(self.command, jobs, checked_run, JobFunction(loaded_code()))
        except Exception as error:  # whatever a launcher raises for a job that died
            first = str(error).strip().partition("\n")[0][:300]
            message = f"launcher {self.sweep.launcher}: {type(error).__name__}: {first}"
            self.console.print(message, style="yellow", markup=False, soft_wrap=True)
            return message
        return None

    @contextmanager
    def _jobs_end_first(self, runs: Sequence[PreparedRun]) -> Iterator[None]:
        """Pass signals on to the processes that execute runs, so that trainings are saved, and wait for them."""
        received: list[int] = []
        claims = [self.root.run_claim(run.run_id) for run in runs]

        def executing() -> list[multiprocessing.process.BaseProcess]:
            holders = [read_holder(claim) or {} for claim in claims]
            here = {holder.get("pid") for holder in holders if holder.get("machine") == machine()}
            return [process for process in multiprocessing.active_children() if process.pid in here]

        def pass_on(number: int, frame: object) -> None:
            received.append(number)
            with suppress(OSError):
                files.write_text(self.root.stop_mark(self.sweep), "the command was stopped")
            for process in executing():
                process.terminate()
            leave_if_idle(number, frame)
            signal.setitimer(signal.ITIMER_REAL, SECONDS_BETWEEN_LOOKS, SECONDS_BETWEEN_LOOKS)

        def leave_if_idle(number: int, frame: object) -> None:
            if not executing():
                raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, leave_if_idle)
        on_stop(pass_on)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            on_stop(interrupt)
            if received:
                raise KeyboardInterrupt

    def _sweep_override(self, run_id: str, number: int) -> str:
        sweep = self.sweep
        factors = ",".join(f"'{factor}'" for factor in sweep.factors)
        names = f"id:'{sweep.id}',name:'{sweep.name}',invocation:'{sweep.invocation}',launcher:'{sweep.launcher}'"
        return f"sweep={{{names},jobs:{sweep.jobs},number:{number},run:'{run_id}',factors:[{factors}]}}"

    def _await_others(self, runs: Sequence[PreparedRun]) -> set[str]:
        """Wait until no other process runs one of the runs; return the identifiers of those that one ran."""
        elsewhere: set[str] = set()
        for name, run in zip(labels(runs), runs, strict=True):
            while (state := read_state(self.root, run)).holder is not None:
                if run.run_id not in elsewhere:
                    self.console.print(f"waiting for {name}, which {describe(state.holder)} runs", markup=False)
                    elsewhere.add(run.run_id)
                time.sleep(SECONDS_BETWEEN_LOOKS)
        return elsewhere

    def _is_to_launch(self, run: PreparedRun, message: str | None, launches: int, elsewhere: set[str]) -> bool:
        """True if a run should be launched again: it was lost, never begun, or another process did not finish it."""
        if is_made(run, self.root):
            return False
        state, config = read_state(self.root, run), run.job.config
        if state.status == LOST:
            try:
                mark_lost(self.root, run.run_id, message)
            except OSError as error:
                if not is_full_disk(error):
                    raise
                # Nothing else would have room either.
                self.console.print(classify(error)["message"], style="yellow", markup=False, soft_wrap=True)
                return False
        begun = (state.record or {}).get("invocation") == self.sweep.invocation
        helps = state.status == LOST and not state.full_disk
        if message is not None:  # the launcher lost jobs
            helps = helps or state.status == "interrupted" or not begun
        if run.run_id in elsewhere:
            helps = state.failure is None or state.failure.failure_class in RETRIED
        return helps and launches <= config.retries and config.on_failure != "stop"


@contextmanager
def _shown_sweep(
    sweep: SweepConfig, runs: Sequence[PreparedRun], root: OutputRoot, failures: list[str], console: Console
) -> Iterator[None]:
    """Log the sweep in the block, so that the tracker shows its runs, and send at the end what the tracker lacks."""
    config, path = runs[0].job.config, root.sweep(sweep.id) / FILE_NAME
    with EventLog(path) as events:
        events.start(sweep.id, sweep.name, {"id": sweep.id, "name": sweep.name}, to_plain(config.tracking))
        tag_origin(events, read_sweep(path.parent))
        events.parameter("factors", ", ".join(sweep.factors))
        events.parameter("runs", sweep.jobs)
        yield
        ended = SCHEDULED if stopped_early(runs, root) else "FINISHED"
        events.end("KILLED" if "interrupted" in failures else "FAILED" if failures else ended)
    finished = [root.run(run.run_id) for run in runs if read_state(root, run).holder is None]
    if lacking := finish_all([path.parent, *finished], config.tracking, root.path):
        console.print(lacking, style="yellow", markup=False, soft_wrap=True)


def summarize(runs: Sequence[PreparedRun], root: OutputRoot, console: Console, started: float) -> list[str]:
    """Print how the runs of a command ended; return the failure classes of those that are not done."""
    named = zip(labels(runs), runs, strict=True)
    failed = {name: read_state(root, run) for name, run in named if not is_made(run, root)}
    noun = "run" if len(runs) == 1 else "runs"
    done = f"{len(runs) - len(failed)} of {len(runs)} {noun} done{_until(runs)}"
    console.print(f"{done} in {format_duration(time.time() - started)}")
    show_failures(failed, console)
    return [state.failure.failure_class if state.failure else state.status for state in failed.values()]


def _until(runs: Sequence[PreparedRun]) -> str:
    """Stage after which the runs of a command end, where that is not the last."""
    until = runs[0].job.config.until
    return "" if until is None else f" up to {until}"
