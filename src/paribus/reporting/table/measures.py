"""The columns a table can have, and each run's values for them."""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from paribus.reporting.significance.items import Matrix, Vector
from paribus.reporting.table.scores import RunScores

Kind = Literal[
    "accuracy", "percent", "bits_per_byte", "perplexity", "score", "ratio", "count", "size", "flops", "hours", "loss"
]  # fmt: skip
"""`accuracy` is a share, shown in %; `percent` one of a whole corpus, whose items have linearised values; `perplexity`
is measured and tested in bits, and shown as 2 to their mean; `score` is any other number that items have."""
Better = Literal["higher", "lower"]


@dataclass(frozen=True)
class Metric:
    """A metric that tasks are reported by."""

    better: Better
    family: str
    """Metrics of one family measure alike: the average over tasks is of one."""
    source: str = ""
    """The metric of items that it is computed from, where that has another name."""


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "acc": Metric("higher", "accuracy"),
        "exact_match": Metric("higher", "exact match"),
        "em": Metric("higher", "exact match"),
        "f1": Metric("higher", "F1"),
        "acc_norm": Metric("higher", "accuracy"),
        "acc_bytes": Metric("higher", "accuracy"),
        "precision": Metric("higher", "precision"),
        "recall": Metric("higher", "recall"),
        "mcc": Metric("higher", "Matthews correlation"),
        "bleu": Metric("higher", "BLEU"),
        "tokenized_bleu": Metric("higher", "tokenized BLEU"),
        "chrf": Metric("higher", "chrF"),
        "rouge_geometric_mean": Metric("higher", "ROUGE"),
        "rouge1": Metric("higher", "ROUGE-1"),
        "rouge2": Metric("higher", "ROUGE-2"),
        "rougeL": Metric("higher", "ROUGE-L"),
        "bits_per_byte": Metric("lower", "bits per byte"),
        "choice_bits": Metric("lower", "bits of the right choice"),
        "target_bits": Metric("lower", "bits of the target"),
        "perplexity": Metric("lower", "perplexity", source="target_bits"),
        "word_f1": Metric("higher", "F1 of words"),
        "word_precision": Metric("higher", "precision of words"),
        "word_recall": Metric("higher", "recall of words"),
    }
)
"""Known metrics, those that a task is rather reported by first."""


PERCENT: Mapping[str, str] = MappingProxyType(
    {
        "bleu": "BLEU",
        "tokenized_bleu": "tokenized BLEU",
        "rouge_geometric_mean": "ROUGE",
        "word_precision": "precision",
        "word_recall": "recall",
        "word_f1": "F1",
    }
)
"""Metrics of a whole corpus, and the labels of their columns."""
WORDS = ("word_precision", "word_recall", "word_f1")
"""What a segmented corpus is reported by: none says much alone."""
BESIDE: Mapping[str, str] = MappingProxyType({"bleu": "tokenized_bleu"})
"""What a task is reported by beside the metric that it is rather reported by."""


@dataclass(frozen=True)
class MeasuredTask:
    """One task of a column: the shot counts and the metric that enter it."""

    task: str
    shots: tuple[int, ...]
    metric: str

    @property
    def scored(self) -> str:
        """The metric of items that its values are."""
        known = METRICS.get(self.metric)
        return known.source if known and known.source else self.metric

    @property
    def family(self) -> str:
        """What its metric measures, in words."""
        known = METRICS.get(self.metric)
        return known.family if known else self.metric

    @property
    def better(self) -> Better | None:
        """Which direction of its metric is better; None where nobody said."""
        known = METRICS.get(self.metric)
        return known.better if known else None


