"""One run from top to bottom: plan, claim, find, execute, publish, record.

Before: a command composed its overrides to configurations (`config/compose.py`), refused what cannot work
(`pipeline/prepare.py`) and let Hydra's launcher call `JobFunction` once a run, in whatever process, which calls
`perform`.

A run has no state but its files. What stands in the store is done, what is claimed is waited for, the rest is made,
each artefact once among all processes. So a run that is killed anywhere, and given again, goes on.
"""

import json
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from rich.markup import escape

from paribus.checks import check_encoding
from paribus.config.groups.execution import SweepConfig
from paribus.config.identity import to_plain
from paribus.config.schema import RunConfig
from paribus.config.units import format_duration
from paribus.engine.gpus import VISIBLE
from paribus.engine.local import check_engine
from paribus.engine.processes import interrupt, on_stop
from paribus.errors import ConfigurationError, DataError, ParibusError, classify, is_full_disk
from paribus.pipeline.devices import Devices, check_devices, reserve_gpus
from paribus.pipeline.display import Display, open_console
from paribus.pipeline.execute import execute
from paribus.pipeline.graph import Node, build_graph, changed_files, facts, few_documents, named, needed_for, to_make
from paribus.pipeline.prepared import headed_name, sweep_of
from paribus.pipeline.recorder import RunRecord, is_done
from paribus.pipeline.records import RETRIED, Failure, stage_log
from paribus.pipeline.results import made_with
from paribus.pipeline.root import OutputRoot, run_id
from paribus.pipeline.standings import announce, show_standings
from paribus.pipeline.streams import guard_streams
from paribus.store import files
from paribus.store.artifacts import Artifact, Store
from paribus.store.claims import Claim, acquire, describe, read_holder
from paribus.store.files import MADE_OF, METRICS, FileDigests, State, read_object_if_any, was_written
from paribus.store.provenance import Code, loaded_code, provenance
from paribus.tracking.events import TextPoint
from paribus.tracking.sync import Follower
from paribus.training.start import check_tokens

SECONDS_BETWEEN_LOOKS = 0.5
Result = TypeVar("Result")
SECONDS_UNTIL_ASKED_AGAIN = (1.0, 4.0, 15.0, 40.0)
JOBLIB = "joblib"
"""Launcher that kills all of its processes as soon as one of them, or the command, raises or dies."""


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
    recorder = RunRecord(config, nodes, root)
    announce(root, config, display)
    follower = Follower(recorder.directory, config.tracking, root.path)
    try:
        wanted = needed_for(nodes, config.until)
        runner = StageRunner(root, RunListener(display, recorder.directory, recorder), code, imports_of(wanted, root))
        failure = check_devices(config, wanted) or run_nodes(wanted, runner)
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
    stage, directory = "", stages.listener.directory
    try:
        left = to_make(nodes, stages.root.store)
        for node in nodes.values():
            stage = node.name
            made = stages.ensure(node, whole=stage in left)
            # Tokens that training would refuse, before a corpus is encoded with them.
            if stage == "vocabulary" and "training" in left and (problems := check_tokens(node.config, made.path)):
                raise ConfigurationError(*problems)
            compared = stage == "corpus" and stage in left and node.config.sweep and node.config.sweep.jobs > 1
            if compared and (told := few_documents(node.config, made)):
                stages.listener.show(f"[yellow]{escape(told)}[/yellow]")
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
    """Listener of a run's stages, one after the other: shows them, and keeps their numbers.

    The numbers of a stage belong to its artefact, so that a run which finds it made has them too.
    """

    display: Display
    directory: Path
    """Of the logs of stages."""
    recorder: RunRecord | None = None
    """The record of the run; None where artefacts are made outside a run."""
    metrics: list[tuple[str, float, int]] = field(default_factory=list)
    """Of the stage that runs."""

    def progress(self, done: float, total: float, *, unit: str, doing: str, detail: str = "") -> None:
        """Show the running stage's progress."""
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
        path = artifact.path / METRICS
        # Those of a first training are also the first ones of the training that goes on from it.
        if path.is_file() and node.stage.stored_as is None:
            self.recorder.published(_read_points(path))


@dataclass(frozen=True)
class StageRunner:
    """Ensures single artefacts."""

    root: OutputRoot
    listener: RunListener
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
                self.listener.show(f"[dim]{named(node.name)} {how:<14} {node.key[:12]}[/dim]")
                self.listener.record(node, found, "cached", 0.0)
                return found
            if not waiting:
                holder = describe(read_holder(store.claim_path(*node.place)))
                self.listener.show(f"[dim]{named(node.name)} is being made by {holder}: waiting[/dim]")
            waiting = True
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def _found(self, node: Node, *, whole: bool) -> Artifact | None:
        found = self.root.store.find(*node.place)
        return None if found is not None and whole and not found.whole else found

    def _make(self, node: Node, held: Claim, *, last: bool) -> Artifact:
        """Execute a stage and publish what it made, or leave a note of why it failed and nothing else."""
        display = self.listener.display
        refuse_repetition(node, self.root)
        if told := self.root.store.set_aside(held, *node.place):
            self.listener.show(f"[yellow]{named(node.name)} damaged: {escape(told)}; made again[/yellow]")
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
            "code": self.code.to_json(),
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
                later=self.later,
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


