"""What verbs with actions have in common: the usage, what Hydra is asked to print, and the subject of a question."""

import dataclasses
import re
from collections.abc import Sequence

from rich.console import Console

from paribus.config.arguments import Command
from paribus.config.composing.launch import show_with_hydra
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError


def print_usage(usage: str, console: Console) -> None:
    """Print the usage of a verb as it is."""
    console.print(usage, markup=False, end="", soft_wrap=True)


def show(command: Command, usage: str, console: Console) -> int:
    """The usage of the verb where the help is asked for, else what Hydra is asked to print."""
    if command.helps:
        print_usage(usage, console)
    else:
        show_with_hydra(command)
    return 0


def split_subject(arguments: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """What is asked about, which stands first or after `--`, and the other arguments; None where nothing is given.

    ConfigurationError for an override in its place, which somebody who forgot it has typed.
    """
    marked = arguments.index("--") if "--" in arguments else None
    if marked is not None:
        subject = arguments[marked + 1] if marked + 1 < len(arguments) else None
        return subject, [*arguments[:marked], *arguments[marked + 2 :]]
    if not arguments or arguments[0].startswith("-"):
        return None, arguments
    if _sets_a_field(arguments[0]):
        raise ConfigurationError(
            f"{arguments[0]} sets a field, where what is asked about should stand; give that first, or this very text "
            "after --"
        )
    if len(arguments) > 1 and not arguments[1].startswith(("-", "~")) and "=" not in arguments[1]:
        raise ConfigurationError(
            f"{arguments[1]!r}: what is asked about is one argument; put all of it between quotes, lines too"
        )
    return arguments[0], arguments[1:]


def _sets_a_field(argument: str) -> bool:
    name = re.match(r"[+~]{0,2}([a-z_]+)(?:[./@][^=]*)?=", argument)
    return name is not None and name[1] in {"hydra", *(field.name for field in dataclasses.fields(RunConfig))}
