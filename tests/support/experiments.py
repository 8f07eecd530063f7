"""The experiment files: their names, what they compose to, and the commands that their headers give."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from paribus.checks import compose_command
from paribus.config.arguments import CONFIG_DIR, Command, Flag, configuration_directory, parse
from paribus.config.compose import Composition
from paribus.config.groups.evaluation import ExperimentConfig

DIRECTORY = configuration_directory() / "experiment"
FILES = sorted(path for path in DIRECTORY.rglob("*.yaml") if not path.name.startswith("_"))
"""All that can be run; those that begin with an underscore are shared by others."""


def name_of(path: Path) -> str:
    """The value of `experiment=` for this file."""
    return path.relative_to(DIRECTORY).with_suffix("").as_posix()


def composition_of(*overrides: str, verb: str = "run") -> Composition:
    """What a command composes to, cached: composing takes most of the time."""
    command = parse(overrides, verb)
    return _composed(tuple(flag for flag in command.flags if flag.name in COMPOSING_FLAGS), command.overrides)


COMPOSING_FLAGS = ("--multirun", CONFIG_DIR)
"""Flags that change the composition; the others change only what is printed."""


@cache
def _composed(flags: tuple[Flag, ...], overrides: tuple[str, ...]) -> Composition:
    return compose_command(Command(flags, overrides))


def experiment_of(name: str) -> ExperimentConfig:
    """The block `experiment` of a file, with what it shares with others."""
    experiment = composition_of(f"experiment={name}").jobs[0].config.experiment
    assert experiment is not None
    return experiment


def paper_block(name: str) -> dict[str, Any]:
    """The block `paper` of an experiment that has one."""
    block = experiment_of(name).paper
    assert block is not None
    return block


def trains_no_model(name: str) -> bool:
    """Whether an experiment trains no model: its commands are those of `paribus tokens`."""
    return all(" tokens " in line for line in header_commands(DIRECTORY / f"{name}.yaml"))


def with_numbers() -> Iterator[str]:
    """Names of the experiments that have a paper's numbers, which no file shares with another."""
    for path in FILES:
        block = yaml.safe_load(path.read_text(encoding="utf-8"))["experiment"].get("paper") or {}
        if block.get("numbers"):
            yield name_of(path)


def header_commands(path: Path) -> Iterator[str]:
    """Commands in the comment of an experiment, and each again with the overrides of the lines `with ...` below it.

    What follows two spaces is prose.
    """
    lines = [line.removeprefix("#").removeprefix(" Command:").strip() for line in header(path)]
    last = ""
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.startswith("paribus "):
            last = re.split(r" {2,}(?=[^ ])(?![^ ]*=)", line)[0]
            yield last
        elif line.startswith("with ") and last:
            overrides = [word.rstrip(":;,") for word in line.split() if re.match(r"[a-z_.+/]+=", word)]
            yield " ".join([last, *overrides])


def header(path: Path) -> list[str]:
    """Lines of the comment that a file begins with."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return lines[: next(n for n, line in enumerate(lines) if not line.startswith("#"))]


def words_of(line: str) -> list[str]:
    """A command line from the verb on, without what stands before it, after a pipe or after #."""
    words = shlex.split(line.split(" < ", maxsplit=1)[0].split(" | ", maxsplit=1)[0], comments=True)
    while words and not words[0].endswith("paribus"):
        words.pop(0)
    return words[1:]


ACTIONS = ("tokens",)
"""Verbs with actions."""
TEXTS = ("--text", "--containing")
"""Flags of actions with a text after them."""


def overrides_of(words: list[str]) -> list[str]:
    """What Hydra is given of a command."""
    if words[0] not in ACTIONS:
        return words[1:]
    given = words[2:]
    for flag in TEXTS:
        if flag in given:
            del given[given.index(flag) : given.index(flag) + 2]
    return given
