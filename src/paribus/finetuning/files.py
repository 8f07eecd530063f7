"""The files of fine-tuning tasks: where they are, what identifies them, and what is refused before anything runs."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from paribus.config.groups.evaluation import FinetuningConfig, NoFinetuning, ScrollsFinetuning
from paribus.errors import ConfigurationError, DataError, ParibusError
from paribus.evaluation.suites.files import read_lines, split_file
from paribus.evaluation.suites.hub import fetch_archive
from paribus.evaluation.suites.registry import unknown_task
from paribus.finetuning.examples import Example, examples_of
from paribus.finetuning.tasks import SCORED, TASKS, TRAIN, Task
from paribus.stage import JSON
from paribus.store.files import FileDigests

HUB = "https://huggingface.co/datasets/tau/scrolls/resolve/main"


def task_file(config: ScrollsFinetuning, task: str, split: str) -> Path:
    """The file of a split; ConfigurationError where there is no directory to look in, DataError for a missing file."""
    if config.data is None:
        raise ConfigurationError(
            f"evaluation.data: finetuning.tasks names {task}, which needs the directory that holds "
            f"{task}/{TRAIN}.jsonl[.gz] and {task}/{SCORED}.jsonl[.gz]; it is null"
        )
    found = split_file(Path(config.data), task, split)
    if found is None:
        expected = Path(config.data) / task / f"{split}.jsonl"
        raise DataError(
            f"evaluation.data: fine-tuning on {task} needs {expected} or the same with .gz; evaluation.source=hub "
            "fetches it"
        )
    return found


def read_split(config: ScrollsFinetuning, task: Task, split: str) -> Iterator[Example]:
    """The examples of a split in order; DataError names file and line."""
    path = task_file(config, task.name, split)
    for examples in read_lines(path, f"task {task.name}", lambda name, record: examples_of(name, record, task)):
        yield from examples


def fingerprint(config: ScrollsFinetuning, digests: FileDigests) -> dict[str, JSON]:
    """Digests of the files of each task; ConfigurationError for an unknown task, DataError for a missing file."""
    for name in config.tasks:
        if problem := unknown_task(name, list(TASKS)):
            raise ConfigurationError(f"finetuning.tasks: {problem}")
    return {
        name: {split: digests.of(task_file(config, name, split)) for split in (TRAIN, SCORED)} for name in config.tasks
    }


def problems(config: FinetuningConfig) -> list[tuple[str, str]]:
    """(config path, what is wrong and what would be right) of every problem; empty when there is none."""
    if isinstance(config, NoFinetuning):
        return []
    return wrong_names(config) + [
        problem for name in config.tasks if name in TASKS for problem in _missing(config, name)
    ]


def wrong_names(config: FinetuningConfig) -> list[tuple[str, str]]:
    """The problems that no file decides."""
    if isinstance(config, NoFinetuning):
        return []
    found = [problem for name in config.tasks if (problem := unknown_task(name, list(TASKS)))]
    found += [f"names {name} {count} times" for name, count in Counter(config.tasks).items() if count > 1]
    return [("finetuning.tasks", problem) for problem in found]


def _missing(config: ScrollsFinetuning, name: str) -> Iterator[tuple[str, str]]:
    for split in (TRAIN, SCORED):
        try:
            if config.source == "hub" and config.data is not None:
                fetch_archive(Path(config.data), name, split, f"zip://{name}/{split}.jsonl::{HUB}/{name}.zip")
            task_file(config, name, split)
        except ParibusError as error:
            path, _, message = str(error).partition(": ")
            yield path, message
