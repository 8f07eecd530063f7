"""Measures that are to decide the question of a sweep, `experiment.table.primary`, and that no run of it can have."""

from collections.abc import Iterator, Sequence

from paribus.config.groups.experiment import TableConfig
from paribus.config.groups.finetuning import ScrollsFinetuning
from paribus.config.schema import RunConfig
from paribus.config.validate import unknown
from paribus.evaluation.suites.registry import task_names
from paribus.evaluation.suites.texts import HELDOUT_CLEAN, HELDOUT_CONCATENATED

WHOLE = ("bits_per_byte", "average")
"""Measures of whatever is scored, beside those of tasks, of groups of tasks and of sets of texts."""


def impossible_primary(configs: Sequence[RunConfig]) -> Iterator[tuple[str, str]]:
    """(path, what is wrong and what would be right) of each name that is no measure of any of a sweep's runs.

    Whether a task has the metric and the number of shots that follow its name is left to the table, which knows scores.
    """
    experiment = configs[0].experiment
    table = experiment.table if experiment else None
    if table is None:
        return
    tasks = _tasks(configs, table)
    measures = list(dict.fromkeys([*WHOLE, *(table.groups or {}), *tasks, *_texts(configs)]))
    shown = {task_of(name) for name in table.columns} | set(table.columns)
    for position, name in enumerate(table.primary):
        path = f"experiment.table.primary[{position}]"
        if name not in measures and task_of(name) not in tasks:
            yield path, unknown(name, measures)
        elif shown and name not in shown and task_of(name) not in shown:
            yield path, f"{name!r} is no column of the table; add it to experiment.table.columns, or leave it out"


def task_of(name: str) -> str:
    """The task of a measure such as `boolq/5_shot` or `squad:f1`."""
    return name.partition("/")[0].partition(":")[0]


def _tasks(configs: Sequence[RunConfig], table: TableConfig) -> list[str]:
    """What runs are scored on; and what a table shows without that, as those of papers do."""
    scored = [task for config in configs for task in config.evaluation.tasks]
    tuned = [
        task for each in configs if isinstance(each.finetuning, ScrollsFinetuning) for task in each.finetuning.tasks
    ]
    known = set(task_names())
    return [*scored, *tuned, *(task for name in table.columns if (task := task_of(name)) in known)]


def _texts(configs: Sequence[RunConfig]) -> list[str]:
    """Sets of texts, whose measure has their name."""
    named = [name for config in configs for name in config.evaluation.texts]
    whole = [HELDOUT_CONCATENATED] if any(config.evaluation.concatenated for config in configs) else []
    return [*named, HELDOUT_CLEAN, *whole]
