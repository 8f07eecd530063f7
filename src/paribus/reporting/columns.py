"""Columns of a table, each run's values for them, and the cells made from these."""

import difflib
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from paribus.config.groups.evaluation import TableConfig
from paribus.config.metrics import choose_metric
from paribus.config.validate import unknown
from paribus.errors import ConfigurationError
from paribus.reporting.measures import (
    AVERAGE,
    BATCH_BYTES,
    BESIDE,
    BITS_PER_BYTE,
    CONCATENATED,
    CONTEXT_BYTES,
    FIXED,
    HELDOUT_SETS,
    MEASURES,
    METRICS,
    PERCENT,
    PERPLEXITY,
    STATISTICS,
    TRAINING,
    UNIFORMITY,
    WORDS,
    Kind,
    Measure,
    MeasuredTask,
    of_texts,
    perplexity_of_texts,
)
from paribus.reporting.runs import RunScores
from paribus.reporting.significance import Estimate, Matrix, PairedTest, SeedVariance, Vector, half_width, within_rows

ALIKE = 1.01
"""Largest ratio of sizes that count as equal."""
Available = Mapping[str, Mapping[str, tuple[int, ...]]]
"""Task -> metric -> numbers of shots, of all runs together."""


def columns_of(scores: Sequence[RunScores], training: Sequence[Mapping[str, Any]], table: TableConfig) -> list[Measure]:
    """The columns of a table in order.

    Without `table.columns`: every task, the groups, the average, bits per byte, statistics, training, as far as at
    least one run has a value; text a step and a context, where runs differ in it. Else the columns that it names, even
    without values.

    Raises:
        ConfigurationError: an impossible column, group or metric, by its path in the experiment file.
    """
    maker = _ColumnMaker(scores, table)
    if table.columns:
        columns = [column for name in table.columns for column in maker.named(name)]
    else:
        columns = [*maker.every(), *_measured_columns(list(maker.texts.values()), scores, training)]
    decimals = table.decimals or {}
    formatted: list[Measure] = []
    for column in dict.fromkeys(columns):
        digits = decimals.get(column.key, decimals.get(column.key.partition("/")[0], decimals.get(column.kind)))
        formatted.append(column if digits is None else replace(column, decimals=digits))
    return formatted


def primary_of(columns: Sequence[Measure], scores: Sequence[RunScores], table: TableConfig) -> frozenset[str]:
    """Keys of the columns that decide the question: those of `table.primary`, else bits per byte or the average.

    Raises:
        ConfigurationError: the table lacks a named measure, or it is no mean over items.
    """
    scored = [column.key for column in columns if column.scored]
    if not table.primary:
        has_heldout = any(len(score.heldout) for score in scores)
        defaults = [BITS_PER_BYTE.key, AVERAGE] if has_heldout or not scores else [AVERAGE]
        return next((frozenset({key}) for key in defaults if key in scored), frozenset(scored))
    maker = _ColumnMaker(scores, table, path="experiment.table.primary")
    known = [*maker.available, *maker.texts, *maker.groups, *MEASURES]
    for name in table.primary:
        # An unknown name is a task without scores, unless it resembles a known one.
        unscored = name not in known and "/" not in name and name.partition(":")[0] not in maker.available
        if unscored and difflib.get_close_matches(name, known, n=1, cutoff=0.8):
            raise ConfigurationError(f"{maker.path}: {unknown(name, known)}")
    named = {name: maker.named(name) for name in table.primary}
    for name, measures in named.items():
        absent = [column.key for column in measures if table.columns and column.key not in scored]
        if absent or not all(column.scored for column in measures):
            raise ConfigurationError(f"experiment.table.primary: {unknown(name, scored)}")
    return frozenset(column.key for measures in named.values() for column in measures)


