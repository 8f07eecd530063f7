"""One run of a command, in whatever process the launcher put it."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.markup import escape

from paribus.config.groups.execution import SweepConfig
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError, ParibusError, classify, is_full_disk
from paribus.pipeline.graph import Node, build_graph
from paribus.pipeline.making.devices import HERE, Devices
from paribus.pipeline.making.runner import run_nodes
from paribus.pipeline.output_root import OutputRoot, run_id
from paribus.pipeline.prepare import run_name
from paribus.pipeline.record.failure import Failure
from paribus.pipeline.record.recorder import Recorder
from paribus.pipeline.record.run_state import is_done
from paribus.pipeline.show.display import Display, open_console
from paribus.pipeline.show.remaining import announce
from paribus.store import atomic
from paribus.store.claim import acquire, describe, read_holder
from paribus.store.code import Code, loaded_code
from paribus.tracking.follower import Follower


@dataclass(frozen=True)
class JobFunction:
    """What a Hydra launcher calls once a job. It records failures and never raises them, so one run stops no other.

    It holds nothing of the process that made it but the digests of its code, because launchers send it to others.
    """

    code: Code

    def __call__(self, config: RunConfig) -> None:
        """Run one configuration; KeyboardInterrupt when the user stopped it, which stops the sweep."""
        sweep = config.sweep
        # Jobs that run at once share a terminal: each line says whose it is.
        display = Display(open_console(), str(sweep.number) if sweep and sweep.launcher != "basic" else "")
        try:
            perform(config, display, self.code)
        except Exception as error:
            failure = classify(error)
            display.message(f"  [red]{failure['class']}[/red]: {escape(failure['message'])}")
            _leave_note(config, {**failure, "full_disk": is_full_disk(error)})


def _leave_note(config: RunConfig, failure: Mapping[str, Any]) -> None:
    """Tell the command, which may not see this terminal, why its run did not begin, or why its end is not recorded."""
    if config.sweep is not None and config.sweep.run is not None:
        note = OutputRoot.of(config).refusal(config.sweep.run)
        with suppress(OSError):
            note.parent.mkdir(parents=True, exist_ok=True)
            atomic.write_json(note, failure)


def perform(config: RunConfig, display: Display, code: Code) -> None:
    """Make what a run lacks and record how it went; a run that another process has in hand is left to it.

    Its stages are made with the files of paribus that the command had, and with the packages of this process.
    """
    code = replace(code, packages=loaded_code().packages)
    root = OutputRoot.of(config)
    nodes = build_graph(config, root.cache)
    identifier, sweep = run_id(nodes), config.sweep
    title = f"run {sweep.number} of {sweep.jobs}" if sweep else "run"
    display.message(f"[bold]{title}[/bold]  {run_name(config)}  [dim]{identifier}[/dim]")
    if sweep and sweep.run not in (None, identifier):
        raise ConfigurationError(
            f"this job was to be run {sweep.run}: a file of the configuration, or one that it names, changed since the "
            "command began, so nothing is run; give the command again"
        )
    root.refusal(identifier).unlink(missing_ok=True)
    if sweep and _stop_mark(root, sweep).exists():
        display.message("  not started: another run has failed, and on_failure=stop")
        return
    held = acquire(root.run_claim(identifier), config.engine.lease_seconds)
    if held is None:
        holder = describe(read_holder(root.run_claim(identifier)))
        display.message(f"  [dim]in the hands of {holder}: left to it[/dim]")
        return
    with held:
        if is_done(identifier, nodes, root):
            display.message("  [dim]done already[/dim]")
            return
        failure = _record(config, nodes, root, display, code)
    if failure is not None and sweep and config.on_failure == "stop":
        atomic.write_text(_stop_mark(root, sweep), failure.shown)
    if failure is not None and failure.failure_class == "interrupted":
        raise KeyboardInterrupt


def _unfit(config: RunConfig, nodes: dict[str, Node]) -> Failure | None:
    """What this machine lacks, unless whoever launched the job judged it: the command, on this very machine."""
    if config.sweep is not None and config.sweep.launcher in HERE:
        return None
    try:
        found = [f"{path}: {message}" for path, message in Devices().problems(config, nodes)]
    except ParibusError as error:
        return Failure(error.failure_class, str(error))
    return Failure("configuration", "; ".join(found)) if found else None


def allow_start(root: OutputRoot, sweep: SweepConfig) -> None:
    """Forget that a run of this command has failed, so that the command leaves nothing behind."""
    _stop_mark(root, sweep).unlink(missing_ok=True)


def _stop_mark(root: OutputRoot, sweep: SweepConfig) -> Path:
    """There where no more runs of a command are to be started."""
    return root.sweep(sweep.id) / f"stopped-{sweep.invocation}"


def _record(
    config: RunConfig, nodes: dict[str, Node], root: OutputRoot, display: Display, code: Code
) -> Failure | None:
    recorder = Recorder(config, nodes, root)
    announce(root, config, display)
    follower = Follower(recorder.directory, config.tracking, root.path)
    try:
        failure = _unfit(config, nodes) or run_nodes(nodes, root, display, recorder, code)
    except SystemExit:
        reason = "its launcher stopped it, for the end of its time or for other work; the same command carries on"
        recorder.finish(Failure("interrupted", reason))
        raise
    recorder.finish(failure)
    if failure is not None and not failure.repeated:
        display.message(f"  [red]{failure.failure_class}[/red]: {escape(failure.message)}")
    if failure is None or failure.failure_class != "interrupted":
        display.message(f"  [dim]{escape(follower.finish(config.tracking.patience))}[/dim]")
    return failure