def _read_points(path: Path) -> Iterator[TextPoint]:
    for line in path.read_text(encoding="utf-8").splitlines():
        values = json.loads(line)
        step = values.pop("step")
        yield from ((name, float(value), step) for name, value in values.items())


@dataclass(frozen=True)
class SourceFiles:
    """The files of a stage. What is told of them is a sentence that can go on, and empty where nothing is wrong."""

    node: Node
    root: OutputRoot

    @property
    def mark(self) -> Path:
        """States of the files when the attempt in hand began; gone once they were found untouched after it."""
        return self.root.store.reading(*self.node.place)

    @contextmanager
    def reading(self, held: Claim, say: Callable[[str], None]) -> Iterator[None]:
        """While the stage reads the files: DataError where they are, or were meanwhile, not those of its key.

        However the stage ends, its work stays only if the files are found untouched; whether those of an attempt that
        was killed are, the next one sees, and `say`s if it begins anew.
        """
        changed, before = _patiently(self._look)
        if changed:
            raise DataError(f"{changed} since the command began; give it again when nobody writes there")
        if self.mark.exists() and (written := _written(read_object_if_any(self.mark).get("states", {}), before)):
            self._discard_work()
            doubt = f"{written} changed since an attempt began that was killed"
            say(f"[yellow]{named(self.node.name)} begun anew: {escape(doubt)}[/yellow]")
        if before:
            self.mark.parent.mkdir(parents=True, exist_ok=True)
            files.write_json(self.mark, {"states": before})
        try:
            yield
        except BaseException:
            with suppress(OSError, DataError):  # of what is away nothing is known: the mark stays, the next one looks
                if held.held() and self.touched(before):
                    self._discard_work()
            raise
        if touched := _patiently(lambda: self.touched(before)):
            self._discard_work()
            raise DataError(
                f"{touched} while the stage {self.node.name} read it, so nothing is published; give the command again "
                "when nobody writes there"
            )

    def touched(self, before: Mapping[str, State]) -> str:
        """Whether contents changed since the files were as `before`, also if they are back; if not, forgets the mark.

        DataError where a file is gone.
        """
        changed, now = self._look()
        written = _written(before, now)
        if changed or written:
            return changed or f"{written} changed"
        self.mark.unlink(missing_ok=True)
        return ""

    def _look(self) -> tuple[str, dict[str, State]]:
        """Whether contents are no longer those of the key, and the states of all files; each is looked at once."""
        digests = FileDigests(self.root.cache)
        names = changed_files(self.node, digests)
        return f"{', '.join(names)} changed" if names else "", digests.states

    def _discard_work(self) -> None:
        self.root.store.discard_work(*self.node.place)


def _written(before: Mapping[str, State], now: Mapping[str, State]) -> str:
    """Names of the files that were written to, or replaced, or are there only in one."""
    paths = sorted(before.keys() | now.keys())
    both = before.keys() & now.keys()
    return ", ".join(Path(path).name for path in paths if path not in both or was_written(before[path], now[path]))


def _patiently(look: Callable[[], Result]) -> Result:
    """What `look` gives, asked again where a file server does not answer: a stage's hours hang on it."""
    for seconds in SECONDS_UNTIL_ASKED_AGAIN:
        try:
            return look()
        except OSError:
            time.sleep(seconds)
    return look()


# The notes that failed stages leave in the output root, and what of that is tried again.
#
# A command tries a stage once for all runs that share it: the note says in which command it failed and why. What may be
# gone at the next attempt, a file server that does not answer say, is tried `retries` times before it is noted.
class FailedBeforeError(ParibusError):
    """A stage is not tried, because it failed for an earlier run of the same command; `failure` is what it left."""

    def __init__(self, failure: Mapping[str, Any]) -> None:
        super().__init__(failure["message"])
        self.failure = failure


def refuse_repetition(node: Node, root: OutputRoot) -> None:
    """RepeatedFailureError for a stage that failed in this very command: it would fail again for every run."""
    failure = failed_before(node, root)
    if failure is not None:
        raise FailedBeforeError(failure)


def failed_before(node: Node, root: OutputRoot) -> dict[str, Any] | None:
    """The failure of a stage that this command does not try again."""
    path = root.failure(node)
    if not path.is_file() or node.config.sweep is None:
        return None
    failure = {"class": "interrupted", "message": "", **read_object_if_any(path)}
    ended = failure.get("invocation") == node.config.sweep.invocation and failure["class"] != "interrupted"
    return failure if ended else None


