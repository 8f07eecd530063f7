"""How evenly the embeddings are spread of tokens that one of two vocabularies has and the other lacks.

Of BPE beside Scaffold-BPE these are scaffold tokens, and what replaced them (arXiv 2404.17808, Figure 6).
"""

import json
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from paribus.evaluation.models.embeddings import INPUT, TABLE, read_embeddings, uniformity
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.record.run_record import read_run_record
from paribus.pipeline.stages import place_of
from paribus.pipeline.vocabularies import compare_vocabularies
from paribus.reporting.table.frame import RunRecord

OWN_UNIFORMITY = "own_uniformity"


def own_uniformities(
    row: Sequence[RunRecord], base: Sequence[RunRecord], root: OutputRoot
) -> tuple[list[float], list[float]]:
    """Of each run of two rows the uniformity (Wang and Isola 2020) of what the other row's vocabulary lacks.

    Runs whose embeddings are there no longer, or whose scored weights are a mean of checkpoints, are left out.
    """
    overlap = compare_vocabularies([*row, *base])
    if overlap is None:
        return [], []
    mine, theirs = ([_uniformity(run, overlap.own[run.run_id], root) for run in runs] for runs in (row, base))
    return [value for value in mine if value is not None], [value for value in theirs if value is not None]


def _uniformity(run: RunRecord, own: Collection[int], root: OutputRoot) -> float | None:
    """Of its input embeddings at the last scored checkpoint, of the tokens `own` that occur in its held-out text."""
    checkpoint = _checkpoint(run, root)
    if checkpoint is None or run.scores is None:
        return None
    table = pq.read_table(run.scores / TABLE, columns=["id", "count"])
    used = table["id"].to_numpy()[table["count"].to_numpy() > 0]
    chosen = np.intersect1d(used, np.fromiter(own, np.int64, len(own)))
    return uniformity(read_embeddings(checkpoint)[INPUT][chosen])


def _checkpoint(run: RunRecord, root: OutputRoot) -> Path | None:
    record = read_run_record(run.directory)
    if record is None or run.scores is None or run.config["evaluation"].get("average_checkpoints", 1) != 1:
        return None
    training = root.store.find(*place_of("training", record["stages"]["training"]["key"]))
    about = json.loads((run.scores / "statistics.json").read_text(encoding="utf-8"))["embeddings"]
    path = training.path / f"step_{about['checkpoint']:08d}" if training and about else None
    return path if path and path.is_dir() else None
