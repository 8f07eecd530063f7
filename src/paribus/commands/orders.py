"""The verb `paribus orders`: what orderings do to contexts."""

from rich.console import Console

from paribus.checks import compose_command
from paribus.config.arguments import Command
from paribus.pipeline.graph import build_graph
from paribus.pipeline.prepared import PreparedRun, labels
from paribus.pipeline.root import ORDERS, OutputRoot
from paribus.pipeline.run import check, make, note_made_of
from paribus.store.artifacts import Artifact


def orders_command(command: Command, console: Console) -> int:
    """Make what is missing up to the orders, and print and write their table."""
    from paribus.reporting.data_reports import few_documents, write_order_report
    from paribus.reporting.data_tables import OrderRow

    composition = compose_command(command)
    targets = ("context_statistics",)
    for job in composition.jobs:
        check(job.config, targets)
    runs = [
        PreparedRun(job, build_graph(job.config, OutputRoot.of(job.config).cache, targets=targets))
        for job in composition.jobs
    ]
    rows: dict[str, OrderRow] = {}
    all_made: list[Artifact] = []
    named = labels(runs) if len(runs) > 1 else [run.job.config.ordering.kind for run in runs]
    for label, run in zip(named, runs, strict=True):
        made = make(run.job.config, targets, asked_by=ORDERS)
        all_made += made.values()
        statistics = made["context_statistics"]
        if statistics.key not in rows:
            order, embeddings = made["order"].record()["result"], made["embeddings"].key
            rows[statistics.key] = OrderRow.read(label, statistics.path, order, embeddings)
    directory = OutputRoot.of(composition.jobs[0].config).data_report(ORDERS, sorted(rows))
    head = ", ".join(composition.factors) or ("seed" if len(runs) > 1 else "ordering")
    note_made_of(directory, all_made)
    console.print(write_order_report(list(rows.values()), directory, head))
    if few := few_documents(list(rows.values())):
        console.print(few, style="yellow", markup=False, soft_wrap=True)
    console.print(f"table, numbers and plots: {directory}", markup=False, soft_wrap=True)
    return 0
