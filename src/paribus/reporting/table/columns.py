"""Which columns a table has: those its experiment names, else all that the runs have."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from paribus.config.groups.experiment import TableConfig
from paribus.config.validate import unknown
from paribus.errors import ConfigurationError
from paribus.reporting.table.column import (
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
    STATISTICS,
    TRAINING,
    UNIFORMITY,
    WORDS,
    Column,
    Kind,
    MeasuredTask,
    choose_metric,
    of_texts,
    perplexity_of_texts,
)
from paribus.reporting.table.measures import share
from paribus.reporting.table.scores import RunScores

PERPLEXITY = "perplexity"
ALIKE = 1.01
"""How many times the smallest of some sizes the largest may be."""
Available = Mapping[str, Mapping[str, tuple[int, ...]]]
"""Task -> metric -> numbers of shots, of all runs together."""


def columns_of(scores: Sequence[RunScores], training: Sequence[Mapping[str, Any]], table: TableConfig) -> list[Column]:
    """The columns of a table in order.

    Without `table.columns`: every task, the groups, the average, bits per byte, statistics, training, as far as at
    least one run has a value; text a step and a context, where runs differ in it. With it, what it names, whether there
    are values or not.

    Raises:
        ConfigurationError: a column, a group or a metric that cannot be, by its path in the experiment file.
    """
    maker = _Maker(scores, table)
    if table.columns:
        columns = [column for name in table.columns for column in maker.named(name)]
    else:
        columns = [*maker.every(), *_present(list(maker.texts.values()), scores, training)]
    return [_with_decimals(column, table) for column in dict.fromkeys(columns)]


def primary_of(columns: Sequence[Column], scores: Sequence[RunScores], table: TableConfig) -> frozenset[str]:
    """Keys of the columns that decide the question: what `table.primary` names, else bits per byte or the average.

    Raises:
        ConfigurationError: the table lacks a measure that is named, or it is no mean over items.
    """
    scored = [column.key for column in columns if column.scored]
    if not table.primary:
        read = max((len(score.heldout) for score in scores), default=0)
        defaults = [BITS_PER_BYTE.key, AVERAGE] if read or not scores else [AVERAGE]
        return next((frozenset({key}) for key in defaults if key in scored), frozenset(scored))
    maker = _Maker(scores, table, path="experiment.table.primary")
    maker.refuse_slips()
    named = {name: maker.named(name) for name in table.primary}
    for name, found in named.items():
        beside = [column.key for column in found if table.columns and column.key not in scored]
        if beside or not all(column.scored for column in found):
            raise ConfigurationError(f"experiment.table.primary: {unknown(name, scored)}")
    return frozenset(column.key for found in named.values() for column in found)


class _Maker:
    """Makes columns from what the runs were scored on."""

    def __init__(self, scores: Sequence[RunScores], table: TableConfig, path: str = "experiment.table.columns") -> None:
        self.scores, self.table, self.path = scores, table, path
        self.groups = table.groups or {}
        self.available = _available(scores)
        sets = dict.fromkeys(name for score in scores for name in score.texts)
        self.texts = {name: of_texts(name, table.names or {}) for name in sets}
        self._unscored = {name: of_texts(name, table.names or {}) for name in self._sets_without_scores()}

    def every(self) -> list[Column]:
        """A task after the other, then means over tasks."""
        columns = [column for task in self.available for name in self._reported(task) for column in self._task(name)]
        columns += [self._group(name) for name in self.groups]
        average = self._average(list(self.available)) if len(self.available) > 1 else None
        return columns + ([average] if average and len(average.parts) > 1 else [])

    def _reported(self, task: str) -> list[str]:
        """Names of the columns of a task of which a table says no more."""
        if WORDS[0] in self.available[task]:
            return [f"{task}:{metric}" for metric in WORDS]
        beside = BESIDE.get(self._part(task).metric)
        return [task, f"{task}:{beside}"] if beside in self.available[task] else [task]

    def named(self, name: str) -> list[Column]:
        """What an entry of `table.columns` stands for: what is no measure, for a task that nobody has scored yet."""
        texts = self._unscored | self.texts
        fixed = {column.key: column for column in FIXED} | texts
        fixed |= {f"{name}:{PERPLEXITY}": perplexity_of_texts(column) for name, column in texts.items()}
        if name in fixed:
            return [fixed[name]]
        if name in self.groups:
            return [self._group(name)]
        if name == AVERAGE:
            return [self._average(self._averaged())]
        whole, _, shots = name.partition("/")
        if shots:
            return [self._of_shots(name, whole, shots)]
        return self._task(whole)

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

    def refuse_slips(self) -> None:
        """A name of what decides that is no measure is that of a task without scores, unless it looks like a slip."""
        import difflib

        known = [*self.available, *self.texts, *self.groups, *MEASURES]
        for name in self.table.primary:
            slipped = name not in known and "/" not in name and not self._known(name)
            if slipped and difflib.get_close_matches(name, known, n=1, cutoff=0.8):
                raise ConfigurationError(f"{self.path}: {unknown(name, known)}")

    def _of_shots(self, name: str, whole: str, shots: str) -> Column:
        number = shots.removesuffix("_shot")
        if not number.isdigit():
            raise ConfigurationError(f"{self.path}: {name!r} is no task/N_shot, such as boolq/5_shot")
        return self._column(
            f"{whole}/{number}_shot", replace(self._part(whole), shots=(int(number),)), f"{number}-shot"
        )

    def _part(self, name: str) -> MeasuredTask:
        """`task` or `task:metric`."""
        task, _, metric = name.partition(":")
        metrics = self.available.get(task, {})
        wanted = metric or (self.table.metrics or {}).get(task)
        chosen = wanted or (choose_metric(list(metrics)) if metrics else "acc")
        part = MeasuredTask(task, (), chosen)
        if wanted and metrics and part.scored not in metrics:
            known = [*metrics, *(name for name, about in METRICS.items() if about.source in metrics)]
            raise ConfigurationError(f"experiment.table: metric {unknown(wanted, known)} (of {task})")
        return replace(part, shots=metrics.get(part.scored, ()))

    def _task(self, name: str) -> list[Column]:
        part = self._part(name)
        if len(part.shots) < 2:
            shots = f"{part.shots[0]}-shot" if part.shots else part.metric
            return [self._column(f"{name}/mean", part, PERCENT.get(part.metric, shots))]
        apart = [
            self._column(f"{name}/{shots}_shot", replace(part, shots=(shots,)), f"{shots}-shot") for shots in part.shots
        ]
        whole = self._column(f"{name}/mean", part, "mean")
        return {"both": [*apart, whole], "each": apart, "mean": [whole]}[self.table.shots]

    def _column(self, key: str, part: MeasuredTask, label: str) -> Column:
        name = (self.table.names or {}).get(part.task, part.task)
        group = name if part.metric == "acc" or part.metric in PERCENT else f"{name} ({part.metric})"
        return Column(key, group, label, self._kind((part,)), part.better, (part,))

    def _group(self, name: str) -> Column:
        tasks = self.groups[name]
        if not tasks:
            raise ConfigurationError(f"experiment.table.groups.{name} is empty; list the tasks it is the mean of")
        parts = tuple(self._part(task) for task in tasks)
        if len({(self._kind((part,)), part.better) for part in parts}) > 1:
            mixed = ", ".join(f"{part.task} ({part.metric})" for part in parts)
            raise ConfigurationError(f"experiment.table.groups.{name} mixes metrics that have no common mean: {mixed}")
        return self._mean(name, (self.table.names or {}).get(name, name), parts)

    def _average(self, tasks: Sequence[str]) -> Column:
        """The mean over the tasks of one family of metrics: accuracy where there is any, else what comes next."""
        parts = [self._part(task) for task in tasks]
        families = [metric.family for metric in METRICS.values()] + [part.family for part in parts]
        family = next((family for family in families if any(part.family == family for part in parts)), "")
        alike = tuple(part for part in parts if part.family == family)
        return self._mean(AVERAGE, "All tasks" if len(alike) == len(parts) else f"All tasks ({family})", alike)

    def _mean(self, key: str, group: str, parts: tuple[MeasuredTask, ...]) -> Column:
        return Column(key, group, "mean", self._kind(parts), parts[0].better if parts else None, parts)

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
        return "score" if lower or not share(values) else "accuracy"


def _available(scores: Sequence[RunScores]) -> Available:
    found: dict[str, dict[str, set[int]]] = {}
    for task, shots, metric in {key for score in scores for key in score.blocks}:
        found.setdefault(task, {}).setdefault(metric, set()).add(shots)
    return {
        task: {metric: tuple(sorted(found[task][metric])) for metric in sorted(found[task])} for task in sorted(found)
    }


def _present(
    texts: Sequence[Column], scores: Sequence[RunScores], training: Sequence[Mapping[str, Any]]
) -> list[Column]:
    columns = []
    for column in texts:
        if column.field not in HELDOUT_SETS:
            columns.append(column)
            if column.field.endswith(CONCATENATED) and cut_alike(column, scores):
                columns.append(perplexity_of_texts(column))
    columns += [BITS_PER_BYTE] if any(len(score.heldout) for score in scores) else []
    columns += [column for column in texts if column.field in HELDOUT_SETS]
    columns += [column for column in STATISTICS if any(column.field in score.statistics for score in scores)]
    columns += [UNIFORMITY] if any(score.uniformity for score in scores) else []
    columns += [column for column in TRAINING if any(column.field in result for result in training)]
    return [column for column in columns if column not in (BATCH_BYTES, CONTEXT_BYTES) or unequal(column, training)]


def cut_alike(column: Column, scores: Sequence[RunScores]) -> bool:
    """Whether all runs that have a set of texts cut each document into as many tokens, so that bits a token compare."""
    found = {tuple(score.texts[column.field].tokens) for score in scores if column.field in score.texts}
    return len(found) == 1


def unequal(column: Column, training: Sequence[Mapping[str, Any]]) -> bool:
    """Whether runs differ in a number of their training by more than the rounding to whole steps and contexts."""
    values = [float(result[column.field]) for result in training if result.get(column.field) is not None]
    return bool(values) and max(values) > ALIKE * min(values)


def _with_decimals(column: Column, table: TableConfig) -> Column:
    decimals = table.decimals or {}
    found = decimals.get(column.key, decimals.get(column.key.partition("/")[0], decimals.get(column.kind)))
    return column if found is None else replace(column, decimals=found)
