"""The verb `paribus order`: what orderings do to contexts, when a document is read, and what is near to it."""

from collections.abc import Callable, Sequence

from rich.console import Console

from paribus.checks.command import compose_command
from paribus.commands.actions import print_usage, show, split_subject
from paribus.config.arguments import Command, parse
from paribus.config.flags import HELP_FLAGS
from paribus.config.groups.ordering import LexicalOrdering
from paribus.config.identity import digest
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError
from paribus.pipeline.graph import build_graph
from paribus.pipeline.make import check, make, note_made_of
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepared_run import PreparedRun
from paribus.pipeline.record.run_names import labels
from paribus.store.artifact import Artifact

USAGE = """usage: paribus order statistics [overrides]        -m ordering=... for several
       paribus order where DOCUMENT [overrides]    the steps that read a document, and what it shares contexts with
       paribus order near DOCUMENT [overrides]     the nearest documents, as text

DOCUMENT is an id of the corpus, or #N where that is no id: document number N, from 0, of the training split.
An id that begins with a dash stands after --.
What is missing of the artefacts before training is made; no model is trained.

examples:
  paribus order statistics -m experiment=demo ordering=standard,in_context
  paribus order where '#0' experiment=demo ordering=in_context
  paribus order near '#0' experiment=demo ordering=in_context
"""
STATISTICS = "statistics"
ORDERS = "orders"
"""Directory of the output root for reports and logs."""
_Action = tuple[Callable[[int, RunConfig, Console], int], Callable[[RunConfig], tuple[str, ...]]]
"""What shows a document, and the stages that it needs."""


def order_command(arguments: Sequence[str], console: Console) -> int:
    """`paribus order ACTION [DOCUMENT] [overrides]`; ConfigurationError for an action that is none."""
    of_a_document: dict[str, _Action] = {"where": (_where, _where_needs), "near": (_near, _near_needs)}
    if not arguments or arguments[0] in {*HELP_FLAGS, "help"}:
        print_usage(USAGE, console)
        return 0 if arguments else 2
    action, actions = arguments[0], (STATISTICS, *of_a_document)
    if action not in actions:
        raise ConfigurationError(f"{action!r} is no action; known: {', '.join(actions)}\n{USAGE}")
    document, rest = (None, arguments[1:]) if action == STATISTICS else split_subject(arguments[1:])
    command = parse(rest, "order")
    if command.shows:
        return show(command, USAGE, console)
    if action == STATISTICS:
        return _statistics(command, console)
    tell, needs = of_a_document[action]
    return tell(*_find(document, command, needs), console)


def _statistics(command: Command, console: Console) -> int:
    from paribus.reporting.order_report import OrderRow, few_documents, write_order_report

    composition = compose_command(command)
    for job in composition.jobs:
        check(job.config, ("context_statistics",))
    caches = [OutputRoot.of(job.config).cache for job in composition.jobs]
    runs = [
        PreparedRun(job, build_graph(job.config, cache, targets=("context_statistics",)))
        for job, cache in zip(composition.jobs, caches, strict=True)
    ]
    rows: dict[str, OrderRow] = {}
    all_made: list[Artifact] = []
    for label, run in zip(_row_labels(runs), runs, strict=True):
        made = make(run.job.config, ("context_statistics",), asked_by=ORDERS)
        all_made += made.values()
        statistics = made["context_statistics"]
        if statistics.key not in rows:
            order, embeddings = made["order"].record()["result"], made["embeddings"].key
            rows[statistics.key] = OrderRow.read(label, statistics.path, order, embeddings)
    directory = OutputRoot.of(composition.jobs[0].config).path / ORDERS / digest(sorted(rows))[:16]
    head = ", ".join(composition.factors) or ("seed" if len(runs) > 1 else "ordering")
    note_made_of(directory, all_made)
    table = write_order_report(list(rows.values()), directory, head)
    console.print(table)
    if few := few_documents(list(rows.values())):
        console.print(few, style="yellow", markup=False, soft_wrap=True)
    console.print(f"table, numbers and plots: {directory}", markup=False, soft_wrap=True)
    return 0


def _row_labels(runs: Sequence[PreparedRun]) -> list[str]:
    """What the runs differ in; a single run differs from nothing and is named by its ordering."""
    return labels(runs) if len(runs) > 1 else [run.job.config.ordering.kind for run in runs]


def _where_needs(config: RunConfig) -> tuple[str, ...]:
    return ("contexts",)


def _near_needs(config: RunConfig) -> tuple[str, ...]:
    return ("corpus", "lexical_neighbours" if isinstance(config.ordering, LexicalOrdering) else "neighbours")


def _where(document: int, config: RunConfig, console: Console) -> int:
    from paribus.commands.order_documents import where

    made = make(config, _where_needs(config), asked_by=ORDERS)
    told = where(document, config, {name: found.path for name, found in made.items()})
    console.print(told, markup=False, end="", soft_wrap=True)
    return 0


def _near(document: int, config: RunConfig, console: Console) -> int:
    from paribus.commands.order_documents import near

    made = make(config, _near_needs(config), asked_by=ORDERS)
    stage = _near_needs(config)[-1]
    console.print(near(document, made["corpus"].path, made[stage].path), markup=False, end="", soft_wrap=True)
    return 0


def _find(
    document: str | None, command: Command, needs: Callable[[RunConfig], tuple[str, ...]]
) -> tuple[int, RunConfig]:
    """Index of the document in the training split, looked up before anything but the corpus is made."""
    from paribus.commands.order_documents import find_document

    if document is None:
        raise ConfigurationError(f"which document? Give its id in the corpus, or #N\n{USAGE}")
    composition = compose_command(command)
    if len(composition.jobs) != 1:
        raise ConfigurationError(f"{len(composition.jobs)} configurations are too many: ask for one at a time")
    config = composition.jobs[0].config
    check(config, needs(config))
    return find_document(document, make(config, ("corpus",), asked_by=ORDERS)["corpus"].path), config
