"""Groups of tasks, as `mmlu` is one of lm-eval, taken apart before anything runs."""

from collections.abc import Mapping
from typing import Any

from paribus.errors import ParibusError


def with_tasks_of_groups(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """A configuration as plain data with the tasks of a group in its place: in `evaluation.tasks`, in
    `evaluation.shots_of` and in table groups.

    As it is where names or files are malformed: who looks for the tasks says why.
    """
    evaluation, experiment = data.get("evaluation"), data.get("experiment")
    if not isinstance(evaluation, Mapping):
        return data
    path = evaluation.get("include_path")
    tasks, shots = _apart(evaluation.get("tasks"), path), _each(evaluation.get("shots_of"), path)
    changed = {**data, "evaluation": {**evaluation, "tasks": tasks, "shots_of": shots}}
    table = experiment.get("table") if isinstance(experiment, Mapping) else None
    groups = table.get("groups") if isinstance(table, Mapping) else None
    if isinstance(experiment, Mapping) and isinstance(table, Mapping) and isinstance(groups, Mapping):
        whole = {name: _apart(tasks, path) for name, tasks in groups.items()}
        changed["experiment"] = {**experiment, "table": {**table, "groups": whole}}
    return changed


def _apart(tasks: Any, include_path: Any) -> Any:
    """What is named twice stays so, which is refused later; a task of a group that is named too stands once."""
    if not isinstance(tasks, list) or not all(isinstance(task, str) for task in tasks):
        return tasks
    found: list[str] = []
    for task in tasks:
        members = _members(task, include_path)
        found += members if members == [task] else [each for each in members if each not in (*tasks, *found)]
    return found


def _each(values: Any, include_path: Any) -> Any:
    """Values by task; one that is named itself has its own and not that of its group."""
    if not isinstance(values, Mapping):
        return values
    given = {str(name): value for name, value in values.items()}
    return {member: value for name, value in given.items() for member in _members(name, include_path)} | {
        name: value for name, value in given.items() if _members(name, include_path) == [name]
    }


def _members(task: str, include_path: Any) -> list[str]:
    from paribus.evaluation.suites.registry import is_ours

    if is_ours(task):
        return [task]
    from paribus.evaluation.borrowed.lookup import members

    try:
        return members(include_path if isinstance(include_path, str) else None, task) or [task]
    except ParibusError:
        return [task]
