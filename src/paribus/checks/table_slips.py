"""Names in an experiment's table that are slips of others: what a run never has, told before anything runs."""

import difflib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paribus.checks.primary import scored_tasks, task_of, text_measures
from paribus.config.groups.experiment import TableConfig, table_of
from paribus.config.groups.finetuning import ScrollsFinetuning
from paribus.config.reference.files import options
from paribus.config.schema import RunConfig
from paribus.config.validate import did_you_mean, unknown
from paribus.evaluation.suites.registry import is_ours, task_names
from paribus.finetuning.tasks import TASKS as SCROLLS

MOST_DIGITS = 10
"""Digits after the point with which a number is shown at most."""
ALIKE = 0.8
"""How alike two names are, of 1, from which on one of them is taken for a slip of the other."""


def is_slip(name: str, known: Sequence[str], include_path: str | None = None) -> bool:
    """Whether a name that is none of the known ones looks like one, and is no task of lm-eval or of the user."""
    if name in known or not difflib.get_close_matches(name, known, n=1, cutoff=ALIKE):
        return False
    from paribus.evaluation.borrowed.lookup import is_borrowed

    return not is_borrowed(name, include_path)


@dataclass(frozen=True)
class Vocabulary:
    """What a table calls things that do not depend on its runs."""

    measures: Sequence[str]
    """Columns of no task."""
    metrics: Sequence[str]
    kinds: Sequence[str]
    """Kinds of numbers."""


def slips(configs: Sequence[RunConfig], words: Vocabulary) -> Iterator[tuple[str, str]]:
    """(path, what is wrong and what would be right) of tasks, columns, metrics, kinds of numbers and decimals.

    A task that no run is scored on is none, as a paper's table may have it: its column has dashes.
    """
    table, include_path = table_of(configs[0].experiment), configs[0].evaluation.include_path
    tuned = SCROLLS if any(isinstance(config.finetuning, ScrollsFinetuning) for config in configs) else ()
    tasks = list(dict.fromkeys([*scored_tasks(configs), *task_names(), *tuned]))
    columns = [*tasks, *(table.groups or {}), *words.measures, *text_measures(configs)]
    named: list[tuple[str, str, Sequence[str]]]
    named = [(f"columns[{place}]", name, columns) for place, name in enumerate(table.columns)]
    named += [(f"metrics.{name}", name, tasks) for name in table.metrics or {}]
    named += [
        (f"groups.{group}[{place}]", name, tasks)
        for group, members in (table.groups or {}).items()
        for place, name in enumerate(members)
    ]
    named += [(f"decimals.{name}", name, [*columns, *table.columns, *words.kinds]) for name in table.decimals or {}]
    # Of a task of lm-eval or of the user, only its scores say which metrics it has: rougeLsum beside rougeL, say.
    named += [(f"metrics.{task}", name, words.metrics) for task, name in (table.metrics or {}).items() if is_ours(task)]
    named += [
        (f"columns[{place}]", metric, words.metrics)
        for place, name in enumerate(table.columns)
        if (metric := name.partition("/")[0].partition(":")[2]) and is_ours(task_of(name))
    ]
    for path, name, known in named:
        if name not in known and is_slip(task_of(name), known, include_path):
            yield f"experiment.table.{path}", f"{name!r} is unknown; {did_you_mean(task_of(name), known).strip()}"
    yield from _impossible(table, tasks, words.measures)
    for place, name in enumerate(table.columns):
        for told in _no_column(name, columns, tasks):
            yield f"experiment.table.columns[{place}]", told
    yield from _groups_of_tasks(table, columns, tasks, include_path)


def _groups_of_tasks(
    table: TableConfig, columns: Sequence[str], tasks: Sequence[str], include_path: str | None
) -> Iterator[tuple[str, str]]:
    """Groups of lm-eval or of the user where a task should stand: nothing is scored by their name."""
    from paribus.evaluation.borrowed.lookup import members

    folder = include_path if include_path and Path(include_path).is_dir() else None
    named = [
        (f"columns[{place}]", task_of(name), "experiment.table.groups={{{0}:[{0}]}} makes a column of its mean")
        for place, name in enumerate(table.columns)
        if not {name, task_of(name)} & set(columns)
    ]
    named += [(f"metrics.{name}", name, "name its tasks") for name in table.metrics or {} if name not in tasks]
    for path, name, remedy in named:
        if members(folder, name):
            told = f"{name!r} is a group of tasks, which has no scores of its own; {remedy.format(name)}"
            yield f"experiment.table.{path}", told


