"""Why a run or a stage failed: what its record, `paribus status` and the tracker say."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.errors import classify, is_full_disk

LINES_OF_LOG = 20
LOGS = "logs"
"""Beside what stages are made for, the directory of their logs."""
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
    """Whether it is that of an earlier run of the command, which has been shown."""

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
        """What `to_json` wrote."""
        stage, log, tail = fields.get("stage"), fields.get("log"), tuple(fields.get("tail", ()))
        return cls(str(fields["class"]), str(fields["message"]), stage, log, tail)

    def to_json(self) -> dict[str, Any]:
        """As it stands in a run's record."""
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
    """Where the output of a stage's process goes, in the directory of the run."""
    return directory / LOGS / f"{stage}.log"


def tail(log: Path, lines: int = LINES_OF_LOG) -> tuple[str, ...]:
    """The last lines of a log, whatever bytes are in it; none where there is no log."""
    if not log.is_file():
        return ()
    with log.open(encoding="utf-8", errors="replace") as file:
        return tuple(line.rstrip("\n")[:500] for line in deque(file, maxlen=lines))
