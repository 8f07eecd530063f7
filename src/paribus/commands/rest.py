"""What a command leaves to be made where `until` ends its runs early."""

from collections.abc import Sequence

from rich.console import Console

from paribus.config.arguments import Command
from paribus.config.compose import Composition
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.recorder import STOPPED, is_done, read_state
from paribus.pipeline.root import OutputRoot

UNTIL = "until"


def is_made(run: PreparedRun, root: OutputRoot) -> bool:
    """Whether nothing of what a command wants of a run is left to be made."""
    return is_done(run.run_id, run.nodes, root, run.job.config.until)


def stopped_early(runs: Sequence[PreparedRun], root: OutputRoot) -> list[PreparedRun]:
    """The runs that ended after the stage that they were to end after."""
    return [run for run in runs if read_state(root, run).status == STOPPED]


def show_rest(command: Command, composition: Composition, runs: Sequence[PreparedRun], console: Console) -> None:
    """Say what is left of runs that stopped, and the command that makes it; nothing where none did."""
    root = OutputRoot.of(composition.jobs[0].config)
    if not (left := stopped_early(runs, root)):
        return
    nodes = [node for run in left for node in run.nodes.values()]
    stages = dict.fromkeys(node.name for node in nodes if root.store.find(*node.place) is None)
    given = retyped(command, without=UNTIL, multirun=composition.multirun)
    told = f"{len(left)} of {len(runs)} stopped early, without {', '.join(stages)}; the rest is made by\n  {given}"
    console.print(told, markup=False, soft_wrap=True)


def retyped(command: Command, *, without: str | None = None, multirun: bool, verb: str = "run") -> str:
    """`paribus run`, or another `verb`, of a command's overrides `without` those of one field."""
    kept = [override for override in command.overrides if override.lstrip("+").partition("=")[0] != without]
    return Command(command.flags, tuple(kept)).typed(verb, multirun=multirun)
