"""The columns a table can have, and each run's values for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from paribus.reporting.frame import RunRecord, Scores, accuracy, bits_per_byte, choose_metric, stratified
from paribus.reporting.significance import Vector

Kind = Literal["accuracy", "bits_per_byte", "ratio", "count", "size", "flops", "hours", "loss"]


@dataclass(frozen=True)
class Part:
    """One task of an accuracy: the shot counts and the metric that enter it."""

    task: str
    shots: tuple[int, ...]
    metric: str


@dataclass(frozen=True)
class Column:
    """One measure: where its values come from, how they read, and which direction is better."""

    key: str
    group: str
    label: str
    kind: Kind
    better: Literal["higher", "lower"] | None = None
    parts: tuple[Part, ...] = ()
    field: str = ""
    """Key of the training result or of the scores' statistics."""
    main: bool = True
    """Whether it stays where there is little room."""

    @property
    def scored(self) -> bool:
        """Whether it is a mean over items or documents, so that it has a standard error and a test."""
        return self.kind in ("accuracy", "bits_per_byte")


STATISTICS = (
    Column("bytes_per_token", "Text", "bytes / token", "ratio", "higher", field="bytes_per_token"),
    Column("tokens_per_word", "Text", "tokens / word", "ratio", "lower", field="tokens_per_word", main=False),
    Column("entropy", "Text", "entropy", "ratio", field="entropy", main=False),
    Column("redundancy", "Text", "redundancy", "ratio", field="redundancy", main=False),
    Column("renyi_efficiency", "Text", "Rényi efficiency", "ratio", field="renyi_efficiency", main=False),
    Column("unused_tokens", "Text", "unused tokens", "count", field="unused_tokens", main=False),
)
TRAINING = (
    Column("tokens", "Training", "tokens", "count", field="tokens"),
    Column("text_bytes", "Training", "text", "size", field="text_bytes"),
    Column("final_loss", "Training", "final loss", "loss", field="final_loss"),
    Column("epochs", "Training", "epochs", "ratio", field="epochs", main=False),
    Column("steps", "Training", "steps", "count", field="steps", main=False),
    Column("parameters", "Training", "parameters", "count", field="parameters"),
    Column("flops", "Training", "FLOPs", "flops", field="flops"),
    Column("device_hours", "Training", "device-hours", "hours", field="device_hours", main=False),
)


def columns_of(scores: Sequence[Scores], training: Sequence[Mapping[str, Any]]) -> list[Column]:
    """The columns for which at least one run has a value: accuracies, bits per byte, statistics, training."""
    columns = _accuracy_columns(scores)
    if any(len(score.heldout) for score in scores):
        columns.append(Column("bits_per_byte", "Held-out text", "bits / byte", "bits_per_byte", "lower"))
    columns += [column for column in STATISTICS if any(column.field in score.statistics for score in scores)]
    columns += [column for column in TRAINING if any(column.field in result for result in training)]
    return columns


def measure(column: Column, run: RunRecord, scores: Scores | None) -> Vector | None:
    """The run's values for a column: shape (items,) for scores, (1,) for a number of the whole run, None for none.

    The mean of the values is the run's number; of an accuracy over several shots or tasks, the mean of their means.
    """
    if column in TRAINING:
        return _number(run.training.get(column.field))
    if scores is None:
        return None
    if column.kind == "bits_per_byte":
        return bits_per_byte(scores)
    if column.kind != "accuracy":
        return _number(scores.statistics.get(column.field))
    tasks = [_task_accuracy(scores, part) for part in column.parts]
    present = [values for values in tasks if values is not None]
    if len(present) < len(tasks):
        return None
    return present[0] if len(present) == 1 else stratified(present)


def _task_accuracy(scores: Scores, part: Part) -> Vector | None:
    """Each item's score averaged over shots; where shots were scored on different items, the mean of their means."""
    by_shots = [accuracy(scores, part.task, shots, part.metric) for shots in part.shots]
    present = [lines for lines in by_shots if lines is not None]
    if len(present) < len(by_shots):
        return None
    values: list[Vector] = [np.asarray(lines, dtype=np.float64) for lines in present]
    if all(lines.index.equals(present[0].index) for lines in present):
        mean: Vector = np.mean(values, axis=0)
        return mean
    return stratified(values)


def _accuracy_columns(scores: Sequence[Scores]) -> list[Column]:
    available: dict[str, dict[int, set[str]]] = {}
    for score in scores:
        for task, shots, metric in score.items[["task", "shots", "metric"]].drop_duplicates().itertuples(index=False):
            available.setdefault(task, {}).setdefault(int(shots), set()).add(metric)
    columns: list[Column] = []
    for task in sorted(available):
        metric = choose_metric(sorted(set.union(*available[task].values())))
        columns += _task_columns(Part(task, tuple(sorted(available[task])), metric))
    if len(available) > 1:
        parts = tuple(column.parts[0] for column in columns if column.key.endswith("/mean"))
        columns.append(Column("average", "All tasks", "mean", "accuracy", "higher", parts))
    return columns


def _task_columns(part: Part) -> list[Column]:
    group = part.task if part.metric == "acc" else f"{part.task} ({part.metric})"
    whole = Column(f"{part.task}/mean", group, "mean", "accuracy", "higher", (part,))
    if len(part.shots) == 1:
        return [replace(whole, label=f"{part.shots[0]}-shot")]
    apart = [
        replace(whole, key=f"{part.task}/{shots}_shot", label=f"{shots}-shot", parts=(replace(part, shots=(shots,)),))
        for shots in part.shots
    ]
    return [*apart, whole]


def _number(value: Any) -> Vector | None:
    return None if value is None else np.array([float(value)])