def worth_another_try(error: BaseException) -> bool:
    """Whether another attempt may do better. A full disk stays full until somebody makes room."""
    return classify(error)["class"] in RETRIED and not is_full_disk(error)


def note_failure(node: Node, root: OutputRoot, error: BaseException) -> None:
    """Leave word of a failed stage for the other runs of its command."""
    invocation = node.config.sweep.invocation if node.config.sweep else None
    path = root.failure(node)
    with suppress(OSError):  # the failure itself may be a full disk; it is told all the same
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_json(path, {**classify(error), "stage": node.name, "invocation": invocation})


def note_attempt(node: Node, store: Store, provenance: Mapping[str, Any]) -> list[dict[str, str]]:
    """Note what the attempt that begins is made with; what others were made with whose work it goes on with.

    Only who holds the claim of the artefact may call it.
    """
    noted, here = store.attempts(*node.place), made_with(provenance)
    goes_on = any(store.work(*node.place).iterdir())
    before = read_object_if_any(noted).get("attempts", []) if goes_on else []
    files.write_json(noted, {"attempts": [*before, *([] if here in before else [here])]})
    return [attempt for attempt in before if attempt != here]


def refuse_changed(sweep: SweepConfig | None, identifier: str) -> None:
    """ConfigurationError where the command meant another run than the one that its files make of its overrides now."""
    if sweep and sweep.run not in (None, identifier):
        raise ConfigurationError(
            f"this job was to be run {sweep.run}: a file of the configuration, or one that it names, changed since the "
            "command began, so nothing is run; give the command again"
        )


def why_stopped(root: OutputRoot, sweep: SweepConfig | None) -> str | None:
    """Return the reason to start no more runs of a command, None if there is none."""
    with suppress(FileNotFoundError):
        return None if sweep is None else _stop_mark(root, sweep).read_text(encoding="utf-8")
    return None


def stop(root: OutputRoot, sweep: SweepConfig, why: str) -> None:
    """Let no more runs of a command start."""
    files.write_text(_stop_mark(root, sweep), why)


def allow_start(root: OutputRoot, sweep: SweepConfig) -> None:
    """Forget why runs were not to start, so that the command leaves nothing behind."""
    _stop_mark(root, sweep).unlink(missing_ok=True)


def leave_note(config: RunConfig, failure: Mapping[str, Any]) -> None:
    """Tell the command, which may not see this terminal, why its run did not begin, or why its end is not recorded."""
    if config.sweep is not None and config.sweep.run is not None:
        note = OutputRoot.of(config).refusal(config.sweep.run)
        with suppress(OSError):
            note.parent.mkdir(parents=True, exist_ok=True)
            files.write_json(note, failure)


def _stop_mark(root: OutputRoot, sweep: SweepConfig) -> Path:
    return root.sweep(sweep.id) / f"stopped-{sweep.invocation}"


def check(config: RunConfig, targets: Sequence[str]) -> None:
    """ConfigurationError where this machine cannot make what is missing of what `targets` need; DataError for files."""
    root = OutputRoot.of(config)
    nodes = build_graph(config, root.cache, targets=targets)
    found = [*check_engine(config.engine), *Devices().check(config, nodes)]
    if any(root.store.find(*nodes[name].place) is None for name in ("vocabulary", "tokens") if name in nodes):
        found += check_encoding(config)
    if found:
        raise ConfigurationError(*found)


def note_made_of(directory: Path, made: Iterable[Artifact]) -> None:
    """Write into the directory of a report what it was made of: while it is there, `paribus clean` leaves that."""
    places = sorted({(one.stage, one.key) for one in made})
    directory.mkdir(parents=True, exist_ok=True)
    files.write_json(directory / MADE_OF, {"artefacts": [{"stage": stage, "key": key} for stage, key in places]})


def make(config: RunConfig, targets: Sequence[str], *, asked_by: str) -> dict[str, Artifact]:
    """Artefacts by stage of everything `targets` need; progress goes to standard error.

    Logs of stages go into directory `asked_by` of the output root.
    """
    root = OutputRoot.of(config)
    nodes = build_graph(config, root.cache, targets=targets)
    runner = StageRunner(root, RunListener(Display(open_console(stderr=True)), root.path / asked_by))
    found: dict[str, Artifact] = {}
    for name, node in nodes.items():
        existing = root.store.find(*node.place)
        found[name] = existing if existing is not None else runner.ensure(node)
    return found


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
                stop(OutputRoot.of(config), sweep, "another run has failed, and on_failure=stop")
        except Exception as error:
            told = classify(error)
            display.message(f"  [red]{told['class']}[/red]: {escape(told['message'])}")
            leave_note(config, {**told, "full_disk": is_full_disk(error)})


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
