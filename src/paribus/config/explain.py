"""Declared fields of a configuration, the files of the groups, and the page `docs/configuration.md` made of them."""

import dataclasses
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args, get_origin, get_type_hints

from paribus.config.schema import RunConfig, dataclasses_of, kinds

HEADER = """# Configuration reference

Made from the declarations in `src/paribus/config/groups` by `python -m paribus.config.explain`.
*identity* fields change what is computed and are part of artefact keys; *execution* fields change only how or where.
Defaults are those of the classes; a `scale` and the files below `conf/` set others. `paribus run --cfg job` prints
the configuration a command composes.
"""


@dataclass(frozen=True)
class Field:
    """A field as a class declares it; one path may have several, of different kinds of its group."""

    path: str
    kinds: tuple[str, ...]
    """Values of `kind` of the class that declares it; nothing where the block has no kinds."""
    type: str
    default: str | None
    """None where there is none."""
    role: str
    doc: str
    group: bool
    """True if it is a block of fields."""


def fields_of(cls: type[Any] = RunConfig, prefix: str = "") -> Iterator[Field]:
    """The fields of a class and of the blocks below it, each before those below."""
    hints, named = get_type_hints(cls), tuple(kinds([cls]))
    for field in dataclasses.fields(cls):
        blocks = dataclasses_of(hints[field.name])
        default = None if field.default is dataclasses.MISSING else plain(field.default)
        role, doc = field.metadata["role"], field.metadata["doc"]
        yield Field(prefix + field.name, named, type_name(hints[field.name]), default, role, doc, bool(blocks))
        for block in blocks:
            yield from fields_of(block, f"{prefix}{field.name}.")


def summaries(group: str) -> dict[str, str]:
    """Kind -> what the class of that kind says about itself in its first sentence."""
    classes = dataclasses_of(get_type_hints(RunConfig).get(group))
    return {kind: _first_sentence(cls.__doc__ or "") for kind, cls in kinds(classes).items()}


def plain(value: Any) -> str:
    """A default as YAML has it."""
    if value is None:
        return "null"
    return "[" + ", ".join(map(str, value)) + "]" if isinstance(value, tuple) else str(value)


def type_name(hint: Any) -> str:
    """The type of a field in words: choices in backticks."""
    arguments = get_args(hint)
    if get_origin(hint) is dict and arguments[1] is not Any:
        return f"{type_name(arguments[1])} by name"
    if get_origin(hint) is tuple:
        return f"list of {type_name(arguments[0])}"
    if arguments and all(isinstance(argument, str) for argument in arguments):
        return ", ".join(f"`{argument}`" for argument in arguments)
    if type(None) in arguments:
        return " or ".join(type_name(argument) for argument in arguments if argument is not type(None)) + " or null"
    if dataclasses_of(hint):
        return "group"
    return getattr(hint, "__name__", str(hint))


def _first_sentence(text: str) -> str:
    first = " ".join(text.strip().split("\n\n")[0].split())
    return re.split(r"(?<! al)\. ", first, maxsplit=1)[0].rstrip(".:")


def describe() -> str:
    """The whole reference."""
    hints = get_type_hints(RunConfig)
    sections = [HEADER, "## Run\n", _table(RunConfig, lambda name: not dataclasses_of(hints[name]))]
    for field in dataclasses.fields(RunConfig):
        classes = dataclasses_of(hints[field.name])
        if classes:
            sections.append(f"## {field.name}\n\n{field.metadata['doc']} ({field.metadata['role']})\n")
            sections += [_class(cls) for cls in classes]
    return "\n".join(sections)


def _class(cls: type[Any]) -> str:
    names = ", ".join(f"`{kind}`" for kind in kinds([cls]))
    title = f"### {names}\n\n" if names else ""
    text = (
        f"{title}{(cls.__doc__ or '').strip()}\n\n{_table(cls, lambda name: name != 'kind' or len(kinds([cls])) > 1)}"
    )
    nested = [inner for hint in get_type_hints(cls).values() for inner in dataclasses_of(hint)]
    return "\n".join([text, *(_class(inner).replace("### ", "#### ") for inner in nested)])


def _table(cls: type[Any], shown: Any) -> str:
    hints = get_type_hints(cls)
    lines = ["| field | type | default | role | meaning |", "|---|---|---|---|---|"]
    for field in dataclasses.fields(cls):
        if shown(field.name):
            default = "required" if field.default is dataclasses.MISSING else f"`{plain(field.default)}`"
            role, doc = field.metadata["role"], field.metadata["doc"]
            cells = (f"`{field.name}`", type_name(hints[field.name]), default, role, doc)
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(describe())
