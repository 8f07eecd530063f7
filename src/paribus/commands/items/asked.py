"""What the flags of `paribus items` ask for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from paribus.config.arguments import Command
from paribus.config.names import proper_path
from paribus.errors import ConfigurationError

TASK, SHOTS, CHECKPOINT, FILE = "--task", "--shots", "--checkpoint", "--file"
BETTER, LIMIT, ALL = "--better", "--limit", "--all"
FORMATS = (".parquet", ".csv", ".jsonl")
SHOWN = 10
"""Items that are listed where nothing else is said."""


@dataclass(frozen=True)
class Asked:
    """Which items, and where they go."""

    task: str | None
    shots: int | None
    checkpoint: str | None
    better: str | None
    """Labels of the row that is to be better."""
    limit: int | None
    """How many items are listed; None for all."""
    file: Path | None

    @classmethod
    def by(cls, command: Command) -> Self:
        """ConfigurationError for a value that is none, and for a listing without a task whose items it has."""
        task, limit = command.value(TASK), command.value(LIMIT)
        listing = [flag for flag in (BETTER, LIMIT, ALL) if command.has(flag)]
        if task is None and listing:
            raise ConfigurationError(f"{listing[0]} is of the items of a task: say {TASK}")
        shots, file = command.value(SHOTS), command.value(FILE)
        if file is not None and listing:
            raise ConfigurationError(f"{FILE} has all items: leave {listing[0]} out")
        return cls(
            task,
            None if shots is None else _count(SHOTS, shots, least=0),
            command.value(CHECKPOINT),
            command.value(BETTER),
            None if command.has(ALL) else SHOWN if limit is None else _count(LIMIT, limit, least=1),
            None if file is None else _file(file),
        )


def _count(flag: str, given: str, least: int) -> int:
    if not (given.isascii() and given.isdecimal() and len(given) < 10 and int(given) >= least):
        raise ConfigurationError(f"{flag} {given}: give a whole number, {least} or more")
    return int(given)


def _file(given: str) -> Path:
    try:
        path = Path(proper_path(given)).expanduser()
    except ValueError as error:
        raise ConfigurationError(f"{FILE}: {error}") from error
    if path.suffix not in FORMATS:
        raise ConfigurationError(f"{FILE} {given}: a name ends in {', '.join(FORMATS)}, by which the table is written")
    if path.is_dir() or not path.absolute().parent.is_dir():
        why = "is a directory" if path.is_dir() else f"there is no directory {path.absolute().parent}"
        raise ConfigurationError(f"{FILE} {given}: {why}")
    return path
