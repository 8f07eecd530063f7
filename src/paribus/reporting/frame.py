"""Runs as tidy tables: one line an item, never an aggregate.

Whatever a report shows is computed from these lines, so that every number has an error bar and a test.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from paribus.errors import DataError
from paribus.reporting.significance import Vector

METRICS = ("acc", "acc_norm", "exact_match", "f1")
ITEM_COLUMNS = ("checkpoint", "task", "shots", "item", "doc_hash", "metric", "value")
HELDOUT_COLUMNS = ("checkpoint", "document", "bits", "bytes")


@dataclass(frozen=True)
class RunRecord:
    """What the record of one finished run says; a report is built from these alone."""

    run_id: str
    config: Mapping[str, Any]
    """The full identity configuration as nested JSON, with `seed`."""
    factors: Mapping[str, str]
    """Label of this run at each declared factor: {"tokenizer": "scaffold_bpe"}."""
    environment: Mapping[str, str]
    """Package versions, device, precision, `code_version.<stage>`, `digest.<stage>`."""
    training: Mapping[str, Any]
    """Result of the checkpoints: tokens, text_bytes, steps, epochs, parameters, flops, device_hours, final_loss."""
    scores: Path | None
    """Directory of the `scores` artefact; None where the run has not been evaluated."""
    directory: Path
    """Directory of the run, which cells link to."""
    mlflow_url: str | None = None
    vocabulary: Path | None = None
    """Directory of the `vocabulary` artefact."""
    tokens: Path | None = None
    """Directory of the `tokens` artefact."""

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return int(self.config.get("seed", 0))


@dataclass(frozen=True)
class MissingRun:
    """A combination of factors that was asked for and has no finished run."""

    factors: Mapping[str, str]
    reason: str


@dataclass(frozen=True)
class Scores:
    """Scores of one run, averaged over its last checkpoints."""

    items: pd.DataFrame
    """Columns task, shots, item, doc_hash, metric, value; sorted, one line an item of a task and shot count."""
    heldout: pd.DataFrame
    """Columns document, bits, bytes; sorted, one line a held-out document."""
    statistics: Mapping[str, Any] = field(default_factory=dict)
    """Of the held-out text under the run's tokenizer: bytes_per_token, entropy, redundancy, token_lengths."""
    chance: Mapping[str, float] = field(default_factory=dict)
    """Accuracy of guessing, by task."""
    truncated: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """Items whose prompt was cut to fit the context, by task and shots."""
    checkpoints: int = 0


def load(directory: Path) -> Scores:
    """Read a `scores` artefact; DataError where a file is missing, lacks columns or repeats an item."""
    items = _parquet(directory / "items.parquet", ITEM_COLUMNS)
    heldout = _parquet(directory / "heldout.parquet", HELDOUT_COLUMNS)
    _refuse_repeats(items, ["checkpoint", "task", "shots", "item", "metric"], directory / "items.parquet")
    _refuse_repeats(heldout, ["checkpoint", "document"], directory / "heldout.parquet")
    statistics = _json(directory / "statistics.json")
    tasks: Mapping[str, Mapping[str, Any]] = statistics.get("tasks", {})
    return Scores(
        items=_average(items, ["task", "shots", "item", "doc_hash", "metric"], ["value"], directory / "items.parquet"),
        heldout=_average(heldout, ["document"], ["bits", "bytes"], directory / "heldout.parquet"),
        statistics=statistics.get("heldout", {}),
        chance={task: float(about["chance"]) for task, about in tasks.items() if about.get("chance") is not None},
        truncated={
            (task, int(shots)): int(count)
            for task, about in tasks.items()
            for shots, count in about.get("truncated_prompts", {}).items()
        },
        checkpoints=int(pd.concat([items["checkpoint"], heldout["checkpoint"]]).nunique()),
    )


def frame(runs: Sequence[RunRecord]) -> pd.DataFrame:
    """All items of all runs: run_id, one column a factor, seed, task, shots, item, doc_hash, metric, value."""
    parts = []
    for run in runs:
        if run.scores is None:
            continue
        items = load(run.scores).items.copy()
        labels: dict[str, Any] = {"run_id": run.run_id, **run.factors, "seed": run.seed}
        for position, (name, value) in enumerate(labels.items()):
            items.insert(position, name, value)
        parts.append(items)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def choose_metric(available: Sequence[str]) -> str:
    """The metric a task is reported by: accuracy where it has one, as the papers do."""
    known = [metric for metric in METRICS if metric in available]
    return known[0] if known else min(available)


def accuracy(scores: Scores, task: str, shots: int, metric: str) -> "pd.Series[float] | None":
    """Score of each item, indexed by item; None where the run has none."""
    lines = scores.items
    lines = lines[(lines["task"] == task) & (lines["shots"] == shots) & (lines["metric"] == metric)]
    return None if lines.empty else lines.set_index("item")["value"]


def bits_per_byte(scores: Scores) -> Vector | None:
    """A value for each held-out document, shape (documents,), whose mean is total bits / total bytes.

    The ratio of two sums is not a mean of per-document ratios. These are its linearised (delta method) values
    R + (bits - R * bytes) / mean(bytes): their mean is R, and their spread gives R's standard error and paired tests.
    """
    bits, size = (scores.heldout[name].to_numpy(dtype=np.float64) for name in ("bits", "bytes"))
    if not len(bits) or size.sum() <= 0:
        return None
    ratio = bits.sum() / size.sum()
    values: Vector = ratio + (bits - ratio * size) / size.mean()
    return values


def stratified(parts: Sequence[Vector]) -> Vector:
    """A value for each item of several groups, whose mean is the mean of the groups' means.

    Items of a small group weigh more, as each group weighs the same; the spread within groups gives the standard error.
    """
    total, groups = sum(map(len, parts)), len(parts)
    centre = float(np.mean([part.mean() for part in parts]))
    return np.concatenate([centre + total / (groups * len(part)) * (part - part.mean()) for part in parts])


def _average(table: pd.DataFrame, keys: list[str], columns: list[str], path: Path) -> pd.DataFrame:
    """Means over checkpoints; NaN stays NaN instead of being left out of the mean."""
    grouped = table.groupby(keys, sort=True, dropna=False)[columns]
    if grouped.size().nunique() > 1:
        raise DataError(f"{path} has checkpoints that were not scored on the same lines; score the run again")
    broken = table[columns].isna().groupby([table[key] for key in keys], sort=True, dropna=False).any()
    return grouped.mean().mask(broken).reset_index()


def _json(path: Path) -> Any:
    if not path.is_file():
        raise DataError(f"{path} is missing: the scores of this run are incomplete; `paribus doctor` checks the store")
    return json.loads(path.read_text(encoding="utf-8"))


def _parquet(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    if not path.is_file():
        raise DataError(f"{path} is missing: the scores of this run are incomplete; `paribus doctor` checks the store")
    table = pd.read_parquet(path)
    absent = [column for column in columns if column not in table.columns]
    if absent:
        raise DataError(f"{path} lacks the columns {', '.join(absent)}; a scores table has {', '.join(columns)}")
    return table


def _refuse_repeats(table: pd.DataFrame, keys: list[str], path: Path) -> None:
    repeated = table[table.duplicated(keys)]
    if len(repeated):
        first = ", ".join(f"{key} {repeated.iloc[0][key]}" for key in keys)
        raise DataError(f"{path} has {len(repeated)} repeated lines, the first at {first}")