class _ColumnMaker:
    """Makes columns from what the runs were scored on."""

    def __init__(self, scores: Sequence[RunScores], table: TableConfig, path: str = "experiment.table.columns") -> None:
        self.scores, self.table, self.path = scores, table, path
        self.groups = table.groups or {}
        shots_by_metric: dict[str, dict[str, set[int]]] = {}
        for task, shots, metric in {key for score in scores for key in score.blocks}:
            shots_by_metric.setdefault(task, {}).setdefault(metric, set()).add(shots)
        self.available: Available = {
            task: {metric: tuple(sorted(shots)) for metric, shots in sorted(of_task.items())}
            for task, of_task in sorted(shots_by_metric.items())
        }
        sets = dict.fromkeys(name for score in scores for name in score.texts)
        self.texts = {name: of_texts(name, table.names or {}) for name in sets}
        self._unscored = {name: of_texts(name, table.names or {}) for name in self._sets_without_scores()}

    def every(self) -> list[Measure]:
        """Columns of each task, then means over tasks."""
        columns = [column for task in self.available for name in self._reported(task) for column in self._task(name)]
        columns += [self._group(name) for name in self.groups]
        average = self._average(list(self.available)) if len(self.available) > 1 else None
        return columns + ([average] if average and len(average.parts) > 1 else [])

    def _reported(self, task: str) -> list[str]:
        """Names of the default columns of a task."""
        if WORDS[0] in self.available[task]:
            return [f"{task}:{metric}" for metric in WORDS]
        beside = BESIDE.get(self._part(task).metric)
        return [task, f"{task}:{beside}"] if beside in self.available[task] else [task]

    def named(self, name: str) -> list[Measure]:
        """Columns of an entry of `table.columns`; an unknown name is taken for a task without scores."""
        texts = self._unscored | self.texts
        fixed = {column.key: column for column in FIXED} | texts
        fixed |= {f"{name}:{PERPLEXITY}": perplexity_of_texts(column) for name, column in texts.items()}
        if name in fixed:
            return [fixed[name]]
        if name in self.groups:
            return [self._group(name)]
        if name == AVERAGE:
            return [self._average(self._averaged())]
        task, _, shots = name.partition("/")
        if not shots:
            return self._task(task)
        number = shots.removesuffix("_shot")
        if not number.isdigit():
            raise ConfigurationError(f"{self.path}: {name!r} is no task/N_shot, such as boolq/5_shot")
        part = replace(self._part(task), shots=(int(number),))
        return [self._column(f"{task}/{number}_shot", part, f"{number}-shot")]

    def _sets_without_scores(self) -> list[str]:
        """Sets of texts that the table names and no run was scored on; only such names tell them from tasks."""
        names = dict.fromkeys(name.partition(":")[0] for name in self.table.columns)
        ending = [name.removesuffix(CONCATENATED) for name in names if name.endswith(CONCATENATED)]
        sets = {*HELDOUT_SETS, *ending, *(f"{name}{CONCATENATED}" for name in ending)}
        return [name for name in names if name in sets and not self._known(name)]

    def _averaged(self) -> list[str]:
        """The tasks that an average is over: those of the table, else all."""
        tasks = [name.partition("/")[0] for name in self.table.columns]
        tasks += [task for name in self.table.columns for task in self.groups.get(name, ())]
        return list(dict.fromkeys(task for task in tasks if self._known(task))) or list(self.available)

    def _known(self, name: str) -> bool:
        return name.partition(":")[0] in self.available

    def _part(self, name: str) -> MeasuredTask:
        task, _, metric = name.partition(":")
        metrics = self.available.get(task, {})
        requested = metric or (self.table.metrics or {}).get(task)
        part = MeasuredTask(task, (), requested or (choose_metric(metrics) if metrics else "acc"))
        if requested and metrics and part.scored not in metrics:
            known = [*metrics, *(name for name, about in METRICS.items() if about.source in metrics)]
            raise ConfigurationError(f"experiment.table: metric {unknown(requested, known)} (of {task})")
        return replace(part, shots=metrics.get(part.scored, ()))

    def _task(self, name: str) -> list[Measure]:
        part = self._part(name)
        if len(part.shots) < 2:
            shots = f"{part.shots[0]}-shot" if part.shots else part.metric
            return [self._column(f"{name}/mean", part, PERCENT.get(part.metric, shots))]
        by_shots = [
            self._column(f"{name}/{shots}_shot", replace(part, shots=(shots,)), f"{shots}-shot") for shots in part.shots
        ]
        mean = self._column(f"{name}/mean", part, "mean")
        return {"both": [*by_shots, mean], "each": by_shots, "mean": [mean]}[self.table.shots]

    def _column(self, key: str, part: MeasuredTask, label: str) -> Measure:
        name = (self.table.names or {}).get(part.task, part.task)
        group = name if part.metric == "acc" or part.metric in PERCENT else f"{name} ({part.metric})"
        return Measure(key, group, label, self._kind((part,)), part.better, (part,))

    def _group(self, name: str) -> Measure:
        tasks = self.groups[name]
        if not tasks:
            raise ConfigurationError(f"experiment.table.groups.{name} is empty; list the tasks it is the mean of")
        parts = tuple(self._part(task) for task in tasks)
        if len({(self._kind((part,)), part.better) for part in parts}) > 1:
            mixed = ", ".join(f"{part.task} ({part.metric})" for part in parts)
            raise ConfigurationError(f"experiment.table.groups.{name} mixes metrics that have no common mean: {mixed}")
        return self._mean(name, (self.table.names or {}).get(name, name), parts)

    def _average(self, tasks: Sequence[str]) -> Measure:
        """The mean over the tasks of one family of metrics: the first, in the order of `METRICS`, that a task has."""
        parts = [self._part(task) for task in tasks]
        families = [metric.family for metric in METRICS.values()] + [part.family for part in parts]
        family = next((family for family in families if any(part.family == family for part in parts)), "")
        alike = tuple(part for part in parts if part.family == family)
        return self._mean(AVERAGE, "All tasks" if len(alike) == len(parts) else f"All tasks ({family})", alike)

    def _mean(self, key: str, group: str, parts: tuple[MeasuredTask, ...]) -> Measure:
        return Measure(key, group, "mean", self._kind(parts), parts[0].better if parts else None, parts)

    def _kind(self, parts: Sequence[MeasuredTask]) -> Kind:
        keys = [(part.task, shots, part.scored) for part in parts for shots in part.shots]
        if any(part.metric == PERPLEXITY for part in parts):
            return "perplexity"
        if all(part.metric.startswith("acc") for part in parts):
            return "accuracy"
        if all(part.metric in PERCENT for part in parts):
            return "percent"
        values = [score.blocks[key].values for key in keys for score in self.scores if key in score.blocks]
        lower = any(part.better == "lower" for part in parts)
        return "score" if lower or not are_shares(values) else "accuracy"


