"""The verb `paribus doctor`: whether the artefacts of an output root, or of several in one directory, are sound."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from rich.console import Console

from paribus.checks.command import compose_command
from paribus.config.arguments import Command
from paribus.errors import ConfigurationError
from paribus.pipeline.output_root import OutputRoot
from paribus.store.doctor import examine


def doctor_command(command: Command, console: Console) -> int:
    """`paribus doctor [root=...]`: 0 when nothing is wrong with any root that is meant, else 1.

    ConfigurationError for what holds no root: nothing there would be found sound.
    """
    root = OutputRoot.of(compose_command(command).jobs[0].config)
    if not root.path.is_dir():
        raise ConfigurationError(f"root: {str(root.path)!r} is no directory; name the output root with root=...")
    meant = [root] if root.is_used else _within(root)
    if not meant:
        raise ConfigurationError(
            f"root: {str(root.path)!r} is no output root and holds none, which have a directory artifacts or runs; "
            "name the output root with root=..."
        )
    say = partial(console.print, markup=False, soft_wrap=True)
    ended = []
    for one in meant:
        if meant != [root]:
            say(f"{one.path}:")
        ended.append(examine(one.store, say))
    return max(ended)


def _within(root: OutputRoot) -> Sequence[OutputRoot]:
    """The output roots that lie in a directory which is none itself."""
    found = (replace(root, path=path) for path in sorted(root.path.iterdir()) if path.is_dir())
    return [one for one in found if one.is_used]
