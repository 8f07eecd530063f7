"""The verb `paribus order`: what orderings do to contexts, when a document is read, and what is near to it."""

from collections.abc import Callable, Sequence

from rich.console import Console

from paribus.config.arguments import parse
from paribus.config.compose import compose_command, show_with_hydra
from paribus.config.groups.ordering import LexicalOrdering
from paribus.config.identity import digest
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError
from paribus.pipeline.graph import build_graph
from paribus.pipeline.layout import Layout
from paribus.pipeline.make import make
from paribus.pipeline.prepare import PreparedRun, labels

USAGE = """usage: paribus order statistics [overrides]        -m ordering=... for several
       paribus order where DOCUMENT [overrides]    the steps that read a document, and what it shares contexts with
       paribus order near DOCUMENT [overrides]     the nearest documents, as text

DOCUMENT is an id of the corpus, or #N: document number N, from 0, of the training split.
What is missing of the artefacts up to the order is made; no model is trained.
"""


def order_command(arguments: Sequence[str], console: Console) -> int:
    """`paribus order ACTION [DOCUMENT] [overrides]`; ConfigurationError for an action that is none."""
    actions: dict[str, Callable[[Sequence[str], Console], int]] = {
        "statistics": _statistics,
        "where": _where,
        "near": _near,
    }
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        console.print(USAGE, markup=False, end="")
        return 0 if arguments else 2
    if arguments[0] not in actions:
        raise ConfigurationError(f"{arguments[0]!r} is no action; known: {', '.join(actions)}\n{USAGE}")
    return actions[arguments[0]](arguments[1:], console)


def _statistics(arguments: Sequence[str], console: Console) -> int:
    from paribus.reporting.order_report import OrderRow, write_order_report

    command = parse(arguments)
    if command.shows:
        show_with_hydra(command)
        return 0
    composition = compose_command(command)
    caches = [Layout.of(job.config).cache for job in composition.jobs]
    runs = [
        PreparedRun(job, build_graph(job.config, cache, targets=("contexts",)))
        for job, cache in zip(composition.jobs, caches, strict=True)
    ]
    rows: dict[str, OrderRow] = {}
    for label, run in zip(_row_labels(runs), runs, strict=True):
        made = make(run.job.config, ("contexts",))
        if made["contexts"].key not in rows:
            order, embeddings = made["order"].record()["result"], made["embeddings"].key
            rows[made["contexts"].key] = OrderRow.read(label, made["contexts"].path, order, embeddings)
    directory = Layout.of(composition.jobs[0].config).root / "orders" / digest(sorted(rows))[:16]
    table = write_order_report(list(rows.values()), directory)
    console.print(table)
    console.print(f"table, numbers and plots: {directory}", markup=False, soft_wrap=True)
    return 0


def _row_labels(runs: Sequence[PreparedRun]) -> list[str]:
    """What the runs differ in; a single run differs from nothing and is named by its ordering."""
    return labels(runs) if len(runs) > 1 else [run.job.config.ordering.kind for run in runs]


def _where(arguments: Sequence[str], console: Console) -> int:
    from paribus.pipeline.order_documents import where

    document, config = _document(arguments)
    made = make(config, ("order", "tokens"))
    told = where(document, config, {name: found.path for name, found in made.items()})
    console.print(told, markup=False, end="", soft_wrap=True)
    return 0


def _near(arguments: Sequence[str], console: Console) -> int:
    from paribus.pipeline.order_documents import near

    document, config = _document(arguments)
    stage = "lexical_neighbours" if isinstance(config.ordering, LexicalOrdering) else "neighbours"
    made = make(config, ("corpus", stage))
    console.print(near(document, made["corpus"].path, made[stage].path), markup=False, end="", soft_wrap=True)
    return 0


def _document(arguments: Sequence[str]) -> tuple[int, RunConfig]:
    """Index of the document in the training split, looked up before anything but the corpus is made."""
    from paribus.pipeline.order_documents import find_document

    if not arguments or arguments[0].startswith("-"):
        raise ConfigurationError(f"which document? Give its id in the corpus, or #N\n{USAGE}")
    command = parse(arguments[1:])
    composition = compose_command(command)
    if len(composition.jobs) != 1:
        raise ConfigurationError(f"{len(composition.jobs)} configurations are too many: ask for one at a time")
    config = composition.jobs[0].config
    return find_document(arguments[0], make(config, ("corpus",))["corpus"].path), config