def _measured_columns(
    texts: Sequence[Measure], scores: Sequence[RunScores], training: Sequence[Mapping[str, Any]]
) -> list[Measure]:
    columns = []
    for column in texts:
        if column.field not in HELDOUT_SETS:
            columns.append(column)
            if column.field.endswith(CONCATENATED) and texts_cut_alike(column, scores):
                columns.append(perplexity_of_texts(column))
    columns += [BITS_PER_BYTE] if any(len(score.heldout) for score in scores) else []
    columns += [column for column in texts if column.field in HELDOUT_SETS]
    columns += [column for column in STATISTICS if any(column.field in score.statistics for score in scores)]
    columns += [UNIFORMITY] if any(score.uniformity for score in scores) else []
    columns += [column for column in TRAINING if any(column.field in result for result in training)]
    return [column for column in columns if column not in (BATCH_BYTES, CONTEXT_BYTES) or unequal(column, training)]


def texts_cut_alike(column: Measure, scores: Sequence[RunScores]) -> bool:
    """True if all runs with a set of texts split each document into as many tokens, so that bits a token compare."""
    return len({tuple(score.texts[column.field].tokens) for score in scores if column.field in score.texts}) == 1


def unequal(column: Measure, training: Sequence[Mapping[str, Any]]) -> bool:
    """True if runs differ in a number of their training by more than the rounding to whole steps and contexts."""
    values = [float(result[column.field]) for result in training if result.get(column.field) is not None]
    return bool(values) and max(values) > ALIKE * min(values)


