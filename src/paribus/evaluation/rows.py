"""Rows of scores, one a checkpoint, task, number of shots, item and metric, of lm-eval's samples; and their tables.

Exact match and F1 of written answers are by lm-eval's copies of the official scripts. Imports lm_eval.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from lm_eval.tasks.drop.utils import get_metrics
from lm_eval.tasks.qasper.metrics import f1_abstractive, normalize_answer

from paribus.evaluation.benchmarks import BENCHMARKS
from paribus.evaluation.items import Generation
from paribus.evaluation.text import DocumentBits

CHOICE_BITS = "choice_bits"
"""Minus the base-2 logarithm of the right choice's share of the choices' probabilities; a fair guess among n has
log2 n."""
TARGET_BITS = "target_bits"
"""Minus the base-2 logarithm of the probability of the text that should follow; lm-eval's perplexity is 2 to the mean
of it."""
HELDOUT_SCHEMA = pa.schema(
    [("checkpoint", pa.int64()), ("document", pa.string()), ("bits", pa.float64()), ("bytes", pa.int64())]
)
TEXTS_SCHEMA = pa.schema([("text_set", pa.string()), *HELDOUT_SCHEMA, ("tokens", pa.int64())])
TRANSLATIONS_SCHEMA = pa.schema(
    [("checkpoint", pa.int64()), ("task", pa.string()), ("document", pa.string()), ("translation", pa.string())]
)


@dataclass(frozen=True)
class ResultRow:
    """One metric of one item."""

    checkpoint: int
    task: str
    shots: int
    item: str
    doc_hash: str
    metric: str
    value: float


_TYPES: Mapping[Any, pa.DataType] = {int: pa.int64(), str: pa.string(), float: pa.float64()}
ITEMS_SCHEMA = pa.schema([(field.name, _TYPES[field.type]) for field in fields(ResultRow)])


def item_rows(checkpoint: int, task: str, shots: int, samples: Sequence[Mapping[str, Any]]) -> Iterator[ResultRow]:
    """Every metric of every sample, in order; lm-eval gives an item a sample for each of its filters.

    The name of each filter but the first is appended to the names of its metrics.
    """
    benchmark = BENCHMARKS.get(task)
    generation = benchmark.generation if benchmark else None
    for sample in samples:
        values = item_values(sample) | (answer_values(sample, generation) if generation else {})
        suffix = "" if sample["filter"] == samples[0]["filter"] else f"_{sample['filter']}"
        for metric, value in values.items():
            yield ResultRow(checkpoint, task, shots, sample["doc"]["id"], sample["doc_hash"], metric + suffix, value)


def item_values(sample: Mapping[str, Any]) -> dict[str, float]:
    """lm-eval's metrics of a sample, and ours."""
    values = {metric: float(sample[metric]) for metric in sample["metrics"]}
    if "perplexity" in values:  # lm-eval's name for the log-probability whose mean it makes the perplexity of
        values[TARGET_BITS] = -values.pop("perplexity") / math.log(2)
    if "gold" in sample["doc"]:
        log_probabilities = [answer[0] for answer in sample["filtered_resps"]]
        values[CHOICE_BITS] = choice_bits(log_probabilities, sample["doc"]["gold"])
    return values


def answer_values(sample: Mapping[str, Any], generation: Generation) -> dict[str, float]:
    """Exact match and F1 of a written answer; empty where lm-eval's exact match is the only measure."""
    (prediction,), answers = sample["filtered_resps"], sample["doc"]["answers"]
    match generation.measure:
        case "squad":
            return squad_scores(prediction, answers)
        case "drop":
            return drop_scores(prediction, answers)
        case "lm_eval":
            return {}


def choice_bits(log_probabilities: Sequence[float], gold: int) -> float:
    """Bits of the right choice from the choices' natural log-probabilities."""
    top = max(log_probabilities)
    total = top + math.log(sum(math.exp(value - top) for value in log_probabilities))
    return (total - log_probabilities[gold]) / math.log(2)


def means(rows: Iterable[ResultRow]) -> dict[tuple[str, int, str], float]:
    """(task, shots, metric) -> mean over items."""
    values: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    for row in rows:
        values[row.task, row.shots, row.metric].append(row.value)
    return {key: math.fsum(group) / len(group) for key, group in values.items()}


def write_items_table(path: Path, rows: Sequence[ResultRow]) -> None:
    pq.write_table(pa.Table.from_pylist([vars(row) for row in rows], schema=ITEMS_SCHEMA), path)


def write_heldout_table(path: Path, documents: Sequence[str], scored: Mapping[int, DocumentBits]) -> None:
    """Write `heldout.parquet`: the bits of the same documents under each checkpoint."""
    pq.write_table(_bits_table(documents, scored), path)


def write_texts_table(path: Path, sets: Mapping[str, tuple[Sequence[str], Mapping[int, DocumentBits]]]) -> None:
    """Write `texts.parquet`: as `heldout.parquet` for each set of texts, named in the first column, and tokens."""
    tables = []
    for name, (documents, scored) in sets.items():
        bits = _bits_table(documents, scored)
        tokens = np.concatenate([result.tokens for result in scored.values()])
        columns = [pa.array([name] * bits.num_rows), *bits.columns, pa.array(tokens)]
        tables.append(pa.table(columns, schema=TEXTS_SCHEMA))
    pq.write_table(pa.concat_tables(tables), path)


def _bits_table(documents: Sequence[str], scored: Mapping[int, DocumentBits]) -> pa.Table:
    tables = [
        pa.table([[checkpoint] * len(documents), documents, result.bits, result.bytes], schema=HELDOUT_SCHEMA)
        for checkpoint, result in scored.items()
    ]
    return pa.concat_tables(tables)


def write_translations(path: Path, translations: Mapping[tuple[int, str], Mapping[str, str]]) -> None:
    """Write `translations.parquet`: the translation of each document, by checkpoint and task."""
    lines = [
        (checkpoint, task, document, text)
        for (checkpoint, task), texts in translations.items()
        for document, text in texts.items()
    ]
    columns = [list(column) for column in zip(*lines, strict=True)]
    pq.write_table(pa.table(columns, schema=TRANSLATIONS_SCHEMA), path)


Answers = Sequence[Sequence[str]]
"""Accepted answers, each one span of text or several."""


def squad_scores(prediction: str, answers: Answers) -> dict[str, float]:
    """SQuAD v1.1 (Rajpurkar et al. 2016): the best accepted answer counts.

    Case, punctuation, articles and runs of whitespace do not matter; F1 is over words.
    """
    accepted = [", ".join(spans) for spans in answers]
    exact = any(normalize_answer(prediction) == normalize_answer(answer) for answer in accepted)
    return {
        "exact_match": float(exact),
        "f1": max(float(f1_abstractive([prediction], [answer])) for answer in accepted),
    }


def drop_scores(prediction: str, answers: Answers) -> dict[str, float]:
    """DROP (Dua et al. 2019): the best accepted answer counts, its spans aligned with the prediction.

    Numbers are compared as numbers, and F1 is 0 where they differ.
    """
    pairs = [get_metrics([prediction], tuple(spans)) for spans in answers]
    return {"exact_match": max(float(exact) for exact, _ in pairs), "f1": max(float(f1) for _, f1 in pairs)}
