"""Measures that an experiment's table names and that no run of its sweep can have."""

import difflib
import re
from collections.abc import Iterator, Sequence

from paribus.config.groups.experiment import TableConfig, table_of
from paribus.config.groups.finetuning import ScrollsFinetuning
from paribus.config.schema import RunConfig
from paribus.config.validate import did_you_mean, unknown
from paribus.evaluation.suites.registry import task_names
from paribus.evaluation.suites.texts import HELDOUT_CLEAN, HELDOUT_CONCATENATED, concatenated

WHOLE = ("bits_per_byte", "average")
"""Measures of whatever is scored, beside those of tasks, of groups of tasks and of sets of texts."""
ALIKE = 0.8
"""Ratio of `difflib` from which an unknown column is a slip of a known one; tasks that nobody scores may be columns."""


def impossible_primary(configs: Sequence[RunConfig]) -> Iterator[tuple[str, str]]:
    """(path, what is wrong and what would be right) of each name that is no measure of any of a sweep's runs.

    Whether a task has the metric that follows its name is left to the table, which knows scores.
    """
    table = table_of(configs[0].experiment)
    tasks = _tasks(configs, table)
    groups = [name for name, members in (table.groups or {}).items() if set(members) & set(tasks)]
    measures = list(dict.fromkeys([*_whole(table, tasks), *groups, *tasks, *text_measures(configs)]))
    shown = {task_of(name) for name in table.columns} | set(table.columns)
    for position, name in enumerate(table.primary):
        path = f"experiment.table.primary[{position}]"
        if name not in measures and task_of(name) not in tasks:
            yield path, unknown(name, measures)
        elif not _has_shots(name, configs):
            yield path, f"{name!r}: no run is scored with so many examples; evaluation.shots says with how many"
        elif shown and name not in shown and task_of(name) not in shown:
            yield path, f"{name!r} is no column of the table; add it to experiment.table.columns, or leave it out"


def unknown_columns(configs: Sequence[RunConfig], measures: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(path, the nearest name) of columns and of tasks in groups that are neither known nor tasks of lm-eval.

    `measures` are the columns that belong to no task.
    """
    from paribus.evaluation.borrowed.lookup import is_borrowed

    table, include_path = table_of(configs[0].experiment), configs[0].evaluation.include_path
    groups = table.groups or {}
    known = [*scored_tasks(configs), *task_names(), *groups, *measures, *text_measures(configs)]
    named = [(f"columns[{place}]", name) for place, name in enumerate(table.columns)]
    named += [(f"groups.{group}[{place}]", name) for group, tasks in groups.items() for place, name in enumerate(tasks)]
    for path, name in named:
        task = task_of(name)
        alike = difflib.get_close_matches(task, known, n=1, cutoff=ALIKE)
        if alike and not {name, task} & set(known) and not is_borrowed(task, include_path):
            yield f"experiment.table.{path}", f"{name!r} is unknown; {did_you_mean(task, known).strip()}"


def _whole(table: TableConfig, tasks: Sequence[str]) -> tuple[str, ...]:
    """Bits per byte, and the mean where it is a column or of several tasks."""
    several = len(set(tasks)) > 1 or "average" in table.columns
    return WHOLE if several else WHOLE[:1]


def _has_shots(name: str, configs: Sequence[RunConfig]) -> bool:
    """Whether some run has the number of shots that a measure such as `boolq/5_shot` names, if it names one."""
    number = re.fullmatch(r"[^/]+/(\d+)_shot", name)
    if number is None:
        return True
    task = task_of(name)
    scored = [config.evaluation for config in configs if task in config.evaluation.tasks]
    return not scored or any(int(number[1]) in evaluation.task_shots(task) for evaluation in scored)


def task_of(name: str) -> str:
    """The task of a measure such as `boolq/5_shot` or `squad:f1`."""
    return name.partition("/")[0].partition(":")[0]


def _tasks(configs: Sequence[RunConfig], table: TableConfig) -> list[str]:
    """What runs are scored on; and what a table shows without that, as those of papers do."""
    known = set(task_names())
    return [*scored_tasks(configs), *(task for name in table.columns if (task := task_of(name)) in known)]


def scored_tasks(configs: Sequence[RunConfig]) -> list[str]:
    """What runs are scored on, once for each run that is."""
    scored = [task for config in configs for task in config.evaluation.tasks]
    tuned = [
        task for each in configs if isinstance(each.finetuning, ScrollsFinetuning) for task in each.finetuning.tasks
    ]
    return [*scored, *tuned]


def text_measures(configs: Sequence[RunConfig]) -> list[str]:
    """Sets of texts, whose measures have their name."""
    named = [name for config in configs for name in config.evaluation.texts]
    streams = [config.evaluation for config in configs if config.evaluation.concatenated]
    named += [concatenated(name) for evaluation in streams for name in evaluation.texts]
    sets = [*named, HELDOUT_CLEAN, *([HELDOUT_CONCATENATED] if streams else [])]
    return [*sets, *(f"{name}:perplexity" for name in sets)]