def measure(column: Measure, training: Mapping[str, Any], scores: RunScores | None) -> Matrix | None:
    """A run's values for a column, by the result of its training and its scores; None for none.

    Shape (checkpoints, items) for what is scored, (1, 1) for a number of the whole run. The mean of the values is the
    run's number; of a column over several shots or tasks, the mean of their means.
    """
    if column.group == "Training":
        return _whole_run(training.get(column.field))
    if scores is None:
        return None
    if column.parts:
        tasks = [_task_values(scores, part) for part in column.parts]
        return None if any(values is None for values in tasks) else stratified([v for v in tasks if v is not None])
    if column.key == UNIFORMITY.key:
        return _whole_run(scores.uniformity.get("used"))
    if column.kind in ("bits_per_byte", "perplexity"):
        texts = scores.texts.get(column.field) if column.field else scores.heldout
        sizes = None if texts is None else texts.bytes if column.kind == "bits_per_byte" else texts.tokens
        return None if texts is None or sizes is None else bits_by_size(texts.bits, sizes)
    return _whole_run(scores.statistics.get(column.field))


def fewest_items(column: Measure, scores: RunScores) -> int | None:
    """Items of the smallest task of a column; None for a column without tasks."""
    sizes = [
        scores.blocks[key].values.shape[1]
        for part in column.parts
        for key in ((part.task, shots, part.scored) for shots in part.shots)
        if key in scores.blocks
    ]
    return min(sizes, default=None)


def perplexity(bits: float) -> float:
    """2 to the power of mean bits; infinite where no float holds it."""
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


def are_shares(values: Sequence[Matrix]) -> bool:
    """True if these scores are shares of one, so that they read as percentages."""
    finite = [value[np.isfinite(value)] for value in values]
    return all(not len(value) or (value.min() >= 0 and value.max() <= 1) for value in finite)


def finite(value: float | None) -> bool:
    """True for a finite number, False for None."""
    return value is not None and math.isfinite(value)


def _task_values(scores: RunScores, part: MeasuredTask) -> Matrix | None:
    """Each item's score averaged over shots; where shots were scored on different items, the mean of their means."""
    blocks = [scores.blocks.get((part.task, shots, part.scored)) for shots in part.shots]
    present = [block for block in blocks if block is not None]
    if not present or len(present) < len(blocks):
        return None
    if all(block.items == present[0].items for block in present):
        mean: Matrix = np.mean([block.values for block in present], axis=0)
        return mean
    return stratified([block.values for block in present])


def _whole_run(value: Any) -> Matrix | None:
    return None if value is None else np.array([[float(value)]])


Values = Mapping[int, Matrix]
"""Scores by seed, shape (checkpoints, items)."""
Cells = dict[str, "Cell"]
"""Cells by column key."""


@dataclass(frozen=True)
class Cell:
    """One number of the table. `value` is None where there is none, and NaN where a run produced NaN."""

    value: float | None = None
    """Mean over items, checkpoints and seeds; of a perplexity 2 to the power of that."""
    half_width: float | None = None
    """Half of the 95 % interval of `value`."""
    over: Literal["items", "seeds"] | None = None
    """Source of the interval: `items` alone, or `seeds` and items; what seeds do is pooled over the rows."""
    seed_spread: float | None = None
    """Standard deviation over the seeds' means."""
    checkpoint_spread: float | None = None
    """Standard deviation of the mean over the last checkpoints of a run; root of the mean variance of several seeds."""
    error: float | None = None
    """Standard error of the mean over items, each item's score averaged over checkpoints and seeds."""
    items: int = 0
    fewest: int = 0
    """Items of the smallest task of a mean; of all else `items`."""
    fitting: bool = False
    """True if `fewest` counts the items alone whose prompt fits every run; all are scored."""
    seeds: int = 0
    start: str | None = None
    """The checkpoint that the row starts from, where seeds vary the continuation alone; None for random weights."""
    lossy: bool = False
    """True if the bits are of a model whose tokenizer loses some of the text that they are divided by."""
    checkpoints: int = 0
    best: bool = False
    test: PairedTest | None = None
    """Over the items of these very models, of a perplexity in bits; None for a baseline row and for what is not scored
    by item."""
    crossed: Estimate | None = None
    """Over seeds and items if both rows have two seeds or more; over items alone for what involves no training."""
    p_adjusted: float | None = None
    """`p_value` adjusted over all tests that decide; None for others, and where there are too few seeds to judge."""
    of_factors: bool = False
    """True if effects of factors decide, and the row's own difference is none of them: it has no interval."""
    plain_p: float | None = None
    """p-value of the unpaired t-test over the means of each seed and checkpoint, where it is requested."""

    @property
    def comparable_by(self) -> tuple[str | None, bool]:
        """Starting checkpoint and loss of text; a difference is judged only if both rows have the same."""
        return self.start, self.lossy

    @property
    def difference(self) -> float | None:
        """Difference from the row it is compared with: over the seeds that both have, or over all if those are < 2."""
        test = self.crossed or self.test
        return test.difference if test else None

    @property
    def judged(self) -> Estimate | None:
        """`crossed` if it has enough seeds and items and its difference is judged here."""
        return self.crossed if self.crossed and self.crossed.sufficient and not self.of_factors else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the difference; simultaneous over all differences that are judged together."""
        return (self.judged.low, self.judged.high) if self.judged else None

    @property
    def p_value(self) -> float | None:
        """Two-sided, of the difference by itself."""
        return self.judged.p_value if self.judged else None

    @property
    def detectable(self) -> float | None:
        """The smallest true difference that is detected with a probability of 80 %, at the level of `interval`."""
        return self.judged.detectable if self.judged else None


def item_averages(seeds: Values) -> Vector:
    """Each item's score (items,), averaged over checkpoints and seeds."""
    averages: Vector = np.mean([scores.mean(axis=0) for scores in seeds.values()], axis=0)
    return averages


