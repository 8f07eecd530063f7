"""Make what a run lacks, one stage after the other, each artefact once among all processes.

The runner has no state of its own: what exists in the store is done, what is claimed is waited for, the rest is made.
"""

import json
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rich.markup import escape

from paribus.config.identity import everything
from paribus.errors import ParibusError, classify, is_full_disk
from paribus.pipeline.graph import Node
from paribus.pipeline.making.attempts import note_attempt
from paribus.pipeline.making.execute import execute
from paribus.pipeline.making.gpu_slots import gpu_slots
from paribus.pipeline.making.source_files import SourceFiles
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.record.failure import RETRIED, Failure, stage_log
from paribus.pipeline.record.recorder import Recorder
from paribus.pipeline.show.display import Display, duration
from paribus.store import atomic
from paribus.store.artifact import Artifact
from paribus.store.claim import Claim, describe, read_holder
from paribus.store.code import Code, loaded_code
from paribus.store.provenance import provenance
from paribus.tracking.files import read_json
from paribus.tracking.text_axes import Point

SECONDS_BETWEEN_LOOKS = 0.5
METRICS = "metrics.jsonl"


class RepeatedFailureError(ParibusError):
    """A stage is not tried, because it failed for an earlier run of the same command; `failure` is what it left."""

    def __init__(self, failure: Mapping[str, Any]) -> None:
        super().__init__(failure["message"])
        self.failure = failure


class StageRecorder(Protocol):
    """Who keeps what stages say; `Recorder` does so for a run."""

    @property
    def directory(self) -> Path:
        """Where logs of stages go."""

    def metric(self, name: str, value: float, step: int) -> None:
        """A stage reported a number."""

    def published(self, points: Iterable[Point]) -> None:
        """A published artefact has these numbers."""

    def stage(self, node: Node, artifact: Artifact, state: str, seconds: float) -> None:
        """An artefact is there, `made` or `cached`."""


