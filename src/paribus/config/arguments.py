"""Arguments of the command line: flags, the overrides of Hydra and what they may choose, and `name=value` options."""

import difflib
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paribus.errors import ConfigurationError, Problem

_PLAIN = re.compile(r"[a-zA-Z0-9_./-]+")
"""A text that Hydra reads as itself."""
_PATHS = ("/", "./", "../", "~/")
"""Beginnings of a word that is a path and no override, even with equals signs."""
LONG_NAMES = {"-h": "--help", "-c": "--cfg", "-m": "--multirun"}
HELP, CONFIG_DIR = "--help", "--config-dir"
HELP_FLAGS = {HELP, "-h"}
PRINTING_FLAGS = {HELP, "--cfg"}
"""Flags that print something, and run nothing."""
FLAGS_WITH_VALUE: Mapping[str, str] = {"--cfg": "job, hydra or all", CONFIG_DIR: "a directory"}
"""Kind of value, by flag that needs one."""
REQUIRED_BESIDE = {"--resolve": "--cfg"}
"""Flag that must be given too, by flag."""
_AS_JSON = "print one JSON document (docs/json.md) instead of tables"
VERB_FLAGS: Mapping[str, Mapping[str, str]] = {
    "plan": {"--json": _AS_JSON},
    "status": {"--json": _AS_JSON},
    "report": {"--json": _AS_JSON, "--why": "list every setting in which the runs differ, instead of the table"},
}
"""Help of the flags that a verb alone has, by verb and flag."""
_COMMON_FLAGS = {*PRINTING_FLAGS, *FLAGS_WITH_VALUE, *REQUIRED_BESIDE, "--multirun"}


@dataclass(frozen=True)
class Flag:
    """One flag by its long name, and its value where it has one."""

    name: str
    value: str | None = None


@dataclass(frozen=True)
class Command:
    """A verb's arguments."""

    flags: tuple[Flag, ...]
    overrides: tuple[str, ...]

    def has(self, flag: str) -> bool:
        """True if a flag, by its long name, was given."""
        return any(each.name == flag for each in self.flags)

    @property
    def multirun(self) -> bool:
        """True if -m was given."""
        return self.has("--multirun")

    @property
    def config_directories(self) -> tuple[str, ...]:
        """Directories of the user's own groups and experiments, given with --config-dir."""
        return tuple(flag.value for flag in self.flags if flag.name == CONFIG_DIR and flag.value is not None)

    def typed(self, verb: str, *, multirun: bool) -> str:
        """Command line without flags that choose no run; `verb` may have an action behind a space."""
        directories = [word for directory in self.config_directories for word in (CONFIG_DIR, directory)]
        # Without the plus that an experiment is read with.
        overrides = [text.removeprefix("+") if text.startswith("+experiment=") else text for text in self.overrides]
        return shlex.join(["paribus", *verb.split(), *(["-m"] if multirun else []), *directories, *overrides])

    @property
    def shows(self) -> bool:
        """True if Hydra is only asked to print something."""
        return any(map(self.has, PRINTING_FLAGS))

    @property
    def shown_by_hydra(self) -> list[str]:
        """The words of a command that only shows something; of a multirun, what its overrides compose."""
        own = {"--multirun", *(name for names in VERB_FLAGS.values() for name in names)}
        words = [word for flag in self.flags if flag.name not in own for word in (flag.name, flag.value)]
        return [*filter(None, words), *self.overrides]


def parse(arguments: Sequence[str], verb: str = "run") -> Command:
    """Separate flags, with their values, from overrides. `experiment=x` is read as Hydra's `+experiment=x`.

    ConfigurationError names every flag that `verb` does not have, or that lacks its value, and what was meant.
    """
    flags: list[Flag] = []
    overrides: list[str] = []
    problems: list[str] = []
    words = list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            overrides.append(f"+{word}" if word.startswith("experiment=") else word)
            continue
        written, joined, value = word.partition("=")
        name = LONG_NAMES.get(written, written)
        if name not in known_flags(verb):
            problems.append(_unknown_flag(name, value if joined else _take_value(words), verb))
        elif name in FLAGS_WITH_VALUE:
            given = value if joined else _take_value(words)
            flags.append(Flag(name, given))
            problems += [] if given else [f"{written} needs a value: {FLAGS_WITH_VALUE[name]}"]
        else:
            flags.append(Flag(name))
            problems += [f"{written} has no value; leave {joined}{value} away"] if joined else []
    names = dict.fromkeys(flag.name for flag in flags)
    problems += [
        f"{name} goes with {REQUIRED_BESIDE[name]} only"
        for name in names
        if REQUIRED_BESIDE.get(name, name) not in names
    ]
    if {"--json", "--why"} <= set(names):
        problems.append("--json and --why do not go together; ask for one at a time")
    if problems:
        raise ConfigurationError("\n".join(problems))
    return Command(tuple(flags), tuple(overrides))


def _take_value(words: list[str]) -> str | None:
    """Remove and return the next word if it may be a value: no flag and no override."""
    may = bool(words) and not words[0].startswith("-") and ("=" not in words[0] or words[0].startswith(_PATHS))
    return words.pop(0) if may else None


def broken_lists(overrides: Sequence[str]) -> list[tuple[list[str], Problem]]:
    """Words and problem of each list that a space broke into words of the shell, or that ends in a comma."""
    rest, pieces = list(overrides), []
    while rest:
        words = [rest.pop(0)]
        while "=" in words[0] and rest and _continues_list(words[-1], rest[0]):
            words.append(rest.pop(0))
        whole, typed = "".join(words).lstrip("+").rstrip(","), " ".join(words)
        message = f"{typed!r} ends in a comma; name what follows, or leave it out: {whole}"
        if len(words) > 1:
            message = f"{typed!r} has a space, where the shell ends a word; leave it out: {whole}"
        if len(words) > 1 or ("=" in words[0] and words[0].endswith(",")):
            pieces.append((words, Problem(override_key(words[0]) or words[0], message)))
    return pieces


