"""One run from top to bottom: plan, claim, find, execute, publish, record.

Before: a command composed its overrides to configurations (`config/compose.py`), refused what cannot work
(`pipeline/prepare.py`) and let Hydra's launcher call `JobFunction` once a run, in whatever process, which calls
`perform`.

A run has no state but its files. What stands in the store is done, what is claimed is waited for, and all else is made,
each artefact once among all processes. So a run that is killed anywhere, and given again, goes on.
"""

import json
import os
import signal
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.markup import escape

from paribus.checks import check_encoding
from paribus.config.identity import to_plain
from paribus.config.schema import RunConfig
from paribus.config.units import format_duration
from paribus.engine.gpus import VISIBLE
from paribus.engine.local import check_engine
from paribus.engine.processes import interrupt, on_stop
from paribus.errors import ConfigurationError, classify, is_full_disk
from paribus.pipeline.devices import Devices, check_devices, reserve_gpus
from paribus.pipeline.display import Display, open_console
from paribus.pipeline.execute import execute
from paribus.pipeline.failures import (
    FailedBeforeError,
    Failure,
    failed_before,
    leave_note,
    note_failure,
    stage_log,
    why_stopped,
    worth_another_try,
)
from paribus.pipeline.graph import Node, build_graph, facts, few_documents, named, needed_for, to_make
from paribus.pipeline.prepared import listed_name, own_name, sweep_of
from paribus.pipeline.recorder import RunRecord, is_done
from paribus.pipeline.records import read_metrics
from paribus.pipeline.results import note_attempt
from paribus.pipeline.root import OutputRoot, run_id
from paribus.pipeline.source_files import SourceFiles
from paribus.pipeline.standings import announce, show_standings
from paribus.pipeline.streams import guard_streams
from paribus.store import files
from paribus.store.artifacts import Artifact
from paribus.store.claims import Claim, acquire, describe, read_holder
from paribus.store.files import MADE_OF, METRICS
from paribus.store.provenance import Code, loaded_code, provenance
from paribus.tracking.sync import Follower
from paribus.training.start import check_tokens

SECONDS_BETWEEN_LOOKS = 0.5
JOBLIB = "joblib"
"""Launcher that kills all of its processes as soon as one of them, or the command, raises or dies."""


def perform(config: RunConfig, display: Display, code: Code) -> Failure | None:
    """Make what a run lacks and record how it went; a run that another process makes is left to it.

    Its stages are made with the files of paribus that the command had, and with the packages of this process.
    """
    root, sweep = OutputRoot.of(config), config.sweep
    # Plan: the key of every artefact follows from the configuration and the files that it names.
    nodes = build_graph(config, root.cache)
    identifier = run_id(nodes)
    title = f"run {sweep.number} of {sweep.jobs}" if sweep else "run"
    given = sweep_of(config, root)
    names = "  ".join(dict.fromkeys(name(config, identifier, given) for name in (listed_name, own_name)))
    display.message(f"[bold]{title}[/bold]  {escape(names)}  [dim]{identifier}[/dim]")
    if sweep and sweep.run not in (None, identifier):
        raise ConfigurationError(
            f"this job was to be run {sweep.run}: a file of the configuration, or one that it names, changed since the "
            "command began, so nothing is run; give the command again"
        )
    root.refusal(identifier).unlink(missing_ok=True)
    # Claim: one process makes a run, however many commands want it.
    claim = root.run_claim(identifier)
    held = acquire(claim, config.engine.lease_seconds)
    if held is None:
        display.message(f"  [dim]left to {describe(read_holder(claim))}, which runs it[/dim]")
        return None
    with held:
        # Read under the claim: whoever stops the command asks the processes that make a run to end.
        if why := why_stopped(root, sweep):
            display.message(f"  not started: {why}")
            return None
        if is_done(identifier, nodes, root, config.until):
            display.message("  [dim]done already[/dim]")
            return None
        return _make_recorded(config, nodes, root, display, replace(code, packages=loaded_code().packages))


