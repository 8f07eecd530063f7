"""The stage `neighbours`: embeddings -> the nearest documents of each, with how many of them the index found."""

from pathlib import Path
from typing import Any

import numpy as np

from paribus.native.loader import compile_kernels
from paribus.native.registry import RANKING
from paribus.ordering.embed.artifact import Embeddings
from paribus.ordering.neighbours.blocks import Blocks
from paribus.ordering.neighbours.lists import NeighbourLists, create_lists
from paribus.ordering.neighbours.recall import RECALLED
from paribus.ordering.neighbours.search import NeighbourSearch
from paribus.stage import JSON, StageContext


def build(context: StageContext) -> dict[str, JSON]:
    """Write `neighbours.npy`, (n, k) int32, and `similarities.npy`, (n, k) float32."""
    config, report = context.config.neighbours, context.report
    compile_kernels(RANKING, report)
    embeddings = Embeddings(context.inputs["embeddings"])

    def progress(done: float, total: float, doing: str) -> None:
        report.progress(done, total, unit="blocks", doing=doing)

    plan, blocks, sample = NeighbourSearch(embeddings, config, context.engine, context.work, progress).run()
    _collect(blocks, context.output)
    lists = NeighbourLists(context.output)
    return {
        "documents": lists.count,
        "index": plan.index,
        "lists": plan.lists,
        "probes": plan.probes,
        "code_size": plan.code_size,
        "recall": sample.recall(lists),
        "recall_at": min(RECALLED, config.retrieved),
        "recall_sample": len(sample.documents),
        **_nearest(lists),
    }


def _collect(blocks: Blocks, output: Path) -> None:
    ids, similarities = create_lists(output, blocks.documents, blocks.width)
    for block in range(blocks.count):
        part = slice(*blocks.bounds(block))
        ids[part], similarities[part] = blocks.read(block)
    for array in (ids, similarities):
        flush: Any = getattr(array, "flush", None)
        if flush is not None:
            flush()


def _nearest(lists: NeighbourLists) -> dict[str, JSON]:
    linked = lists.ids[:, 0] >= 0
    nearest = lists.similarities[linked, 0]
    return {
        "without_neighbours": int(lists.count - linked.sum()),
        "mean_similarity_of_nearest": float(nearest.mean(dtype=np.float64)) if len(nearest) else 0.0,
    }
