"""Failures of stages and runs: what is shown of them, the notes that they leave, and what is tried again.

A command tries a stage once for all runs that share it: the note says in which command it failed and why. What may be
gone at the next attempt, a file server that does not answer say, is tried `retries` times before it is noted.
"""

from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.config.groups.execution import SweepConfig
from paribus.config.schema import RunConfig
from paribus.errors import ParibusError, classify, is_full_disk
from paribus.pipeline.graph import Node
from paribus.pipeline.root import OutputRoot
from paribus.store import files
from paribus.store.files import read_object_if_any

LINES_OF_LOG = 20
RETRIED = ("infrastructure", "interrupted")
"""Classes of failures that may be gone at the next attempt; the others would fail again."""


@dataclass(frozen=True)
class Failure:
    """A failure with its class, where it happened and the end of the log."""

    failure_class: str
    message: str
    stage: str | None = None
    log: str | None = None
    """Path of the stage's log below the directory of the run."""
    tail: tuple[str, ...] = ()
    """The last lines of that log."""
    repeated: bool = False
    """True for the failure of an earlier run of the command, which has been shown."""

    @classmethod
    def of(cls, error: BaseException, stage: str | None, directory: Path) -> "Failure":
        """The failure that an exception means, in a stage of the run in `directory`."""
        classified = classify(error)
        log = stage_log(directory, stage) if stage else None
        return cls(
            classified["class"],
            classified["message"],
            stage,
            None if log is None else log.relative_to(directory).as_posix(),
            () if log is None or is_full_disk(error) else tail(log),
        )

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Failure":
        stage, log, tail = fields.get("stage"), fields.get("log"), tuple(fields.get("tail", ()))
        return cls(str(fields["class"]), str(fields["message"]), stage, log, tail)

    def to_json(self) -> dict[str, Any]:
        return {
            "class": self.failure_class,
            "message": self.message,
            "stage": self.stage,
            "log": self.log,
            "tail": list(self.tail),
        }

    @property
    def shown(self) -> str:
        """Class, stage and message in one line."""
        where = f"stage {self.stage}: " if self.stage else ""
        return f"{self.failure_class}: {where}{self.message}"


def stage_log(directory: Path, stage: str) -> Path:
    """Path of the log of a stage in the directory of the run."""
    return directory / "logs" / f"{stage}.log"


def tail(log: Path) -> tuple[str, ...]:
    """The last lines of a log, whatever bytes are in it; none where there is no log."""
    if not log.is_file():
        return ()
    with log.open(encoding="utf-8", errors="replace") as file:
        return tuple(line.rstrip("\n")[:500] for line in deque(file, maxlen=LINES_OF_LOG))


class FailedBeforeError(ParibusError):
    """A stage is not tried, because it failed for an earlier run of the same command; `failure` is what it left."""

    def __init__(self, failure: Mapping[str, Any]) -> None:
        super().__init__(failure["message"])
        self.failure = failure


def failed_before(node: Node, root: OutputRoot) -> dict[str, Any] | None:
    """The failure of a stage that this command does not try again."""
    path = root.failure(node)
    if not path.is_file() or node.config.sweep is None:
        return None
    failure = {"class": "interrupted", "message": "", **read_object_if_any(path)}
    ended = failure.get("invocation") == node.config.sweep.invocation and failure["class"] != "interrupted"
    return failure if ended else None


def worth_another_try(error: BaseException) -> bool:
    """True if another attempt may do better. A full disk stays full until somebody makes room."""
    return classify(error)["class"] in RETRIED and not is_full_disk(error)


def note_failure(node: Node, root: OutputRoot, error: BaseException) -> None:
    """Write a note of a failed stage for the other runs of its command."""
    invocation = node.config.sweep.invocation if node.config.sweep else None
    path = root.failure(node)
    with suppress(OSError):  # the failure itself may be a full disk; it is reported all the same
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_json(path, {**classify(error), "stage": node.name, "invocation": invocation})


def why_stopped(root: OutputRoot, sweep: SweepConfig | None) -> str | None:
    """Return the reason to start no more runs of a command, None if there is none."""
    with suppress(FileNotFoundError):
        return None if sweep is None else root.stop_mark(sweep).read_text(encoding="utf-8")
    return None


def leave_note(config: RunConfig, failure: Mapping[str, Any]) -> None:
    """Tell the command, which may not see this terminal, why its run did not begin, or why its end is not recorded."""
    if config.sweep is not None and config.sweep.run is not None:
        note = OutputRoot.of(config).refusal(config.sweep.run)
        with suppress(OSError):
            note.parent.mkdir(parents=True, exist_ok=True)
            files.write_json(note, failure)