def cells_of(values: Sequence[Mapping[str, Values]]) -> list[Cells]:
    """The cells of rows: by column key, from each seed's values; (1, 1) for a number of the whole run."""
    keys = dict.fromkeys(key for row in values for key, seeds in row.items() if seeds)
    within = {key: within_rows(seed_means([row[key] for row in values])) for key in keys}
    return [
        {key: _make_cell(seeds, within[key]) if seeds else Cell() for key, seeds in by_column.items()}
        for by_column in values
    ]


def seed_means(rows: Sequence[Values]) -> Matrix:
    """(rows, seeds) of one column, averaged over items and checkpoints; NaN where a row lacks a seed."""
    seeds = sorted({seed for row in rows for seed in row})
    means = [[float(row[seed].mean()) if seed in row else math.nan for seed in seeds] for row in rows]
    return np.array(means).reshape(len(rows), len(seeds))


def _make_cell(seeds: Values, within: SeedVariance | None) -> Cell:
    means = np.array([scores.mean(axis=1) for scores in seeds.values()])
    by_seed = np.array([scores.mean(axis=0) for scores in seeds.values()])
    (count, items), checkpoints, value = by_seed.shape, means.shape[1], float(means.mean())
    counts = {"items": items, "fewest": items, "seeds": count, "checkpoints": checkpoints}
    if not math.isfinite(value):
        return Cell(value=value, **counts)
    half = half_width(by_seed, within)
    return Cell(
        value,
        half,
        over=None if half is None else "items" if within is None else "seeds",
        seed_spread=float(np.std(means.mean(axis=1), ddof=1)) if count > 1 else None,
        checkpoint_spread=float(np.sqrt(np.mean(np.var(means, axis=1, ddof=1)))) if checkpoints > 1 else None,
        error=float(by_seed.mean(axis=0).std(ddof=1) / np.sqrt(items)) if items > 1 else None,
        **counts,
    )


_SPREADS = ("half_width", "seed_spread", "checkpoint_spread", "error")


def with_perplexities(cells: Sequence[Mapping[str, Cell]], columns: Sequence[Measure]) -> list[Cells]:
    """Convert cells of a perplexity to 2 to the power of their bits; its spreads are to first order (delta method).

    Tests, their intervals and detectable differences stay in bits.
    """
    copies = [dict(row) for row in cells]
    for row in copies:
        for column in columns:
            cell = row[column.key]
            if column.kind == "perplexity" and cell.value is not None and math.isfinite(cell.value):
                value = perplexity(cell.value)
                bits = {name: getattr(cell, name) for name in _SPREADS}
                spreads = {name: each and value * math.log(2) * each for name, each in bits.items()}
                row[column.key] = replace(cell, value=value, **spreads)
    return copies