def _make_recorded(
    config: RunConfig, nodes: dict[str, Node], root: OutputRoot, display: Display, code: Code
) -> Failure | None:
    """Make the artefacts of a run, or those until a stage; its record and the tracker say how that begins and ends."""
    recorder = RunRecord(config, nodes, root)
    announce(root, config, display)
    follower = Follower(recorder.directory, config.tracking, root.path)
    try:
        required = needed_for(nodes, config.until)
        runner = StageRunner(root, RunListener(display, recorder.directory, recorder), code, imports_of(required, root))
        failure = check_devices(config, required) or run_nodes(required, runner)
    except SystemExit:
        reason = "its launcher stopped it, for the end of its time or for other work; the same command carries on"
        recorder.finish(Failure("interrupted", reason))
        raise
    recorder.finish(failure)
    if failure is not None and not failure.repeated:
        display.message(f"  [red]{failure.failure_class}[/red]: {escape(failure.message)}")
    if failure is None or failure.failure_class != "interrupted":
        outcome = follower.finish(config.tracking.patience)
        # The command says it of the sweep.
        if config.tracking.kind != "none" or config.sweep is None or config.sweep.jobs == 1:
            display.message(f"  [dim]{escape(outcome)}[/dim]")
    if failure is None:
        show_standings(root, config.sweep, display)
    return failure


def imports_of(nodes: dict[str, Node], root: OutputRoot) -> tuple[str, ...]:
    """Modules that the stages compute with whose artefacts the store lacks, in the order in which they are made."""
    missing = to_make(nodes, root.store)
    forked = (node.stage for name, node in nodes.items() if name in missing and not node.stage.online(node.config))
    return tuple(dict.fromkeys(module for stage in forked for module in stage.imports))


def run_nodes(nodes: dict[str, Node], stages: "StageRunner") -> Failure | None:
    """Ensure every artefact of a run, inputs before what needs them; None, or what stopped it."""
    stage, directory = "", stages.listener.directory
    try:
        missing = to_make(nodes, stages.root.store)
        for node in nodes.values():
            stage = node.name
            made = stages.ensure(node, whole=stage in missing)
            # Tokens that training would refuse, before a corpus is encoded with them.
            if stage == "vocabulary" and "training" in missing and (problems := check_tokens(node.config, made.path)):
                raise ConfigurationError(*problems)
            compared = stage == "corpus" and stage in missing and node.config.sweep and node.config.sweep.jobs > 1
            if compared and (warning := few_documents(node.config, made)):
                stages.listener.show(f"[yellow]{escape(warning)}[/yellow]")
    except FailedBeforeError as error:
        stages.listener.show(f"{named(stage)} [red]failed[/red] for an earlier run: not tried again")
        return Failure(error.failure["class"], error.failure["message"], stage, repeated=True)
    except KeyboardInterrupt:
        return Failure("interrupted", "stopped by a signal; give the same command again to carry on", stage)
    except Exception as error:
        with suppress(OSError):
            runner_log = directory / "logs" / "runner.log"
            runner_log.parent.mkdir(exist_ok=True)
            runner_log.write_text(traceback.format_exc(), encoding="utf-8")
        return Failure.of(error, stage, directory)
    return None


@dataclass(frozen=True)
class RunListener:
    """Listener of a run's stages, one after the other: shows them, and keeps their numbers for their artefacts."""

    display: Display
    directory: Path
    """Directory of the run, with the logs of its stages."""
    recorder: RunRecord | None = None
    """The record of the run; None where artefacts are made outside a run."""
    metrics: list[tuple[str, float, int]] = field(default_factory=list)
    """Numbers of the stage that runs."""

    def progress(self, done: float, total: float, *, unit: str, doing: str, detail: str = "") -> None:
        self.display.progress(done, total, unit, doing, detail)

    def metric(self, name: str, value: float, *, step: int) -> None:
        """Keep a number for the artefact and for the run's events."""
        self.metrics.append((name, value, step))
        if self.recorder is not None:
            with suppress(OSError):  # the file server may answer again; what is missing is sent with the artefact
                self.recorder.metric(name, value, step)

    def message(self, text: str) -> None:
        """Show a line of the running stage above its bar."""
        self.show(escape(text))

    def show(self, text: str) -> None:
        """Show a line of the pipeline itself, with its marks, above the bar."""
        self.display.message(f"  {text}")

    def write_metrics(self, output: Path) -> None:
        """Write the numbers of the running stage into its artefact."""
        if self.metrics and not (output / METRICS).exists():
            lines = [{"step": step, name: value} for name, value, step in self.metrics]
            files.write_text(output / METRICS, "".join(json.dumps(line) + "\n" for line in lines))

    def record(self, node: Node, artifact: Artifact, state: str, seconds: float) -> None:
        """Record an artefact, `made` or `cached`, with its numbers, which may differ from those of an earlier one."""
        if self.recorder is None:
            return
        self.recorder.stage(node, artifact, state, seconds)
        # Those of a first training are also the first ones of the training that goes on from it.
        if node.stage.stored_as is None and (artifact.path / METRICS).is_file():
            self.recorder.published(read_metrics(artifact.path))


