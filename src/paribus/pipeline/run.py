"""One run from top to bottom: plan, claim, find, execute, publish, record.

Before: a command composed its overrides to configurations (`config/compose.py`), refused what cannot work
(`pipeline/prepare.py`) and let Hydra's launcher call `JobFunction` once a run, in whatever process
(`pipeline/job.py`), which calls `perform` here.

A run has no state but its files. What stands in the store is done, what is claimed is waited for, the rest is made,
each artefact once among all processes. So a run that is killed anywhere, and given again, goes on.
"""

import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from rich.markup import escape

from paribus.config.identity import everything
from paribus.config.schema import RunConfig
from paribus.config.validate import Problem, refuse
from paribus.engine.gpus import VISIBLE
from paribus.errors import classify
from paribus.pipeline.graph import Node, build_graph, needed_for, to_make
from paribus.pipeline.invocation import refuse_changed, why_stopped
from paribus.pipeline.making.attempts import note_attempt
from paribus.pipeline.making.devices import unfit
from paribus.pipeline.making.execute import execute
from paribus.pipeline.making.failed_stages import (
    RepeatedFailureError,
    failed_before,
    may_be_gone,
    note_failure,
    refuse_repetition,
)
from paribus.pipeline.making.gpu_slots import gpu_slots
from paribus.pipeline.making.source_files import SourceFiles
from paribus.pipeline.making.telling import Telling
from paribus.pipeline.output_root import OutputRoot, run_id
from paribus.pipeline.record.failure import Failure, stage_log
from paribus.pipeline.record.listed_run import headed_name, sweep_of
from paribus.pipeline.record.recorder import Recorder
from paribus.pipeline.record.run_state import is_done
from paribus.pipeline.show.display import Display, duration
from paribus.pipeline.show.facts import facts, few_documents
from paribus.pipeline.show.remaining import announce
from paribus.pipeline.show.standings import show_standings
from paribus.pipeline.stages import named
from paribus.store import files
from paribus.store.artifacts import Artifact
from paribus.store.claims import Claim, acquire, describe, read_holder
from paribus.store.provenance import Code, loaded_code, provenance
from paribus.tracking.sync import Follower
from paribus.training.start.preflight import token_problems

SECONDS_BETWEEN_LOOKS = 0.5


def perform(config: RunConfig, display: Display, code: Code) -> Failure | None:
    """Make what a run lacks and record how it went; a run that another process has in hand is left to it.

    Its stages are made with the files of paribus that the command had, and with the packages of this process.
    """
    root, sweep = OutputRoot.of(config), config.sweep
    # Plan: the key of every artefact follows from the configuration and the files that it names.
    nodes = build_graph(config, root.cache)
    identifier = run_id(nodes)
    title = f"run {sweep.number} of {sweep.jobs}" if sweep else "run"
    name = headed_name(config, identifier, sweep_of(config, root))
    display.message(f"[bold]{title}[/bold]  {escape(name)}  [dim]{identifier}[/dim]")
    refuse_changed(sweep, identifier)
    root.refusal(identifier).unlink(missing_ok=True)
    # Claim: one process has a run in hand, however many commands want it.
    claim = root.run_claim(identifier)
    held = acquire(claim, config.engine.lease_seconds)
    if held is None:
        display.message(f"  [dim]in the hands of {describe(read_holder(claim))}: left to it[/dim]")
        return None
    with held:
        # Looked for under the claim: whoever stops the command asks those that have a run in hand to end.
        if why := why_stopped(root, sweep):
            display.message(f"  not started: {why}")
            return None
        if is_done(identifier, nodes, root, config.until):
            display.message("  [dim]done already[/dim]")
            return None
        return _recorded(config, nodes, root, display, replace(code, packages=loaded_code().packages))


def _recorded(
    config: RunConfig, nodes: dict[str, Node], root: OutputRoot, display: Display, code: Code
) -> Failure | None:
    """Make the artefacts of a run, or those until a stage; its record and the tracker say how that begins and ends."""
    recorder = Recorder(config, nodes, root)
    announce(root, config, display)
    follower = Follower(recorder.directory, config.tracking, root.path)
    try:
        wanted = needed_for(nodes, config.until)
        runner = StageRunner(root, Telling(display, recorder), code, imports_of(wanted, root))
        failure = unfit(config, wanted) or run_nodes(wanted, runner)
    except SystemExit:
        reason = "its launcher stopped it, for the end of its time or for other work; the same command carries on"
        recorder.finish(Failure("interrupted", reason))
        raise
    recorder.finish(failure)
    if failure is not None and not failure.repeated:
        display.message(f"  [red]{failure.failure_class}[/red]: {escape(failure.message)}")
    if failure is None or failure.failure_class != "interrupted":
        told = follower.finish(config.tracking.patience)
        # The command says it of the sweep.
        if config.tracking.kind != "none" or config.sweep is None or config.sweep.jobs == 1:
            display.message(f"  [dim]{escape(told)}[/dim]")
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
    stage, directory = "", stages.telling.recorder.directory
    try:
        left = to_make(nodes, stages.root.store)
        for node in nodes.values():
            stage = node.name
            made = stages.ensure(node, whole=stage in left)
            if stage == "vocabulary" and "training" in left:
                _refuse_tokens(node.config, made)
            compared = stage == "corpus" and stage in left and node.config.sweep and node.config.sweep.jobs > 1
            if compared and (told := few_documents(node.config, made)):
                stages.telling.display.message(f"  [yellow]{escape(told)}[/yellow]")
    except RepeatedFailureError as error:
        stages.telling.display.message(f"  {named(stage)} [red]failed[/red] for an earlier run: not tried again")
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


