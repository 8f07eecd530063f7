"""Split what follows a verb into Hydra's flags and Hydra's overrides."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

VALUED_FLAGS = {"--cfg", "-c", "--package", "-p", "--info", "-i", "--config-dir", "-cd", "--experimental-rerun"}
HELP_FLAGS = {"--help", "-h"}
SHOWING_FLAGS = {
    *HELP_FLAGS,
    "--hydra-help",
    "--cfg",
    "-c",
    "--info",
    "-i",
    "--shell-completion",
    "-sc",
    "--version",
}


@dataclass(frozen=True)
class Command:
    """A verb's arguments."""

    flags: tuple[str, ...]
    overrides: tuple[str, ...]

    @property
    def multirun(self) -> bool:
        """Whether -m was given."""
        return bool({"-m", "--multirun"} & set(self.flags))

    @property
    def asks_why(self) -> bool:
        """Whether --why was given, for which `paribus report` says in what runs differ."""
        return "--why" in self.flags

    @property
    def config_directories(self) -> tuple[str, ...]:
        """Directories of the user's own groups and experiments, given with --config-dir."""
        names = ("--config-dir", "-cd")
        apart = [value for name, value in pairwise(self.flags) if name in names]
        joined = [flag.split("=", 1)[1] for flag in self.flags if flag.startswith(tuple(f"{name}=" for name in names))]
        return (*apart, *joined)

    @property
    def shows(self) -> bool:
        """Whether Hydra is only asked to print something."""
        return bool(SHOWING_FLAGS & set(self.flags))

    @property
    def helps(self) -> bool:
        """Whether that is the help."""
        return bool(HELP_FLAGS & set(self.flags))


def parse(arguments: Sequence[str]) -> Command:
    """Flags (with their values) apart from overrides. `experiment=x` is read as Hydra's `+experiment=x`."""
    flags: list[str] = []
    overrides: list[str] = []
    waiting = False
    for argument in arguments:
        if waiting or argument.startswith("-"):
            flags.append(argument)
            waiting = not waiting and argument in VALUED_FLAGS
        else:
            overrides.append(f"+{argument}" if argument.startswith("experiment=") else argument)
    return Command(tuple(flags), tuple(overrides))