@dataclass(frozen=True)
class StageRunner:
    """Ensures single artefacts."""

    root: OutputRoot
    listener: RunListener
    code: Code = field(default_factory=loaded_code)
    """Code that the command began with: the child of a stage refuses to be another."""
    preload: tuple[str, ...] = ()
    """Modules that its stages compute with, imported while an earlier one is made."""

    def ensure(self, node: Node, *, whole: bool = False) -> Artifact:
        """The artefact of a node, found, awaited or made, with `retries`; `whole`, also what was pruned of it."""
        retries = node.config.retries
        for retry in range(1, retries + 1):
            try:
                return self._ensure(node, last=False, whole=whole)
            except FailedBeforeError:
                raise
            except Exception as error:
                if not worth_another_try(error) or failed_before(node, self.root):
                    raise
                message = f"[yellow]trying again ({retry} of {retries})[/yellow]: {escape(classify(error)['message'])}"
                self.listener.show(f"{named(node.name)} {message}")
        return self._ensure(node, last=True, whole=whole)

    def _ensure(self, node: Node, *, last: bool, whole: bool) -> Artifact:
        """Find an artefact in the store, or claim it and make it, or wait for whoever has claimed it."""
        store, waiting = self.root.store, False
        while True:
            artifact = self._found(node, whole=whole)
            held = None if artifact is not None else store.claim(*node.place)
            if held is not None:
                with held:
                    # Looked for again: whoever held the claim until now may have published it.
                    artifact = self._found(node, whole=whole)
                    if artifact is None:
                        return self._make(node, held, last=last)
                    waiting = True
            if artifact is not None:
                how = "made by another process" if waiting else "cached"
                self.listener.show(f"[dim]{named(node.name)} {how:<14} {node.key[:12]}[/dim]")
                self.listener.record(node, artifact, "cached", 0.0)
                return artifact
            if not waiting:
                holder = describe(read_holder(store.claim_path(*node.place)))
                self.listener.show(f"[dim]{named(node.name)} is being made by {holder}: waiting[/dim]")
            waiting = True
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def _found(self, node: Node, *, whole: bool) -> Artifact | None:
        artifact = self.root.store.find(*node.place)
        return None if artifact is not None and whole and not artifact.whole else artifact

    def _make(self, node: Node, held: Claim, *, last: bool) -> Artifact:
        """Execute a stage and publish what it made, or leave a note of why it failed and nothing else."""
        display = self.listener.display
        if failure := failed_before(node, self.root):
            raise FailedBeforeError(failure)
        if damage := self.root.store.set_aside(held, *node.place):
            self.listener.show(f"[yellow]{named(node.name)} damaged: {escape(damage)}; made again[/yellow]")
        self.listener.metrics.clear()
        display.start(node.name, "starting")
        started = time.monotonic()
        try:
            with files.naming(self.root.path):
                artifact = self._execute(node, held)
        except BaseException as error:
            # Without the claim, what is there is another's, who went on after this process had been stopped.
            if held.held():
                self.root.store.discard_output(*node.place)
            display.finish(f"  {named(node.name)} [red]failed[/red] ({classify(error)['class']})")
            # A launcher that gives the job up, for the end of its time say, leaves by sys.exit and may begin it again.
            if not isinstance(error, SystemExit) and (last or not worth_another_try(error)):
                note_failure(node, self.root, error)
            raise
        seconds = time.monotonic() - started
        line = f"  {named(node.name)} [green]done[/green] in {format_duration(seconds):<10} [dim]{node.key[:12]}[/dim]"
        display.finish(f"{line}  {escape(facts(node.stage, artifact))}".rstrip())
        self.listener.record(node, artifact, "made", seconds)
        return artifact

    def _execute(self, node: Node, held: Claim) -> Artifact:
        """Run the stage in a process of its own (`fork_server`) on an empty directory, and publish that."""
        store, say = self.root.store, self.listener.show
        output = store.empty_output(held, *node.place)
        inputs = {name: str(store.require(*other.place).path) for name, other in node.inputs.items()}
        job = {
            "stage": node.name,
            "config": to_plain(node.config),
            "inputs": inputs,
            "output": str(output),
            "work": str(store.work(*node.place)),
            "code": vars(self.code),
        }
        origin = provenance()
        log = stage_log(self.listener.directory, node.name)
        # Files outside the store are looked at before and after: what changed in between is of no key.
        sources = SourceFiles(node, self.root)
        with reserve_gpus(node.name, node.config, say) as environment, sources.reading(held, say):
            # Waiting for GPUs of other jobs is no time of the stage.
            began = time.monotonic()
            attempts = note_attempt(node, store, origin)
            result = execute(
                job,
                node.config.engine,
                held,
                log,
                self.listener,
                environment=environment,
                imports=() if node.stage.online(node.config) else node.stage.imports,
                preload=self.preload,
            )
        self.listener.write_metrics(output)
        record: dict[str, Any] = {
            **node.identity,
            "key": node.key,
            "result": result,
            "seconds": time.monotonic() - began,
            **({"gpus": environment[VISIBLE].count(",") + 1} if environment else {}),
            "provenance": origin,
            **({"attempts": attempts} if attempts else {}),
        }
        self.root.failure(node).unlink(missing_ok=True)
        return store.publish(held, *node.place, record)


