"""The records of a borrowed task: JSON lines in `evaluation.data`, from the hub, or where the user's YAML says."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import DataError
from paribus.evaluation.borrowed.definition import Definition
from paribus.evaluation.suites.files import DataFile, read_lines, split_file
from paribus.evaluation.suites.hub import Splits, load, write_some, write_splits


@dataclass(frozen=True)
class SplitFiles:
    """Where the records of a task lie."""

    scored: Path
    fewshot: Path | None
    """None where there is no file of examples."""


def split_files(config: EvaluationConfig, task: Definition) -> SplitFiles:
    """The files; ConfigurationError where `evaluation.data` is null, DataError where they are missing."""
    if (named := _named_files(task)) is not None:
        scored = _named(task, named, task.scored_split)
        return SplitFiles(scored, _named(task, named, task.fewshot_split) if task.fewshot_split else None)
    split = task.scored_split
    hint = "; evaluation.source=hub fetches it"
    scored = DataFile(f"task {task.name}", task.name, (f"{split}.jsonl",), hint).find(config.data)
    fewshot = task.fewshot_split and split_file(scored.parent.parent, task.name, task.fewshot_split)
    return SplitFiles(scored, fewshot or None)


def fetch_records(config: EvaluationConfig, task: Definition) -> None:
    """Write the splits of the task's data set below `evaluation.data`, unless the scored one is there.

    Raises DataError where they can be had neither from the hub nor from the Hugging Face cache.
    """
    if config.data is None or _named_files(task) is not None:
        return
    data, split = Path(config.data), task.scored_split
    if split_file(data, task.name, split) is not None:
        return
    wanted = [task.fewshot_split] if task.fewshot_split else []
    write_splits(data, task.name, (_load(task), _data_set(task)), split, wanted)


def lacks_examples(data: Path, task: Definition) -> bool:
    """Whether the hub may have the split of the task's examples, which is not below `data`."""
    fetched = task.fewshot_split is not None and bool(task.config.get("dataset_path")) and _named_files(task) is None
    return fetched and split_file(data, task.name, str(task.fewshot_split)) is None


def fetch_examples(data: Path, task: Definition) -> None:
    """Write the split of the task's examples alone, where its data set has it; DataError where that cannot be had."""
    write_some(data, task.name, _load(task), [str(task.fewshot_split)])


def _load(task: Definition) -> Splits:
    if not task.config.get("dataset_path"):
        raise DataError(f"evaluation.source: task {task.name} names no data set (dataset_path)")
    path, name = task.config["dataset_path"], task.config.get("dataset_name")
    found: Splits = load(_data_set(task), task.name, path, name, **_arguments(task))
    return found


def asked_for(task: Definition) -> str:
    """The data set with the arguments that it is loaded with."""
    return f"{_data_set(task)} {json.dumps(_arguments(task), sort_keys=True, default=str)}"


def is_here(task: Definition) -> bool:
    """Whether the data set is a directory of this machine, as `datasets` looks for it."""
    places = (task.config.get("dataset_path"), _arguments(task).get("data_dir"))
    return any(isinstance(place, str) and Path(place).is_dir() for place in places)


def _arguments(task: Definition) -> dict[str, Any]:
    return {key: value for key, value in _options(task).items() if key != "trust_remote_code"}


def _data_set(task: Definition) -> str:
    """What messages call it."""
    path, name = task.config.get("dataset_path"), task.config.get("dataset_name")
    return f"{path} ({name})" if name else str(path)


def read_split(path: Path, task: Definition) -> list[dict[str, Any]]:
    """The records of a file, in order; DataError names file and line."""
    return list(read_lines(path, f"task {task.name}", lambda _, record: dict(record)))


def _options(task: Definition) -> Mapping[str, Any]:
    found = task.config.get("dataset_kwargs")
    return found if isinstance(found, dict) else {}


def _named_files(task: Definition) -> Mapping[str, Any] | None:
    """By split the files that the YAML itself names; None where its data set is the hub's."""
    files = _options(task).get("data_files")
    if task.config.get("dataset_path") != "json" or files is None or "://" in json.dumps(files, default=str):
        return None
    return files if isinstance(files, dict) else {"train": files}  # so `datasets` calls a file without a split


def _named(task: Definition, files: Mapping[str, Any], split: str) -> Path:
    given = files.get(split)
    chosen = given[0] if isinstance(given, list) and len(given) == 1 else given
    if not isinstance(chosen, str):
        raise DataError(
            f"evaluation.include_path: {task.path} must name one file of JSON lines for the split {split!r} in "
            f"dataset_kwargs.data_files, not {given!r}"
        )
    path = task.path.parent / chosen
    if not path.is_file():
        raise DataError(f"evaluation.include_path: task {task.name} reads {path}, which is not there")
    return path