@dataclass(frozen=True)
class Column:
    """One measure: where its values come from, how they read, and which direction is better."""

    key: str
    group: str
    label: str
    kind: Kind
    better: Better | None = None
    parts: tuple[MeasuredTask, ...] = ()
    field: str = ""
    """Key of a training's result or an evaluation's statistics; of bits per byte the set of texts, none of held-out."""
    main: bool = True
    """Whether it stays where there is little room."""
    decimals: int | None = None
    """Digits after the point; None for those of its kind."""

    @property
    def scored(self) -> bool:
        """Whether it is a mean over items or documents, so that it has a standard error and a test."""
        return self.kind in ("accuracy", "percent", "bits_per_byte", "perplexity", "score")

    @property
    def of_model(self) -> bool:
        """Whether it is of trained models, so that another seed would change it."""
        if self.parts:
            return any(part.metric not in WORDS for part in self.parts)
        return self.scored or self.kind == "loss" or self.key == UNIFORMITY.key

    @property
    def factor(self) -> float:
        """What a value is multiplied by to be shown."""
        return 100.0 if self.kind in ("accuracy", "percent") else 1.0

    @property
    def families(self) -> tuple[str, ...]:
        """What its tasks are reported by, in words."""
        return tuple(dict.fromkeys(part.family for part in self.parts))


BITS_PER_BYTE = Column("bits_per_byte", "Held-out text", "bits / byte", "bits_per_byte", "lower")


HELDOUT_SETS: Mapping[str, str] = MappingProxyType({"heldout_clean": "clean", "heldout_concatenated": "concatenated"})
"""Sets of texts that are held-out documents of the corpus, and the labels of their columns."""


CONCATENATED = "_concatenated"
"""Ends the name of a set of texts that stand end to end in random order."""
_PERPLEXITY = "perplexity"


def of_texts(name: str, named: Mapping[str, str]) -> Column:
    """The column of a set of texts, in bits a byte; `named` has what sets are called."""
    if name in HELDOUT_SETS:
        return replace(BITS_PER_BYTE, key=f"{name}/bits_per_byte", label=HELDOUT_SETS[name], field=name)
    whole = name.removesuffix(CONCATENATED)
    label = "bits / byte" if whole == name else "end to end"
    return Column(f"{name}/bits_per_byte", named.get(whole, whole), label, "bits_per_byte", "lower", field=name)


def perplexity_of_texts(texts: Column) -> Column:
    """The same in perplexity a token, which only rows that cut the texts alike share."""
    return replace(texts, key=f"{texts.field}/{_PERPLEXITY}", label=_PERPLEXITY, kind="perplexity")


STATISTICS = (
    Column("bytes_per_token", "Text", "bytes / token", "ratio", "higher", field="bytes_per_token"),
    Column("tokens_per_word", "Text", "tokens / word", "ratio", "lower", field="tokens_per_word", main=False),
    Column("entropy", "Text", "entropy", "ratio", field="entropy", main=False),
    Column("redundancy", "Text", "redundancy", "ratio", field="redundancy", main=False),
    Column("renyi_efficiency", "Text", "Rényi efficiency", "ratio", field="renyi_efficiency", main=False),
    Column("unused_tokens", "Text", "unused tokens", "count", field="unused_tokens", main=False),
)
UNIFORMITY = Column("uniformity", "Embeddings", "uniformity", "ratio", main=False)
STEPS = Column("steps", "Training", "steps", "count", field="steps", main=False)
BATCH_BYTES = Column("batch_bytes", "Training", "text / step", "size", field="batch_bytes", main=False)
CONTEXT_BYTES = Column("context_bytes", "Training", "text / context", "size", field="context_bytes", main=False)
TRAINING = (
    Column("tokens", "Training", "tokens", "count", field="tokens"),
    Column("text_bytes", "Training", "text", "size", field="text_bytes"),
    Column("final_loss", "Training", "final loss", "loss", field="final_loss"),
    Column("epochs", "Training", "epochs", "ratio", field="epochs", main=False),
    STEPS,
    BATCH_BYTES,
    CONTEXT_BYTES,
    Column("parameters", "Training", "parameters", "count", field="parameters"),
    Column("flops", "Training", "FLOPs", "flops", field="flops"),
    Column("device_hours", "Training", "device-hours", "hours", field="device_hours", main=False),
)


