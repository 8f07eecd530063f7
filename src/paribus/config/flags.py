"""The flags of the command line: which there are, and the sentence for one that is none."""

import dataclasses
import difflib
from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

SHORT = {
    "-h": "--help",
    "-c": "--cfg",
    "-p": "--package",
    "-i": "--info",
    "-m": "--multirun",
    "-cd": "--config-dir",
}
HELP, CONFIG_DIR = "--help", "--config-dir"
HELP_FLAGS = {HELP, "-h"}
SHOWING = {HELP, "--hydra-help", "--cfg", "--info", "--version"}
"""Flags by which Hydra is only asked to print something."""
VALUES: Mapping[str, str] = {"--cfg": "job, hydra or all", "--package": "a package", CONFIG_DIR: "a directory"}
"""Flag that needs a value -> what it is."""
INFORMATION = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")
"""What may follow --info, which does without."""
ONLY_BESIDE = {"--package": {"--cfg"}, "--resolve": {"--cfg"}}
"""Flag -> those of which one must be there for it to mean something."""
_AS_JSON = "one JSON document on standard output in place of tables, with the keys of docs/json.md"
OF_A_VERB: Mapping[str, Mapping[str, str]] = {
    "run": {"--dry-run": "say what `paribus plan` says, and run nothing"},
    "plan": {"--json": _AS_JSON},
    "status": {"--json": _AS_JSON},
    "report": {
        "--json": _AS_JSON,
        "--why": "in place of the table, every setting in which the runs differ, declared or not",
    },
    "items": {
        "--task": "list the items of a task, or the documents of a set (heldout, or by its name)",
        "--shots": "with this number of examples in the prompt alone; otherwise with all",
        "--checkpoint": "of the last of the scored checkpoints, or of that of a step; otherwise of all",
        "--better": "those in which ROW of the table, by its labels, is better than what it is compared with",
        "--limit": "how many items are listed, those where arms part most; otherwise 10",
        "--all": "list every item, those in which arms do not part too",
        "--file": "write every item of every run with its texts to FILE, .parquet, .csv or .jsonl, and list none",
        "--json": _AS_JSON,
    },
}
"""Verb -> flags of ours that it alone has -> what each asks for."""
VALUES_OF_A_VERB: Mapping[str, Mapping[str, str]] = {
    "items": {
        "--task": "TASK",
        "--shots": "N",
        "--checkpoint": "last|STEP",
        "--better": "ROW",
        "--limit": "N",
        "--file": "FILE",
    }
}
"""Verb -> those of its flags that need a value -> what it is."""
APART: tuple[frozenset[str], ...] = (
    frozenset(SHOWING - {HELP}),
    frozenset(OF_A_VERB["report"]),
    frozenset({"--limit", "--all"}),
)
"""Flags no two of which go together."""
_EVERYWHERE = {*SHOWING, *VALUES, *ONLY_BESIDE, "--multirun"}
_SAID_OTHERWISE = {
    **dict.fromkeys(
        ("resume", "continue", "restart"), "give the same command again; it carries on where the last one stopped"
    ),
    **dict.fromkeys(("yes", "y", "no_input", "assume_yes"), "paribus asks no questions; leave it out"),
    **dict.fromkeys(
        ("force", "f", "overwrite"),
        "what is made stays and is never made again; paribus rerun makes a recorded run afresh",
    ),
    **dict.fromkeys(
        ("jobs", "j", "n_jobs", "workers"),
        "a launcher runs jobs beside each other: -m hydra/launcher=joblib hydra.launcher.n_jobs=N",
    ),
    **dict.fromkeys(("gpus", "gpu", "n_gpus"), "say training.processes=N, or training.device=cuda:N for one of them"),
    **dict.fromkeys(("sc", "shell_completion"), "paribus completion bash (or zsh, fish) prints it"),
    **dict.fromkeys(
        ("config_name", "cn", "config_path", "cp"),
        "groups of your own stand below --config-dir, and an experiment is chosen with experiment=NAME",
    ),
}
"""What people type out of habit -> what they want here."""


def known_flags(verb: str) -> list[str]:
    """The long flags of a verb."""
    return sorted({*_EVERYWHERE, *OF_A_VERB.get(verb, ())})


def value_of(flag: str, verb: str) -> str | None:
    """What a flag of a verb needs as its value; None for one that has none."""
    return VALUES.get(flag) or VALUES_OF_A_VERB.get(verb, {}).get(flag)


def no_flag(name: str, value: str | None, verb: str) -> str:
    """The sentence for a flag that `verb` does not have, with what was probably meant."""
    return f"{name} is no flag of paribus {verb}: {_meant(name, value, verb)}"


def _meant(name: str, value: str | None, verb: str) -> str:
    word, flags = name.lstrip("-").replace("-", "_"), known_flags(verb)
    # What has a value is a field to most people: `--limit 3` of a run is evaluation.limit.
    if owners := [owner for owner, own in OF_A_VERB.items() if name in own and value_of(name, owner) is None]:
        return f"it is one of paribus {' and '.join(owners)}"
    if word in _SAID_OTHERWISE:
        return _SAID_OTHERWISE[word]
    fields = list(_fields())
    if paths := _ending(fields, word):
        return _without_dashes(paths, value)
    if close := difflib.get_close_matches(name, flags, n=1, cutoff=0.75):
        return f"did you mean {close[0]}?"
    if close := difflib.get_close_matches(word, map(_last, fields), n=1, cutoff=0.75):
        return _without_dashes(_ending(fields, close[0]), value)
    return f"known: {', '.join(flags)}; fields are set without dashes: seed=3"


def _ending(paths: list[str], word: str) -> list[str]:
    """The path that is `word`, else those that end in it."""
    return [word] if word in paths else [path for path in paths if _last(path) == word]


def _last(path: str) -> str:
    return path.rsplit(".", maxsplit=1)[-1]


def _without_dashes(paths: list[str], value: str | None) -> str:
    """The override that sets one of the first few of `paths`."""
    texts = [f"{path}={'...' if value is None else value}" for path in paths]
    return f"fields are set without dashes; say {' or '.join(texts[:3])}"


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
