"""A command as a user would type it for something else."""

import shlex
from collections.abc import Sequence

from paribus.config.arguments import Command
from paribus.config.flags import CONFIG_DIR


def retyped(
    command: Command, *, without: str | None = None, multirun: bool, more: Sequence[str] = (), verb: str = "run"
) -> str:
    """`paribus run`, or another `verb`, of a command's overrides `without` those of one field, and with some `more`."""
    directories = [word for directory in command.config_directories for word in (CONFIG_DIR, directory)]
    kept = [_typed(override) for override in command.overrides if override.lstrip("+").partition("=")[0] != without]
    return shlex.join(["paribus", verb, *(["-m"] if multirun else []), *directories, *kept, *more])


def _typed(override: str) -> str:
    """Without the plus that an experiment is read with."""
    return override.removeprefix("+") if override.startswith("+experiment=") else override
