"""The verb `paribus clean`: free disk without losing a number, and find damage."""

from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial

from rich.console import Console
from rich.table import Table
from rich.text import Text

from paribus.commands import RUNS
from paribus.config.arguments import read_options
from paribus.config.units import format_size
from paribus.errors import ConfigurationError
from paribus.pipeline.clean import Cleaning, Removal, clean, examine, remove_leftovers
from paribus.pipeline.records import find, is_reference
from paribus.pipeline.root import OutputRoot, named_root

YES, VERIFY = "--yes", "--verify"
HELP = f"""usage: paribus clean [RUNS ...] [--yes] [root=paribus_runs]
       paribus clean --verify [root=paribus_runs]

List what can be removed from an output root, with sizes; --yes removes it. Tables, scores and reports are unchanged.

Without RUNS: artefacts that no run and no report of `paribus tokens` or `paribus orders` uses, and unfinished work that
no recorded run will resume; not vocabularies and trainings. --yes removes what killed processes left, too.
With RUNS: weights and optimizer states of finished runs, and every artefact but vocabularies of runs that failed, were
interrupted or stopped at `until`. What other runs of the root use or start from stays, and so do records.
Other roots are not seen: name no run that one of them starts from.
{RUNS}

Refused where a record cannot be read, where artifacts/ is a link or no runs/ is beside it, and while a process makes
something for no recorded run.

--verify hashes every artefact and moves damaged ones to artifacts/damaged/; the same `paribus run` makes them again.

  paribus clean
  paribus clean --yes
  paribus clean last --yes root=my/runs

exit status: 0; 1 damage was found; 2 refused
"""


def clean_command(arguments: Sequence[str], console: Console) -> int:
    """`paribus clean [RUNS ...] [--yes]` or `--verify`; ConfigurationError for unknown names and unreadable records."""
    names, root = parse(arguments)
    say = partial(console.print, markup=False, soft_wrap=True)
    if not root.is_used:
        raise ConfigurationError(f"root: {str(root.path)!r} is no output root; name one with root=...")
    if VERIFY in arguments:
        return examine(root.store, say)
    cleaning = Cleaning.of(root)
    named = {run for name in names for run in _runs(name, root, cleaning)}
    if YES in arguments:
        removals = clean(root, named) if named or not names else []
        say(f"removed {_total(removals)}, and leftovers of killed processes: {remove_leftovers(root.store)}")
    else:
        removals = cleaning.of_runs(named) if names else cleaning.unused()
        say(f"{_total(removals)} can be removed ({YES}):" if removals else "nothing can be removed")
    sizes: Counter[str] = Counter()
    for removal in removals:
        sizes[removal.kind] += removal.size
    counts = Counter(removal.kind for removal in removals)
    for kind, size in sizes.most_common():
        say(f"  {format_size(size):>10}  {kind} ({counts[kind]:,})")
    if not names:
        _show_runs(cleaning, console)
    return 0


def parse(arguments: Sequence[str]) -> tuple[list[str], OutputRoot]:
    """The names of runs and the output root of a command; ConfigurationError for unknown arguments."""
    names = [argument for argument in arguments if is_reference(argument)]
    flags = [argument for argument in arguments if argument in (YES, VERIFY)]
    options = [argument for argument in arguments if argument not in (*names, *flags)]
    if unknown := [option for option in options if option.startswith("-")]:
        raise ConfigurationError(f"{unknown[0]} is no flag of paribus clean; known: {YES}, {VERIFY}")
    if VERIFY in flags and (names or YES in flags):
        raise ConfigurationError(f"{VERIFY} looks at all artefacts and removes none; give it alone")
    return names, named_root(read_options(options, ("root",)).get("root"))


def _runs(name: str, root: OutputRoot, cleaning: Cleaning) -> set[str]:
    """Recorded runs that a name means; one that no sweep has is named by its whole identifier."""
    runs = cleaning.inventory.runs.keys()
    return {name} if name in runs else {run.run_id for run in find(name, root.path).runs} & runs


def _total(removals: Collection[Removal]) -> str:
    return format_size(sum(removal.size for removal in removals))


def _show_runs(cleaning: Cleaning, console: Console) -> None:
    """Print what each run alone uses; what runs share stands at none of them."""
    table = Table(title="removed by `paribus clean ID --yes`", title_justify="left", box=None, pad_edge=False)
    for heading in ("id", "state", "size", "run"):
        table.add_column(heading, justify="right" if heading == "size" else "left", overflow="fold")
    for name, run in cleaning.inventory.runs.items():
        if removals := cleaning.of_runs([name]):
            table.add_row(name, run.state, _total(removals), Text(run.name))
    if table.row_count:
        console.print(table)
