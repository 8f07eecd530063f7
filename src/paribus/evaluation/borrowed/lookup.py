"""From the name of a task that is none of ours to its definition."""

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import ConfigurationError, DataError
from paribus.evaluation.borrowed.definition import Definition
from paribus.evaluation.borrowed.yaml_files import Names, harness_folder, harness_names, names_in, read_yaml
from paribus.evaluation.suites.registry import is_ours, task_names

_NEAREST = 5


def definition(config: EvaluationConfig, name: str) -> Definition:
    """The task of that name in `evaluation.include_path`, else in lm-eval; ConfigurationError for a `problem`."""
    if message := problem(config, name):
        raise ConfigurationError(f"evaluation.tasks: {message}")
    found = _found(config, name)
    if found is None:
        raise ValueError(f"{name} is a task of ours")
    return found


def problem(config: EvaluationConfig, name: str) -> str | None:
    """What is wrong with the name of a task; None for one that can be scored. DataError where YAML cannot be read."""
    included = _included(config)
    if is_ours(name):
        twice = included and {**included.tasks, **included.groups}.get(name)
        return f"{name} is a task of paribus; give that of {twice} another name" if twice else None
    found = _found(config, name)
    if found is None:
        return _unknown(name, included, config.include_path)
    if included and found.ours and (again := included.again.get(name)):
        return f"{name} is the task of {found.path} and of {again}; give one of them another name"
    reason = found.problem()
    return f"{name} of {found.path.name} {reason}; leave it out" if reason else None


def members(include_path: str | None, name: str) -> list[str]:
    """The tasks of a group or tag of `evaluation.include_path` or of lm-eval; none of what is a task or unknown.

    DataError where YAML cannot be read, ConfigurationError where there is no such directory.
    """
    places = [place for place in (_names(include_path), harness_names()) if place]
    return [] if any(name in place.tasks for place in places) else _within(name, places)


def is_borrowed(name: str, include_path: str | None) -> bool:
    """Whether lm-eval, or `evaluation.include_path` where that is there, has a task, group or tag of that name."""
    included = _names(include_path) if include_path and Path(include_path).is_dir() else None
    places = [place for place in (included, harness_names()) if place]
    return any(name in names for place in places for names in (place.tasks, place.groups, place.tags))


def _included(config: EvaluationConfig) -> Names | None:
    return _names(config.include_path)


def _names(include_path: str | None) -> Names | None:
    if include_path is None:
        return None
    folder = Path(include_path)
    if not folder.is_dir():
        raise ConfigurationError(f"evaluation.include_path: {folder} is not a directory")
    return names_in(folder)


def _found(config: EvaluationConfig, name: str) -> Definition | None:
    included = _included(config)
    if included and config.include_path and name in included.tasks:
        return Definition(name, included.tasks[name], Path(config.include_path).absolute())
    path = harness_names().tasks.get(name)
    return Definition(name, path, harness_folder()) if path else None


def _unknown(name: str, included: Names | None, folder: str | None) -> str:
    places = [place for place in (included, harness_names()) if place]
    if any(name in place.groups or name in place.tags for place in places):
        listed = ", ".join(_within(name, places))
        return (
            f"{name} is a group of tasks, which stands for {listed}; name them"
            if listed
            else f"{name} is a group without tasks; leave it out"
        )
    ours = task_names()
    known = list(dict.fromkeys([*ours, *(task for place in places for task in place.tasks)]))
    near = difflib.get_close_matches(name, known, n=_NEAREST, cutoff=0.6)
    hint = f"nearest: {', '.join(near)}; " if near else ""
    own = "; evaluation.include_path=DIR makes tasks of your own known, a YAML file each"
    if included:
        listed = ", ".join([*included.tasks, *included.groups]) or "none: no YAML file there has a line `task: NAME`"
        own = f"; of evaluation.include_path={folder}: {listed}"
    return f"unknown task {name!r}; {hint}known: {', '.join(ours)}, and the tasks of lm-eval by its names{own}"


def _within(name: str, places: Sequence[Names]) -> list[str]:
    return list(dict.fromkeys(task for place in places for task in _members(name, place, ())))


def _members(name: str, names: Names, above: tuple[str, ...]) -> Iterator[str]:
    """The tasks of a group or tag; `above` are the groups that it stands in."""
    if name in above:
        raise DataError(f"evaluation.tasks: the group {name} of {names.groups[name]} stands in itself")
    if name in names.groups:
        yield from _listed(read_yaml(names.groups[name]).get("task"), names, (*above, name))
    elif name in names.tags:
        yield from _tagged(name, names)


def _tagged(tag: str, names: Names) -> Iterator[str]:
    """Tasks beside those that name the tag may have it from a file that they include."""
    folders = {names.tasks[task].parent for task in names.tags[tag]}
    for task, path in names.tasks.items():
        if path.parent in folders:
            found = read_yaml(path).get("tag") or []
            if tag in (found if isinstance(found, list) else [found]):
                yield task


def _listed(members: Any, names: Names, above: tuple[str, ...]) -> Iterator[str]:
    for member in members if isinstance(members, list) else [members]:
        if isinstance(member, dict) and isinstance(member.get("task"), list):
            yield from _listed(member["task"], names, above)
            continue
        task = str(member.get("task") or member.get("group") if isinstance(member, dict) else member)
        yield from _members(task, names, above) if task in names.groups or task in names.tags else (task,)
