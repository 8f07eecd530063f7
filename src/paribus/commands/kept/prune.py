"""The verb `paribus prune`: what of an output root can go, and with --yes its removal."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console

from paribus.config.flags import HELP_FLAGS
from paribus.config.options import read_options
from paribus.config.units import format_size
from paribus.errors import ConfigurationError
from paribus.pipeline.output_root import OutputRoot, named_root
from paribus.pipeline.record.inventory import take_inventory
from paribus.pipeline.record.needs import find_needs
from paribus.pipeline.record.pruning import (
    TRAINED_AGAIN,
    Kept,
    Prunable,
    asked,
    prunable,
    prune,
    require_own_store,
    signatures,
)
from paribus.pipeline.record.references import find, is_reference

YES = "--yes"
HELP = """usage: paribus prune [RUNS ...] [--yes] [root=paribus_runs]

Say what of an output root can go, and how much that is; with --yes, remove it. No table, score or report changes, and
`paribus run` of the same command finds everything done as before.

Without RUNS that is what nothing on record needs: artefacts of other code versions that no run names, those of this
code that no report of `paribus tokens` or `paribus orders` is made of either, and work that no recorded run would go on
with. What such a report is made of can go once its directory below tokens/ or orders/ is removed.

With RUNS, which are sweeps or runs by identifier, or last, it is what belongs to these alone: of finished
ones their optimizer states and checkpoints, which only training brings back; of failed and interrupted ones all that
they made, finished or not, which the same command would make again. Their records stay and say what failed. Name none
that a run of another root starts from: of other roots nothing is known here, and that run would lose its report.

What other runs that are not done need, what another run of the root starts from or reads by a path, and what a living
process has in hand stay; so do vocabularies of this code, whose tokenizers may be read by their paths, and a training
whose run is not on record, with what it was made of. While a record cannot be read, or this code refuses the
configuration of a run that is not done, so do abandoned work, artefacts of other code, of no run and of failed runs.
Where artifacts/ is a link, or no runs/ is beside it, nothing is pruned, as other roots may use it.

  paribus prune
  paribus prune --yes
  paribus prune last --yes root=my/runs

exit status: 0; 2 refused
"""
WHAT: dict[str, str] = {
    "artefacts of other code": "no run names them, and this code makes others",
    "artefacts of no run": "no run names them and no report is made of them; what needs them makes them again",
    "abandoned work": "no run on record goes on with it",
    **TRAINED_AGAIN,
}


@dataclass(frozen=True)
class Wanted:
    """What is asked for."""

    names: tuple[str, ...]
    root: OutputRoot
    yes: bool


def prune_command(arguments: Sequence[str], console: Console) -> int:
    """`paribus prune [RUNS ...] [--yes]`; ConfigurationError for names that are none, where there is no root, and where
    other roots may use its artefacts.
    """
    if HELP_FLAGS & set(arguments):
        console.print(HELP, end="", markup=False, highlight=False, soft_wrap=True)
        return 0
    wanted = parse(arguments)
    if not wanted.root.path.is_dir():
        raise ConfigurationError(f"root: {str(wanted.root.path)!r} is no directory; name the output root with root=...")
    runs = {run.run_id for name in wanted.names for run in find(name, wanted.root.path).runs}
    known = signatures(wanted.root)
    inventory = take_inventory(wanted.root)
    require_own_store(inventory)
    found, kept = prunable(inventory, find_needs(inventory))
    going = asked(found, runs)
    gone = [one for one in going if prune(wanted.root, one, known)] if wanted.yes else going
    for line in _told(gone, wanted.yes):
        console.print(line, markup=False, soft_wrap=True)
    for line in _staying(found, kept, going, gone):
        console.print(line, style="dim", markup=False, soft_wrap=True)
    return 0


def parse(arguments: Sequence[str]) -> Wanted:
    """What the arguments ask for; ConfigurationError for unknown ones."""
    names = tuple(argument for argument in arguments if is_reference(argument))
    others = [argument for argument in arguments if argument not in (*names, YES)]
    return Wanted(names, named_root(read_options(others, ("root",)).get("root")), YES in arguments)


def _told(going: Collection[Prunable], done: bool) -> Iterator[str]:
    """What goes by kind, or went."""
    total = format_size(sum(one.size for one in going))
    if not going:
        yield "nothing was removed" if done else "nothing can go"
        return
    yield f"freed {total}:" if done else f"{total} can go; {YES} removes it:"
    yield from _by_kind(going)


def _by_kind(found: Collection[Prunable]) -> Iterator[str]:
    sizes: dict[str, int] = defaultdict(int)
    counts: Counter[str] = Counter()
    for one in found:
        sizes[one.kind] += one.size
        counts[one.kind] += 1
    for kind, size in sorted(sizes.items(), key=lambda item: -item[1]):
        yield f"  {format_size(size):>10}  {kind} ({counts[kind]:,}): {WHAT[kind]}"


def _staying(
    found: Collection[Prunable], kept: Collection[Kept], going: Collection[Prunable], gone: Collection[Prunable]
) -> Iterator[str]:
    """What has to be named, what is needed, and what living processes have in hand."""
    busy = [one for one in going if one not in gone]
    if busy:
        left = format_size(sum(one.size for one in busy))
        yield f"stays, as a living process has it in hand or a new record names it: {left}"
    named = [one for one in found if one.kind in TRAINED_AGAIN and one not in going]
    if named:
        yield "stays unless its runs are named, as in paribus prune last:"
        yield from _by_kind(named)
    needed: dict[tuple[str, str], int] = defaultdict(int)
    for one in kept:
        needed[one.kind, one.why] += one.size
    for (kind, why), size in needed.items():
        yield f"stays: {format_size(size)} of {kind}: {why}"
