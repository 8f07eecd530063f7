"""Names in an experiment's table that are slips of others: what a run never has, told before anything runs."""

import difflib
from collections.abc import Iterator, Mapping, Sequence

from paribus.checks.primary import scored_tasks, task_of, text_measures
from paribus.config.groups.experiment import TableConfig
from paribus.config.schema import RunConfig
from paribus.config.validate import did_you_mean, unknown
from paribus.evaluation.suites.registry import task_names

ALIKE = 0.8
"""How alike two names are, of 1, from which on one of them is taken for a slip of the other."""


def is_slip(name: str, known: Sequence[str], include_path: str | None = None) -> bool:
    """Whether a name that is none of the known ones looks like one, and is no task of lm-eval or of the user."""
    if name in known or not difflib.get_close_matches(name, known, n=1, cutoff=ALIKE):
        return False
    from paribus.evaluation.borrowed.lookup import is_borrowed

    return not is_borrowed(name, include_path)


def slips(configs: Sequence[RunConfig], measures: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(path, what is wrong and what would be right) of tasks and columns; `measures` are those of no task.

    A task that no run is scored on is none, as a paper's table may have it: its column has dashes.
    """
    table, include_path = _table(configs), configs[0].evaluation.include_path
    if table is None:
        return
    tasks = list(dict.fromkeys([*scored_tasks(configs), *task_names()]))
    columns = [*tasks, *(table.groups or {}), *measures, *text_measures(configs)]
    named = [(f"columns[{place}]", name, columns) for place, name in enumerate(table.columns)]
    named += [(f"metrics.{name}", name, tasks) for name in table.metrics or {}]
    named += [
        (f"groups.{group}[{place}]", name, tasks)
        for group, members in (table.groups or {}).items()
        for place, name in enumerate(members)
    ]
    for path, name, known in named:
        if name not in known and is_slip(task_of(name), known, include_path):
            yield f"experiment.table.{path}", f"{name!r} is unknown; {did_you_mean(task_of(name), known).strip()}"


def slipped_baseline(labels: Sequence[Mapping[str, str]], table: TableConfig) -> Iterator[tuple[str, str]]:
    """(path, what is wrong) of labels of the baseline that are those of no row and look like one that is.

    What has a digit is no slip: 0.1 is another value than 0.01. Rows that are not there at all may be made elsewhere.
    """
    for factor, label in (table.baseline or {}).items():
        known = list(dict.fromkeys(row[factor] for row in labels if factor in row))
        close = difflib.get_close_matches(label, known, n=1, cutoff=ALIKE)
        if close and label not in known and not any(map(str.isdigit, label)):
            yield f"experiment.table.baseline.{factor}", unknown(label, known)


def _table(configs: Sequence[RunConfig]) -> TableConfig | None:
    experiment = configs[0].experiment
    return experiment.table if experiment else None