def _refuse_tokens(config: RunConfig, vocabulary: Artifact) -> None:
    """ConfigurationError where training would refuse the tokens, before a corpus is encoded with them."""
    if problems := token_problems(config, vocabulary.path):
        raise refuse([Problem(*problem) for problem in problems])


@dataclass(frozen=True)
class StageRunner:
    """Ensures single artefacts."""

    root: OutputRoot
    telling: Telling
    code: Code = field(default_factory=loaded_code)
    """What the command began with: the child of a stage refuses to be another."""
    later: tuple[str, ...] = ()
    """Modules that its stages compute with, imported while an earlier one is made."""

    def ensure(self, node: Node, *, whole: bool = False) -> Artifact:
        """The artefact of a node, found, awaited or made; what may be gone the next time is tried `retries` times.

        With `whole` one that was pruned of what stages read is made again.
        """
        retries = node.config.retries
        for retry in range(1, retries + 1):
            try:
                return self._ensure(node, last=False, whole=whole)
            except RepeatedFailureError:
                raise
            except Exception as error:
                if not may_be_gone(error) or failed_before(node, self.root):
                    raise
                message = f"[yellow]trying again ({retry} of {retries})[/yellow]: {escape(classify(error)['message'])}"
                self.telling.display.message(f"  {named(node.name)} {message}")
        return self._ensure(node, last=True, whole=whole)

    def _ensure(self, node: Node, *, last: bool, whole: bool) -> Artifact:
        """Find an artefact in the store, or claim it and make it, or wait for whoever has claimed it."""
        store, waiting = self.root.store, False
        while True:
            found = self._found(node, whole=whole)
            held = None if found is not None else store.claim(*node.place)
            if held is not None:
                with held:
                    # Looked for again: whoever held the claim until now may have published it.
                    found = self._found(node, whole=whole)
                    if found is None:
                        return self._make(node, held, last=last)
                    waiting = True
            if found is not None:
                how = "made by another process" if waiting else "cached"
                self.telling.display.message(f"  [dim]{named(node.name)} {how:<14} {node.key[:12]}[/dim]")
                self.telling.there(node, found, "cached", 0.0)
                return found
            if not waiting:
                holder = describe(read_holder(store.claim_path(*node.place)))
                self.telling.display.message(f"  [dim]{named(node.name)} is being made by {holder}: waiting[/dim]")
            waiting = True
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def _found(self, node: Node, *, whole: bool) -> Artifact | None:
        found = self.root.store.find(*node.place)
        return None if found is not None and whole and not found.whole else found

    def _make(self, node: Node, held: Claim, *, last: bool) -> Artifact:
        """Execute a stage and publish what it made, or leave a note of why it failed and nothing else."""
        display = self.telling.display
        refuse_repetition(node, self.root)
        if told := self.root.store.set_aside(held, *node.place):
            display.message(f"  [yellow]{named(node.name)} damaged: {escape(told)}; made again[/yellow]")
        self.telling.metrics.clear()
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
            if not isinstance(error, SystemExit) and (last or not may_be_gone(error)):
                note_failure(node, self.root, error)
            raise
        seconds = time.monotonic() - started
        line = f"  {named(node.name)} [green]done[/green] in {duration(seconds):<10} [dim]{node.key[:12]}[/dim]"
        display.finish(f"{line}  {escape(facts(node.stage, artifact))}".rstrip())
        self.telling.there(node, artifact, "made", seconds)
        return artifact

    def _execute(self, node: Node, held: Claim) -> Artifact:
        """Run the stage in a process of its own (`making/child.py`) on an empty directory, and publish that."""
        store, say = self.root.store, self.telling.say
        output = store.empty_output(held, *node.place)
        inputs = {name: str(store.require(*other.place).path) for name, other in node.inputs.items()}
        job = {
            "stage": node.name,
            "config": everything(node.config),
            "inputs": inputs,
            "output": str(output),
            "work": str(store.work(*node.place)),
            "code": self.code.to_json(),
        }
        origin = provenance()
        log = stage_log(self.telling.recorder.directory, node.name)
        # Files outside the store are looked at before and after: what changed in between is of no key.
        sources = SourceFiles(node, self.root)
        with gpu_slots(node.name, node.config, say) as environment, sources.reading(held, say):
            # Waiting for GPUs of other jobs is no time of the stage.
            began = time.monotonic()
            attempts = note_attempt(node, store, origin)
            result = execute(
                job,
                node.config.engine,
                held,
                log,
                self.telling,
                environment=environment,
                imports=() if node.stage.online(node.config) else node.stage.imports,
                later=self.later,
            )
        self.telling.keep_metrics(output)
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
