"""The verbs that make the tables of what `until` ends at before a training, which `paribus report` has none of."""

from collections.abc import Mapping, Sequence

from rich.console import Console

from paribus.commands.rest import UNTIL, retyped
from paribus.config.arguments import Command
from paribus.config.compose import Composition
from paribus.config.groups.execution import RunStage
from paribus.errors import ConfigurationError
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.recorder import read_state
from paribus.pipeline.root import OutputRoot

TOKENS, ORDERS = "tokens statistics", "orders"
VERBS: Mapping[RunStage, str] = {
    "vocabulary": TOKENS,
    "tokens": TOKENS,
    "embeddings": ORDERS,
    "neighbours": ORDERS,
    "lexical_neighbours": ORDERS,
    "duplicates": ORDERS,
    "order": ORDERS,
    "contexts": ORDERS,
}
"""Stage -> the verb whose table is of what is made up to it."""


def show_verb_of_table(
    command: Command, composition: Composition, runs: Sequence[PreparedRun], console: Console
) -> None:
    """Say with which command the table of what `until` ends at is made; nothing where models are its end.

    ConfigurationError, with the same words, where no run is done, of which a report would be.
    """
    until = composition.jobs[0].config.until
    if until is None or until not in VERBS:
        return
    typed = retyped(command, without=UNTIL, multirun=composition.multirun, verb=VERBS[until])
    told = f"{UNTIL}={until} ends before the models that a report compares; the table of what is there then: {typed}"
    root = OutputRoot.of(composition.jobs[0].config)
    if not any(read_state(root, run).status == "done" for run in runs):
        raise ConfigurationError(told)
    console.print(told, style="dim", markup=False, soft_wrap=True)
