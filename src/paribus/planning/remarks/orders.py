"""Orders of one corpus that read different documents, and searches for neighbours that take many core-hours."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from paribus.config.groups.budget import EqualTextBudget
from paribus.config.identity import digest
from paribus.config.units import LEAST_SAMPLE, format_count, format_hours, rounded_up_size
from paribus.ordering.search_plan import DEFAULT_PROBES, FEWEST_QUANTIZED, plan_search
from paribus.pipeline.graph import Node
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepared_run import PreparedRun
from paribus.planning.length import Length, corpus_text, known_text, known_vocabulary_size, planned_length

ENOUGH_EPOCHS = 0.9
"""From here on orders of one corpus have most of their documents in common."""
MANY_CORE_HOURS = 100
DOCUMENT_BYTES, DIMENSIONS = 6_400, 768
SECONDS_A_SHARD, SECONDS_A_CODE, SECONDS_TO_ADD = 1.47e-3, 290e-9, 1.33e-3
"""Seconds of one core for a document of `DOCUMENT_BYTES` and `DIMENSIONS`, measured in docs/scale.md."""


def remarks_on_orders(runs: Sequence[PreparedRun], root: OutputRoot) -> Iterator[str]:
    """Remark that orders read different documents, with the remedy, and that neighbours take many core-hours."""
    yield from _long_searches(runs, root)
    orders: dict[tuple[int, str], set[str]] = defaultdict(set)
    for run in runs:
        orders[_corpus(run)].add(_way(run.nodes["order"]))
    compared = [(run, _length(run, root)) for run in runs if len(orders[_corpus(run)]) > 1]
    known = [epochs for run, length in compared if (epochs := _epochs(run, length)) is not None]
    if min(known, default=1.0) < ENOUGH_EPOCHS:
        told = f"the orders each read different documents, since the budget covers {_share(min(known))} of the corpus"
    elif len(known) < len(compared):
        told = "the orders may each read different documents, since the budget may not cover the corpus"
    else:
        return
    yield f"{told}: corpus.sample={_sample(compared)} chooses them before they are ordered"


def _long_searches(runs: Sequence[PreparedRun], root: OutputRoot) -> Iterator[str]:
    """Warn of missing neighbours that a quantized index, which is searched on CPUs, takes long to find."""
    for node, run in {node.place: (node, run) for run in runs if (node := run.wanted.get("neighbours"))}.values():
        corpus, config = corpus_text(run, root), run.job.config.neighbours
        documents = corpus["documents"] if corpus else round(_length(run, root).text_bytes / DOCUMENT_BYTES)
        if documents < FEWEST_QUANTIZED or root.store.find(*node.place):
            continue
        plan = plan_search(documents, DIMENSIONS, replace(config, code_size=None))
        if plan.index != "ivf_pq":
            continue
        codes = documents * (plan.probes or DEFAULT_PROBES) / plan.lists
        shards = -(-documents // config.shard_documents)
        seconds = SECONDS_TO_ADD + shards * SECONDS_A_SHARD + codes * SECONDS_A_CODE
        if (hours := documents * seconds / 3600) > MANY_CORE_HOURS:
            yield (
                f"neighbours: {plan.lists:,} quantized lists of ~{format_count(documents)} documents take about "
                f"{format_hours(hours)} core-hours (docs/scale.md); neighbours=exact compares them on GPUs"
            )


def _length(run: PreparedRun, root: OutputRoot) -> Length:
    config = run.job.config
    size = known_vocabulary_size(config, run.nodes["vocabulary"], root)
    return planned_length(config, size, known_text(run, root))


def _corpus(run: PreparedRun) -> tuple[int, str]:
    """What two runs have in common whose orders are compared."""
    return run.job.config.seed, run.nodes["corpus"].key


def _way(order: Node) -> str:
    """How an order is made, whatever seed it is drawn by."""
    settings = {name: value for name, value in order.identity["identity"].items() if name != "seeds"}
    return digest([settings, order.identity["inputs"]])


def _epochs(run: PreparedRun, length: Length) -> float | None:
    """The part of its corpus that a run reads; None where nothing says."""
    sample = run.job.config.corpus.sample
    # Of a corpus that is not there yet, a sample in bytes says how much text it will have, or it has less.
    chosen = length.text_bytes / sample if isinstance(sample, int) else None
    return chosen if length.epochs is None else length.epochs


def _share(epochs: float) -> str:
    return f"{epochs:.0%}".replace("%", " %") if epochs >= 0.01 else "less than 1 %"


def _sample(compared: Sequence[tuple[PreparedRun, Length]]) -> str:
    """A sample of as much text as the runs read, as it is typed."""
    if all(isinstance(run.job.config.budget, EqualTextBudget) for run, _ in compared):
        return "'${budget.text}'"
    return rounded_up_size(max(LEAST_SAMPLE, *(length.text_bytes for _, length in compared)))