@dataclass
class StageRunner:
    """Ensures single artefacts."""

    root: OutputRoot
    display: Display
    recorder: StageRecorder
    code: Code = field(default_factory=loaded_code)
    """What the command began with: the child of a stage refuses to be another."""
    metrics: list[tuple[str, float, int]] = field(default_factory=list)

    def ensure(self, node: Node) -> Artifact:
        """The artefact of a node, found, awaited or made; what may be gone the next time is tried `retries` times."""
        retries = node.config.retries
        for retry in range(1, retries + 1):
            try:
                return self._ensure(node, last=False)
            except RepeatedFailureError:
                raise
            except Exception as error:
                failure = classify(error)
                if failure["class"] not in RETRIED or is_full_disk(error) or self._failed_before(node):
                    raise
                message = f"[yellow]trying again ({retry} of {retries})[/yellow]: {escape(failure['message'])}"
                self.display.message(f"  {node.name:<12} {message}")
        return self._ensure(node, last=True)

    def _ensure(self, node: Node, *, last: bool) -> Artifact:
        store = self.root.store
        waiting = False
        while True:
            found = store.find(node.name, node.key)
            if found is not None:
                self._found(node, found, waiting)
                return found
            held = store.claim(node.name, node.key)
            if held is not None:
                with held:
                    found = store.find(node.name, node.key)
                    if found is None:
                        return self._make(node, held, last=last)
                    self._found(node, found, waited=True)
                    return found
            if not waiting:
                holder = describe(read_holder(store.claim_path(node.name, node.key)))
                self.display.message(f"  [dim]{node.name:<12} is being made by {holder}: waiting[/dim]")
            waiting = True
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def progress(self, done: float, total: float, unit: str, doing: str, detail: str) -> None:
        """Show the running stage's progress."""
        self.display.progress(done, total, unit, doing, detail)

    def metric(self, name: str, value: float, step: int) -> None:
        """Keep a number for the artefact and for the run's events."""
        self.metrics.append((name, value, step))
        with suppress(OSError):  # the file server may answer again; what is missing is told again with the artefact
            self.recorder.metric(name, value, step)

    def message(self, text: str) -> None:
        """Show a line of the running stage above its bar."""
        self.display.message(f"  {escape(text)}")

    def _found(self, node: Node, artifact: Artifact, waited: bool) -> None:
        how = "made by another process" if waited else "cached"
        self.display.message(f"  [dim]{node.name:<12} {how:<14} {node.key[:12]}[/dim]")
        self.recorder.stage(node, artifact, "cached", 0.0)
        self._replay(artifact)

    def _make(self, node: Node, held: Claim, *, last: bool) -> Artifact:
        self._refuse_repetition(node)
        if told := self.root.store.set_aside(held, node.name, node.key):
            self.display.message(f"  [yellow]{node.name:<12} damaged: {escape(told)}; made again[/yellow]")
        self.metrics.clear()
        self.display.start(node.name, "starting")
        started = time.monotonic()
        try:
            with atomic.naming(self.root.path):
                artifact = self._execute(node, held, started)
        except BaseException as error:
            if held.held():
                self.root.store.discard_output(node.name, node.key)
            self._failed(node, error, last=last)
            raise
        seconds = time.monotonic() - started
        self.display.finish(
            f"  {node.name:<12} [green]done[/green] in {duration(seconds):<10} [dim]{node.key[:12]}[/dim]"
        )
        self.recorder.stage(node, artifact, "made", seconds)
        self._replay(artifact)
        return artifact

    def _execute(self, node: Node, held: Claim, started: float) -> Artifact:
        store = self.root.store
        output = store.empty_output(held, node.name, node.key)
        inputs = {name: str(store.require(name, other.key).path) for name, other in node.inputs.items()}
        job = {
            "stage": node.name,
            "config": everything(node.config),
            "inputs": inputs,
            "output": str(output),
            "work": str(store.work(node.name, node.key)),
            "code": self.code.to_json(),
        }
        origin = provenance()
        log = stage_log(self.recorder.directory, node.name)
        slots = gpu_slots(node.name, node.config, lambda text: self.display.message(f"  {text}"))
        sources = SourceFiles(node, self.root)
        with slots as environment, sources.reading(held, lambda text: self.display.message(f"  {text}")):
            attempts = note_attempt(node, store, origin)
            result = execute(job, node.config.engine, held, log, self, environment=environment)
        self._keep_metrics(output)
        record = {
            **node.identity,
            "key": node.key,
            "result": result,
            "seconds": time.monotonic() - started,
            "provenance": origin,
            **({"attempts": attempts} if attempts else {}),
        }
        self.root.failure(node).unlink(missing_ok=True)
        return store.publish(held, node.name, node.key, record)

    def _keep_metrics(self, output: Path) -> None:
        """Metrics of a stage belong to its artefact, so that a run which finds it cached has them too."""
        if self.metrics and not (output / METRICS).exists():
            lines = [{"step": step, name: value} for name, value, step in self.metrics]
            atomic.write_text(output / METRICS, "".join(json.dumps(line) + "\n" for line in lines))

    def _replay(self, artifact: Artifact) -> None:
        """Tell the numbers of a published artefact, which may differ from those that one of its key had before."""
        path = artifact.path / METRICS
        if path.is_file():
            self.recorder.published(_read_points(path))

    def _refuse_repetition(self, node: Node) -> None:
        """A stage that failed in this very command would fail again for every run that shares it."""
        failure = self._failed_before(node)
        if failure is not None:
            raise RepeatedFailureError(failure)

    def _failed_before(self, node: Node) -> dict[str, Any] | None:
        """The failure of a stage that this command does not try again."""
        path = self.root.failure(node)
        if not path.is_file() or node.config.sweep is None:
            return None
        failure = {"class": "interrupted", "message": "", **read_json(path)}
        ended = failure.get("invocation") == node.config.sweep.invocation and failure["class"] != "interrupted"
        return failure if ended else None

    def _failed(self, node: Node, error: BaseException, *, last: bool) -> None:
        failure = classify(error)
        self.display.finish(f"  {node.name:<12} [red]failed[/red] ({failure['class']})")
        # A launcher that gives the job up, for the end of its time say, leaves by sys.exit and may begin it again.
        again = failure["class"] in RETRIED and not last and not is_full_disk(error)
        if isinstance(error, SystemExit) or again:
            return
        invocation = node.config.sweep.invocation if node.config.sweep else None
        path = self.root.failure(node)
        with suppress(OSError):  # the failure itself may be a full disk; it is told all the same
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic.write_json(path, {**failure, "stage": node.name, "invocation": invocation})


def _read_points(path: Path) -> Iterator[Point]:
    for line in path.read_text(encoding="utf-8").splitlines():
        values = json.loads(line)
        step = values.pop("step")
        yield from ((name, float(value), step) for name, value in values.items())


def run_nodes(
    nodes: dict[str, Node], root: OutputRoot, display: Display, recorder: Recorder, code: Code
) -> Failure | None:
    """Ensure every node of a run in order, with the code of the command; None, or what stopped it."""
    stages = StageRunner(root, display, recorder, code)
    stage: str | None = None
    try:
        for node in nodes.values():
            stage = node.name
            stages.ensure(node)
    except RepeatedFailureError as error:
        display.message(f"  {stage:<12} [red]failed[/red] for an earlier run: not tried again")
        return Failure(error.failure["class"], error.failure["message"], stage, repeated=True)
    except KeyboardInterrupt:
        return Failure("interrupted", "stopped by a signal; give the same command again to carry on", stage)
    except Exception as error:
        with suppress(OSError):
            runner_log = recorder.directory / "logs" / "runner.log"
            runner_log.parent.mkdir(exist_ok=True)
            runner_log.write_text(traceback.format_exc(), encoding="utf-8")
        return Failure.of(error, stage, recorder.directory)
    return None
