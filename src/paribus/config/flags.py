"""The flags of the command line: which there are, and the sentence for one that is none."""

import dataclasses
import difflib
from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

SHORT = {"-h": "--help", "-c": "--cfg", "-m": "--multirun"}
HELP, CONFIG_DIR = "--help", "--config-dir"
HELP_FLAGS = {HELP, "-h"}
SHOWING = {HELP, "--cfg"}
"""Flags by which something is printed, and nothing done."""
VALUES: Mapping[str, str] = {"--cfg": "job, hydra or all", CONFIG_DIR: "a directory"}
"""Flag that needs a value -> what it is."""
ONLY_BESIDE = {"--resolve": "--cfg"}
"""Flag -> the one that must be there for it to mean something."""
_AS_JSON = "print one JSON document (docs/json.md) instead of tables"
OF_A_VERB: Mapping[str, Mapping[str, str]] = {
    "plan": {"--json": _AS_JSON},
    "status": {"--json": _AS_JSON},
    "report": {
        "--json": _AS_JSON,
        "--why": "list every setting in which the runs differ, instead of the table",
    },
}
"""Verb -> flags of ours that it alone has -> what each asks for."""
_EVERYWHERE = {*SHOWING, *VALUES, *ONLY_BESIDE, "--multirun"}


def known_flags(verb: str) -> list[str]:
    """The long flags of a verb."""
    return sorted({*_EVERYWHERE, *OF_A_VERB.get(verb, ())})


def no_flag(name: str, value: str | None, verb: str) -> str:
    """The sentence for a flag that `verb` does not have, with what was probably meant."""
    return f"{name} is no flag of paribus {verb}: {_meant(name, value, verb)}"


def _meant(name: str, value: str | None, verb: str) -> str:
    word, flags = name.lstrip("-").replace("-", "_"), known_flags(verb)
    if owners := [owner for owner, own in OF_A_VERB.items() if name in own]:
        return f"it is one of paribus {' and '.join(owners)}"
    if paths := _ending(list(_fields()), word):
        texts = [f"{path}={'...' if value is None else value}" for path in paths]
        return f"fields are set without dashes; say {' or '.join(texts[:3])}"
    if close := difflib.get_close_matches(name, flags, n=1, cutoff=0.75):
        return f"did you mean {close[0]}?"
    return f"known: {', '.join(flags)}; fields are set without dashes: seed=3"


def _ending(paths: list[str], word: str) -> list[str]:
    """The path that is `word`, else those that end in it."""
    return [word] if word in paths else [path for path in paths if _last(path) == word]


def _last(path: str) -> str:
    return path.rsplit(".", maxsplit=1)[-1]


def _fields() -> Iterator[str]:
    """Paths of all fields and groups of a configuration, the shortest first."""
    from paribus.config.schema import RunConfig

    yield from sorted(set(_below(RunConfig, "")), key=lambda path: (path.count("."), path))


def _below(cls: type[Any], prefix: str) -> Iterator[str]:
    from paribus.config.schema import dataclasses_of

    hints = get_type_hints(cls)
    for field in dataclasses.fields(cls):
        yield prefix + field.name
        for inner in dataclasses_of(hints[field.name]):
            yield from _below(inner, f"{prefix}{field.name}.")
