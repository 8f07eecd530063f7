"""From lm-eval's samples to rows: one a checkpoint, task, number of shots, item and metric."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paribus.evaluation.answers import drop_scores, squad_scores
from paribus.evaluation.bits_per_byte import DocumentBits
from paribus.evaluation.suites.benchmark import Generation
from paribus.evaluation.suites.registry import BENCHMARKS

CHOICE_BITS = "choice_bits"
"""Minus the base-2 logarithm of the right choice's share of the choices' probabilities; a fair guess among n has
log2 n."""
TARGET_BITS = "target_bits"
"""Minus the base-2 logarithm of the probability of the text that should follow; lm-eval's perplexity is 2 to the mean
of it."""
ITEMS_SCHEMA = pa.schema(
    [
        ("checkpoint", pa.int64()),
        ("task", pa.string()),
        ("shots", pa.int64()),
        ("item", pa.string()),
        ("doc_hash", pa.string()),
        ("metric", pa.string()),
        ("value", pa.float64()),
    ]
)
HELDOUT_SCHEMA = pa.schema(
    [("checkpoint", pa.int64()), ("document", pa.string()), ("bits", pa.float64()), ("bytes", pa.int64())]
)
TRANSLATIONS_SCHEMA = pa.schema([("checkpoint", pa.int64()), ("document", pa.string()), ("translation", pa.string())])


@dataclass(frozen=True)
class Row:
    """One metric of one item."""

    checkpoint: int
    task: str
    shots: int
    item: str
    doc_hash: str
    metric: str
    value: float


def item_rows(checkpoint: int, task: str, shots: int, samples: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    """Every metric of every sample, in order."""
    benchmark = BENCHMARKS.get(task)
    generation = benchmark.generation if benchmark else None
    for sample in samples:
        values = item_values(sample) | (answer_values(sample, generation) if generation else {})
        for metric, value in values.items():
            yield Row(checkpoint, task, shots, sample["doc"]["id"], sample["doc_hash"], metric, value)


def item_values(sample: Mapping[str, Any]) -> dict[str, float]:
    """lm-eval's metrics of a sample, and ours."""
    values = {metric: float(sample[metric]) for metric in sample["metrics"]}
    if "perplexity" in values:  # lm-eval takes it from the mean of what it calls so
        values[TARGET_BITS] = -values.pop("perplexity") / math.log(2)
    if "gold" in sample["doc"]:
        log_probabilities = [answer[0] for answer in sample["filtered_resps"]]
        values[CHOICE_BITS] = choice_bits(log_probabilities, sample["doc"]["gold"])
    return values


def answer_values(sample: Mapping[str, Any], generation: Generation) -> dict[str, float]:
    """Exact match and F1 of a written answer; nothing where lm-eval's exact match is all there is."""
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


def means(rows: Iterable[Row]) -> dict[tuple[str, int, str], float]:
    """(task, shots, metric) -> mean over items."""
    values: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    for row in rows:
        values[row.task, row.shots, row.metric].append(row.value)
    return {key: math.fsum(group) / len(group) for key, group in values.items()}


def write_items_table(path: Path, rows: Sequence[Row]) -> None:
    """`items.parquet`."""
    pq.write_table(pa.Table.from_pylist([vars(row) for row in rows], schema=ITEMS_SCHEMA), path)


def write_heldout_table(path: Path, documents: Sequence[str], scored: Mapping[int, DocumentBits]) -> None:
    """`heldout.parquet` from the bits of the same documents under each checkpoint."""
    tables = [
        pa.table([[checkpoint] * len(documents), documents, result.bits, result.bytes], schema=HELDOUT_SCHEMA)
        for checkpoint, result in scored.items()
    ]
    pq.write_table(pa.concat_tables(tables), path)


def write_translations(path: Path, documents: Sequence[str], translations: Mapping[int, Sequence[str]]) -> None:
    """`translations.parquet`: checkpoint, document and the translation of its source, of the first documents."""
    columns = [
        (checkpoint, document, text)
        for checkpoint, texts in translations.items()
        for document, text in zip(documents, texts, strict=False)
    ]
    steps, names, texts = zip(*columns, strict=True)
    pq.write_table(pa.table([list(steps), list(names), list(texts)], schema=TRANSLATIONS_SCHEMA), path)