def check(config: RunConfig, targets: Sequence[str]) -> None:
    """ConfigurationError where this machine cannot make what is missing of what `targets` need; DataError for files."""
    root = OutputRoot.of(config)
    nodes = build_graph(config, root.cache, targets=targets)
    problems = [*check_engine(config.engine), *Devices().check(config, nodes)]
    if any(root.store.find(*nodes[name].place) is None for name in ("vocabulary", "tokens") if name in nodes):
        problems += check_encoding(config)
    if problems:
        raise ConfigurationError(*problems)


def note_made_of(directory: Path, made: Iterable[Artifact]) -> None:
    """Write into the directory of a report what it was made of: while it is there, `paribus clean` leaves that."""
    places = sorted({(artifact.stage, artifact.key) for artifact in made})
    directory.mkdir(parents=True, exist_ok=True)
    files.write_json(directory / MADE_OF, {"artefacts": [{"stage": stage, "key": key} for stage, key in places]})


def make(config: RunConfig, targets: Sequence[str], *, asked_by: str) -> dict[str, Artifact]:
    """Artefacts by stage of all that `targets` need; logs go to `asked_by` of the root, progress to standard error."""
    root = OutputRoot.of(config)
    nodes = build_graph(config, root.cache, targets=targets)
    runner = StageRunner(root, RunListener(Display(open_console(stderr=True)), root.path / asked_by))
    return {name: root.store.find(*node.place) or runner.ensure(node) for name, node in nodes.items()}


@dataclass(frozen=True)
class JobFunction:
    """Performs a run. It records failures and never raises them, so one run stops no other.

    Launchers send it to other processes, so it holds only plain data of the one that made it.
    """

    code: Code
    command: int = field(default_factory=os.getpid)
    """Process of the command."""

    def __call__(self, config: RunConfig) -> None:
        """Run one configuration; KeyboardInterrupt when the user stopped it, which stops the sweep."""
        # With n_jobs=1 joblib runs jobs in the process of the command.
        pooled = config.sweep and config.sweep.launcher == JOBLIB and os.getpid() != self.command
        with _in_a_pool() if pooled else nullcontext():
            self._perform(config)

    def _perform(self, config: RunConfig) -> None:
        guard_streams()
        sweep = config.sweep
        # Jobs that run at once share a terminal: each line says whose it is.
        display = Display(open_console(), str(sweep.number) if sweep and sweep.launcher != "basic" else "")
        try:
            failure = perform(config, display, self.code)
            if failure is not None and failure.failure_class == "interrupted":
                raise KeyboardInterrupt
            if failure is not None and sweep and config.on_failure == "stop":
                files.write_text(OutputRoot.of(config).stop_mark(sweep), "another run has failed, and on_failure=stop")
        except Exception as error:
            failed = classify(error)
            display.message(f"  [red]{failed['class']}[/red]: {escape(failed['message'])}")
            leave_note(config, {**failed, "full_disk": is_full_disk(error)})


@contextmanager
def _in_a_pool() -> Iterator[None]:
    """Let SIGTERM end the job in the block without raising; ignore the other signals, which the command passes on."""
    on_stop(lambda number, frame: None)
    with suppress(KeyboardInterrupt):
        try:
            signal.signal(signal.SIGTERM, interrupt)
            yield
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
