"""The verb `paribus clean`: free disk without losing a number, and find damage."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import partial

from rich.console import Console
from rich.table import Table
from rich.text import Text

from paribus.config.flags import HELP_FLAGS
from paribus.config.options import read_options
from paribus.config.units import format_size
from paribus.errors import ConfigurationError
from paribus.pipeline.output_root import OutputRoot, named_root
from paribus.pipeline.record.cleaning import Cleaning, Removal, clean
from paribus.pipeline.record.references import find, is_reference
from paribus.store.doctor import examine, remove_leftovers

YES, VERIFY = "--yes", "--verify"
HELP = """usage: paribus clean [RUNS ...] [--yes] [--verify] [root=paribus_runs]

Say what can leave an output root, and how much that is; with --yes, remove it. No table, score or report changes, and
`paribus run` of the same command finds everything done as before.

Without RUNS that is what no record needs: artefacts that neither a run nor a report of `paribus tokens` or `paribus
orders` names, unfinished work that no recorded run goes on with, and what killed processes left.
With RUNS, which are sweeps or runs by identifier, or last, it is what belongs to these alone: of finished ones weights
and optimizer states, which only training brings back; of others all that they made. Their records stay. Name none that
a run of another root starts from: of other roots nothing is known here.

What other runs need or start from stays; so do vocabularies, and trainings that no record names. Where artifacts/ is a
link, or a record cannot be read, nothing is removed.

--verify compares every artefact with its digests and sets damaged ones aside; the same `paribus run` makes them again.

  paribus clean
  paribus clean --yes
  paribus clean last --yes root=my/runs

exit status: 0; 1 damage was found; 2 refused
"""


def clean_command(arguments: Sequence[str], console: Console) -> int:
    """`paribus clean [RUNS ...] [--yes] [--verify]`; ConfigurationError for names that are none, and where it is not
    known what runs need.
    """
    if HELP_FLAGS & set(arguments):
        console.print(HELP, end="", markup=False, highlight=False, soft_wrap=True)
        return 0
    names, root = parse(arguments)
    say = partial(console.print, markup=False, soft_wrap=True)
    if not root.is_used:
        raise ConfigurationError(f"root: {str(root.path)!r} is no output root; name one with root=...")
    status = examine(root.store, say) if VERIFY in arguments else 0
    cleaning = Cleaning.of(root)
    named = {run.run_id for name in names for run in find(name, root.path).runs} & cleaning.keys.keys()
    if YES in arguments:
        removed = clean(root, named) if named or not names else []
        say(f"freed {_total(removed)}:" if removed else "nothing was removed")
        if leftovers := remove_leftovers(root.store):
            say(f"removed {leftovers} leftovers of killed processes")
    else:
        removed = cleaning.of_runs(named) if names else cleaning.unneeded()
        say(f"{_total(removed)} can go; {YES} removes it:" if removed else "nothing can go")
    for line in _by_kind(removed):
        say(line)
    if not names:
        _show_runs(cleaning, console)
    return status


def parse(arguments: Sequence[str]) -> tuple[list[str], OutputRoot]:
    """The names of runs and the output root of a command; ConfigurationError for unknown arguments."""
    names = [argument for argument in arguments if is_reference(argument)]
    others = [argument for argument in arguments if argument not in (*names, YES, VERIFY)]
    return names, named_root(read_options(others, ("root",)).get("root"))


def _total(removals: Collection[Removal]) -> str:
    return format_size(sum(removal.size for removal in removals))


def _by_kind(removals: Collection[Removal]) -> Iterator[str]:
    sizes: Counter[str] = Counter()
    for removal in removals:
        sizes[removal.kind] += removal.size
    counts = Counter(removal.kind for removal in removals)
    for kind, size in sizes.most_common():
        yield f"  {format_size(size):>10}  {kind} ({counts[kind]:,})"


def _show_runs(cleaning: Cleaning, console: Console) -> None:
    """Print what each run has for itself, which goes where it is named."""
    table = Table(title="goes where its run is named", title_justify="left", box=None, pad_edge=False)
    for heading in ("id", "state", "size", "run"):
        table.add_column(heading, justify="right" if heading == "size" else "left", overflow="fold")
    for name, run in cleaning.inventory.runs.items():
        if removals := cleaning.of_runs([name]):
            table.add_row(name, run.state, _total(removals), Text(run.name))
    if table.row_count:
        console.print(table)
