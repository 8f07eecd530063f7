"""Groups of plain text, which has no fields: the pieces of a file are one."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from paribus.corpus.sources.source import Found, Skipped
from paribus.errors import ConfigurationError

FILE = "file"
"""What `corpus.group_field` calls the file that plain text is of."""


def require_group_of_text(group_field: str | None, plain: Sequence[Path]) -> None:
    """ConfigurationError where files of plain text are to be grouped by anything but their names."""
    if plain and group_field not in (None, FILE):
        raise ConfigurationError(
            f"corpus.group_field={group_field}: {plain[0]} is plain text without fields; use {FILE}, by which the "
            "documents of a file are one group, or null"
        )


def in_group_of_text(found: Found | Skipped, group_field: str | None) -> Found | Skipped:
    """A document of plain text with its file as its group, where documents are to be grouped."""
    return found if group_field is None or isinstance(found, Skipped) else replace(found, group=found.source)
