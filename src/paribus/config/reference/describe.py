"""The reference of all configuration fields as Markdown, made from their declarations."""

import dataclasses
import sys
from typing import Any, get_type_hints

from paribus.config.reference.fields import plain, type_name
from paribus.config.schema import RunConfig, dataclasses_of, kinds

HEADER = """# Configuration reference

Made from the declarations in `src/paribus/config/groups` by `python -m paribus.config.reference.describe`.
*identity* fields change what is computed and are part of artefact keys; *execution* fields change only how or where.
Defaults are those of the classes; a `scale` and the files below `conf/` set others. `paribus run --cfg job` prints
the configuration a command composes.
"""


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
            cells = (
                f"`{field.name}`",
                type_name(hints[field.name]),
                default,
                field.metadata["role"],
                field.metadata["doc"],
            )
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(describe())
