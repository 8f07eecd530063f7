"""Each run's values for the columns of a table."""

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paribus.reporting.significance.items import Matrix, Vector
from paribus.reporting.table.column import UNIFORMITY, Column, MeasuredTask
from paribus.reporting.table.scores import RunScores


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