def _no_column(name: str, columns: Sequence[str], tasks: Sequence[str]) -> Iterator[str]:
    """What is wrong with a column of a metric or of a number of examples that it cannot have."""
    task, shots = task_of(name), name.partition("/")[2]
    if name in columns or name == task:
        return
    if task in columns and task not in tasks:
        yield f"{name!r} is unknown, since {task!r} is no task: it has no metrics and no numbers of examples"
    elif shots and not shots.removesuffix("_shot").isdigit():
        yield f"{name!r} is no task/N_shot, such as boolq/5_shot"


def _impossible(table: TableConfig, tasks: Sequence[str], measures: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Groups without a task, or with what is none, and numbers of digits that no number is shown with."""
    for group, members in (table.groups or {}).items():
        path = f"experiment.table.groups.{group}"
        if not members:
            yield path, "is empty; list the tasks it is the mean of"
        for place, name in enumerate(members):
            if name in measures and name not in tasks:
                yield f"{path}[{place}]", f"{name!r} is no task; a group is a mean of tasks"
    for name, digits in (table.decimals or {}).items():
        if not 0 <= digits <= MOST_DIGITS:
            yield f"experiment.table.decimals.{name}", f"{digits} is no number of digits from 0 to {MOST_DIGITS}"


def slipped_labels(labels: Sequence[Mapping[str, str]], table: TableConfig) -> Iterator[tuple[str, str]]:
    """(path, what is wrong) of labels of the baseline and of the order that are those of no row and look like one.

    What has a digit is no slip: 0.1 is another value than 0.01. Rows that are not there may be made elsewhere: a choice
    of the factor's group is no slip, and nothing is where all runs have one label, as an arm of a sweep by itself has.
    """
    named = [(f"baseline.{factor}", factor, label) for factor, label in (table.baseline or {}).items()]
    named += [
        (f"order.{factor}[{place}]", factor, label)
        for factor, listed in (table.order or {}).items()
        for place, label in enumerate(listed)
    ]
    for path, factor, label in named:
        known = list(dict.fromkeys(row[factor] for row in labels if factor in row))
        if len(known) < 2 or label in [*known, *(option.name for option in options(factor))]:
            continue
        if difflib.get_close_matches(label, known, n=1, cutoff=ALIKE) and not any(map(str.isdigit, label)):
            yield f"experiment.table.{path}", unknown(label, known)


def misleading_names(
    configs: Sequence[RunConfig], labels: Sequence[Mapping[str, str]], words: Vocabulary
) -> Iterator[tuple[str, str]]:
    """(path, what is wrong) of names that two labels of one factor would share, and of those for slips of a label.

    A name for what no row has is none, as files of several sweeps share their names.
    """
    table, include_path = table_of(configs[0].experiment), configs[0].evaluation.include_path
    names, factors = table.names or {}, list(dict.fromkeys(factor for row in labels for factor in row))
    known = [*factors, *words.measures, *scored_tasks(configs), *task_names(), *(table.groups or {})]
    for factor in factors:
        shown: dict[str, list[str]] = {}
        for label in dict.fromkeys(row[factor] for row in labels if factor in row):
            shown.setdefault(names.get(label, label), []).append(label)
        for name, alike in shown.items():
            if len(alike) > 1:
                yield (
                    "experiment.table.names",
                    f"{' and '.join(alike)} are both called {name!r}; their rows would look alike",
                )
        known += [*itertools.chain(*shown.values()), *(option.name for option in options(factor))]
    for name in names:
        if not any(map(str.isdigit, name)) and is_slip(name, known, include_path):
            yield f"experiment.table.names.{name}", f"{name!r} is unknown; {did_you_mean(name, known).strip()}"
