"""Why what a recorded run was made of would have other keys here: code versions, fields, and the contents of files."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from paribus.config.identity import canonical
from paribus.config.schema import RunConfig
from paribus.pipeline.graph import Node
from paribus.pipeline.prepared import run_identity
from paribus.reporting.equality import flatten

LONGEST = 80
"""Characters of a value that is no list."""
MOST_SHOWN = 8
"""Entries of a list, of each side."""
DIGEST, SHOWN_OF_A_DIGEST = 64, 12
"""Characters of a SHA-256, and those by which people tell one from another."""


def causes_of_other_keys(record: Mapping[str, Any], config: RunConfig, nodes: Mapping[str, Node]) -> Iterator[str]:
    """A line for each thing that the record has otherwise, with both values; of lists, as of files, what differs."""
    for name, node in nodes.items():
        before = record["code_versions"].get(name)
        if before != node.stage.code_version:
            yield f"code version of stage {name} {before}, here {node.stage.code_version}"
    recorded, here = flatten(record["identity"]), flatten(run_identity(config, dict(nodes)))
    for path in sorted(recorded.keys() | here.keys()):
        if recorded.get(path) != here.get(path):
            yield f"{path} {', here '.join(_shown(recorded.get(path), here.get(path)))}"


def _shown(before: str | None, now: str | None) -> tuple[str, str]:
    """Two values in JSON that differ, None for one that is not there, for people."""
    lists = [[] if text is None else json.loads(text) for text in (before, now)]
    if all(isinstance(entries, list) for entries in lists):
        one, other = lists
        own = _only_in(one, other), _only_in(other, one)
        if any(own):
            return _entries(own[0]), _entries(own[1])
    return _short(before), _short(now)


def _only_in(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    known = {canonical(entry) for entry in other}
    return [entry for entry in one if canonical(entry) not in known]


def _entries(entries: Sequence[Any]) -> str:
    more = [f"{len(entries) - MOST_SHOWN} more"] if len(entries) > MOST_SHOWN else []
    return ", ".join([*map(_entry, entries[:MOST_SHOWN]), *more]) or "absent"


def _entry(entry: Any) -> str:
    """A file is its name, its size and the begin of its digest."""
    return " ".join(map(_entry, entry)) if isinstance(entry, list) else _begin_of_digest(str(entry))


def _begin_of_digest(text: str) -> str:
    is_digest = len(text) == DIGEST and set(text) <= set("0123456789abcdef")
    return text[:SHOWN_OF_A_DIGEST] if is_digest else text


def _short(text: str | None) -> str:
    if text is None:
        return "absent"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
