"""Where the verb leaves its tables and pictures."""

import os
import tempfile
from functools import partial
from pathlib import Path

from rich.console import Console

from paribus.config.identity import digest
from paribus.pipeline.output_root import OutputRoot

TOKENS = "tokens"
"""Directory of the output root for reports and logs."""


def report_directory(root: OutputRoot, told: object) -> Path:
    """The directory of what `told`, plain data, tells apart; a temporary one where the root may only be read."""
    if _writable(root.path):
        return root.path / TOKENS / digest(told)[:16]
    return Path(tempfile.mkdtemp(prefix="paribus-tokens-"))


def say_where(directory: Path, root: OutputRoot, console: Console) -> None:
    """Say where the files are, and why they are elsewhere."""
    say = partial(console.print, markup=False, soft_wrap=True)
    say(f"tables, numbers and plots: {directory}")
    if not directory.is_relative_to(root.path):
        say(f"{root.path} may not be written, so they are not there", style="dim")


def _writable(path: Path) -> bool:
    """Whether files can be made there; a root that is not there yet is made where its parents allow it."""
    there = next(found for found in (path, *path.parents) if found.exists())
    return os.access(there, os.W_OK)