def _continues_list(word: str, following: str) -> bool:
    """True if the next word continues the list in which a word ends, and is no override itself."""
    apart = "=" in following or following.startswith("~")
    return not apart and (word[-1:] in (",", "=") or following[:1] == ",")


@dataclass(frozen=True)
class Overrides:
    """Overrides of a command line, by how many values they have."""

    plain: list[str]
    sweeping: list[str]
    only_for: Mapping[str, frozenset[tuple[str, str]]]
    """Choices, (group, option), with which a field exists, by its key, where others lack it."""

    @property
    def common(self) -> list[str]:
        """The plain overrides of fields that every choice has."""
        return [text for text in self.plain if override_key(text) not in self.only_for]

    def fit(self, job: Sequence[str]) -> tuple[str, ...]:
        """The overrides of a job without those of fields that its choices lack."""
        chosen = {(override_key(text), override_value(text)) for text in job}
        return tuple(text for text in job if (known := self.only_for.get(override_key(text))) is None or known & chosen)


def override_key(override: str) -> str:
    """Key that an override sets, adds or deletes."""
    return override.split("=", 1)[0].lstrip("+~")


def override_value(override: str) -> str:
    """Value that an override sets, without quotes around it."""
    return unquoted(override.partition("=")[2])


def unquoted(value: str) -> str:
    """A typed value without the quotes around it."""
    quote = value[:1]
    quoted = quote in ("'", '"') and len(value) > 1 and value.endswith(quote)
    return value[1:-1].replace(f"\\{quote}", quote) if quoted else value


def choosing(group: str, choice: str) -> str:
    """The override that chooses an option of a group."""
    return f"{group}={quoted(choice)}"


def quoted(value: str) -> str:
    """A text for Hydra's grammar, in quotes where Hydra would not read it as itself."""
    return value if _PLAIN.fullmatch(value) else "'" + value.replace("'", "\\'") + "'"


def known_flags(verb: str) -> list[str]:
    """The long flags of a verb."""
    return sorted({*_COMMON_FLAGS, *VERB_FLAGS.get(verb, ())})


def _unknown_flag(name: str, value: str | None, verb: str) -> str:
    """Message for a flag that `verb` does not have, with what was probably meant."""
    from paribus.config.explain import fields_of

    word, flags = name.lstrip("-").replace("-", "_"), known_flags(verb)
    fields = sorted({field.path for field in fields_of()}, key=lambda path: (path.count("."), path))
    paths = [word] if word in fields else [path for path in fields if path.rpartition(".")[2] == word]
    meant = f"known: {', '.join(flags)}; fields are set without dashes: seed=3"
    if owners := [owner for owner, own in VERB_FLAGS.items() if name in own]:
        meant = f"it is one of paribus {' and '.join(owners)}"
    elif paths:
        texts = [f"{path}={'...' if value is None else value}" for path in paths]
        meant = f"fields are set without dashes; say {' or '.join(texts[:3])}"
    elif close := difflib.get_close_matches(name, flags, n=1, cutoff=0.75):
        meant = f"did you mean {close[0]}?"
    return f"{name} is no flag of paribus {verb}: {meant}"


def read_options(arguments: Sequence[str], known: Collection[str]) -> dict[str, str]:
    """Name -> value of each argument; ConfigurationError for an unknown, empty or repeated one."""
    options: dict[str, str] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals or name not in known:
            taken = ", ".join(f"{key}=..." for key in known)
            raise ConfigurationError(f"{argument!r} is not taken here, but {taken}{_near(argument, known)}")
        if not value:
            raise ConfigurationError(f"{name}= names no value; leave it out or give one")
        if options.get(name, value) != value:
            raise ConfigurationError(f"{name} is given twice, as {options[name]!r} and as {value!r}")
        options[name] = value
    return options


def _near(argument: str, known: Collection[str]) -> str:
    """The option that was probably meant, with the value that was given."""
    name, equals, value = argument.lstrip("-").partition("=")
    name = name.replace("-", "_")
    close = [key for key in known if name and key.endswith(f".{name}")]
    close += difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}={value if equals else '...'}?" if close else ""


def configuration_directory() -> Path:
    """The directory of the config groups: in the installed package, or at the top of a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "conf"
    return installed if installed.is_dir() else package.parents[1] / "conf"


@dataclass(frozen=True)
class Option:
    """A file of a group."""

    name: str
    """Name on the command line, `lbpe/table_1` of an experiment."""
    path: Path

    @property
    def comment(self) -> list[str]:
        """The lines of comment that it begins with."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        if lines and lines[0].startswith("# @package"):
            lines = lines[1:]
        head = next((at for at, line in enumerate(lines) if not line.startswith("#")), len(lines))
        return [line.removeprefix("#").strip() for line in lines[:head]]


def groups() -> list[str]:
    """Groups of options, of which a command line chooses one each."""
    return sorted(path.name for path in configuration_directory().iterdir() if path.is_dir())


def options(group: str) -> list[Option]:
    """The options of a group; files whose names begin with an underscore are parts of others."""
    directory = configuration_directory() / group
    paths = sorted(path for path in directory.rglob("*.yaml") if not path.name.startswith("_"))
    return [Option(path.relative_to(directory).with_suffix("").as_posix(), path) for path in paths]