def measure(column: Column, training: Mapping[str, Any], scores: RunScores | None) -> Matrix | None:
    """A run's values for a column, by the result of its training and its scores; None for none.

    Shape (checkpoints, items) for what is scored, (1, 1) for a number of the whole run. The mean of the values is the
    run's number; of a column over several shots or tasks, the mean of their means.
    """
    if column.group == "Training":
        return _number(training.get(column.field))
    if scores is None:
        return None
    if column.parts:
        tasks = [_task(scores, part) for part in column.parts]
        return None if any(values is None for values in tasks) else stratified([v for v in tasks if v is not None])
    if column.key == UNIFORMITY.key:
        return _number(scores.uniformity.get("used"))
    if column.kind in ("bits_per_byte", "perplexity"):
        texts = scores.texts.get(column.field) if column.field else scores.heldout
        sizes = None if texts is None else texts.bytes if column.kind == "bits_per_byte" else texts.tokens
        return None if texts is None or sizes is None else bits_by_size(texts.bits, sizes)
    return _number(scores.statistics.get(column.field))


def fewest_items(column: Column, scores: RunScores) -> int | None:
    """Items of the smallest task of a column; None for one that is of no tasks."""
    sizes = [
        scores.blocks[key].values.shape[1]
        for part in column.parts
        for key in ((part.task, shots, part.scored) for shots in part.shots)
        if key in scores.blocks
    ]
    return min(sizes, default=None)


def perplexity(bits: float) -> float:
    """2 to the power of mean bits; what no number holds is infinite."""
    return math.inf if bits >= sys.float_info.max_exp else 2.0**bits


def bits_by_size(bits: Matrix, sizes: Vector) -> Matrix | None:
    """A value for each checkpoint and document, whose mean is total bits / total size (bytes or tokens).

    The ratio of two sums is not a mean of per-document ratios. These are its linearised (delta method) values
    R + (bits - R * size) / mean(size): their mean is R, and their spread gives R's standard error and paired tests.
    """
    total = float(sizes.sum())
    if total <= 0:
        return None
    ratio = bits.sum(axis=1, keepdims=True) / total
    values: Matrix = ratio + (bits - ratio * sizes) / sizes.mean()
    return values


def stratified(parts: Sequence[Matrix]) -> Matrix:
    """A value for each item of several groups (checkpoints, items each), whose mean is the mean of the groups' means.

    Items of a small group weigh more, as each group weighs the same; the spread within groups gives the standard error.
    """
    if len(parts) == 1:
        return parts[0]
    total, groups = sum(part.shape[1] for part in parts), len(parts)
    means = [part.mean(axis=1, keepdims=True) for part in parts]
    centre = np.mean(means, axis=0)
    weighted = [total / (groups * part.shape[1]) * (part - mean) for part, mean in zip(parts, means, strict=True)]
    return np.concatenate([centre + values for values in weighted], axis=1)


def share(values: Sequence[Matrix]) -> bool:
    """Whether these scores are shares of one, so that they read as percentages."""
    finite = [value[np.isfinite(value)] for value in values]
    return all(not len(value) or (value.min() >= 0 and value.max() <= 1) for value in finite)


def choose_metric(available: Sequence[str]) -> str:
    """The metric a task is reported by: accuracy where it has one, as the papers do."""
    return next((metric for metric in METRICS if metric in available), min(available))


def finite(value: float | None) -> bool:
    """Whether there is a number and it is finite."""
    return value is not None and math.isfinite(value)


def _task(scores: RunScores, part: MeasuredTask) -> Matrix | None:
    """Each item's score averaged over shots; where shots were scored on different items, the mean of their means."""
    blocks = [scores.blocks.get((part.task, shots, part.scored)) for shots in part.shots]
    present = [block for block in blocks if block is not None]
    if not present or len(present) < len(blocks):
        return None
    if all(block.items == present[0].items for block in present):
        mean: Matrix = np.mean([block.values for block in present], axis=0)
        return mean
    return stratified([block.values for block in present])


def _number(value: Any) -> Matrix | None:
    return None if value is None else np.array([[float(value)]])
