"""A command as a user would type it for something else."""

from collections.abc import Sequence

from paribus.config.arguments import Command


def retyped(
    command: Command, *, without: str | None = None, multirun: bool, more: Sequence[str] = (), verb: str = "run"
) -> str:
    """`paribus run`, or another `verb`, of a command's overrides `without` those of one field, and with some `more`."""
    kept = [override for override in command.overrides if override.lstrip("+").partition("=")[0] != without]
    return Command(command.flags, (*kept, *more)).typed(verb, multirun=multirun)
