"""The artefact `finetuning_data`: of each task the examples of both splits, and each document once.

`<task>/documents.jsonl` has a document a line, `<task>/train.jsonl` and `<task>/validation.jsonl` an example a line
with the number of its document. Documents, and answers that are trained on, are cut as the configuration says.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from paribus.config.groups.evaluation import ScrollsFinetuning
from paribus.errors import DataError
from paribus.evaluation.tasks.items import read_records
from paribus.finetuning.examples import Example, merged
from paribus.finetuning.files import read_split, task_file
from paribus.finetuning.tasks import SCORED, TASKS, TRAIN, Task
from paribus.stage import JSON, StageContext


@dataclass(frozen=True)
class Question:
    """An example whose document is a number."""

    id: str
    question: str
    document: int
    """Line of the documents' file, from 0."""
    answers: tuple[str, ...]
    digest: str
    """Of question, document and answers."""


@dataclass(frozen=True)
class TaskData:
    """A task's examples and documents in memory."""

    documents: list[str]
    train: list[Question]
    scored: list[Question]


def build(context: StageContext) -> dict[str, JSON]:
    """Write the examples of every task; DataError names file and line of what is missing, malformed or empty."""
    config = context.config.finetuning
    assert isinstance(config, ScrollsFinetuning)
    counts: dict[str, JSON] = {}
    for number, name in enumerate(config.tasks):
        context.report.progress(number, len(config.tasks), unit="tasks", doing=f"reading {name}")
        counts[name] = _write_task(context.output / name, config, TASKS[name])
    return {"tasks": counts}


def read_task(directory: Path) -> TaskData:
    """What `build` wrote of a task."""
    documents: list[Any] = read_records(directory / "documents.jsonl")
    return TaskData(documents, _questions(directory / f"{TRAIN}.jsonl"), _questions(directory / f"{SCORED}.jsonl"))


def _write_task(directory: Path, config: ScrollsFinetuning, task: Task) -> dict[str, JSON]:
    directory.mkdir()
    scored = _scored(config, task)
    same = {example.digest() for example in scored}
    left_out = 0
    with (directory / "documents.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        writer = _Writer(file, config.document_characters)
        _write(directory / f"{SCORED}.jsonl", [writer.question(example) for example in scored[: config.limit]])
        kept = []
        for example in read_split(config, task, TRAIN):
            if example.digest() in same:
                left_out += 1
            else:
                kept.append(writer.question(_cut(example, config.answer_characters)))
        _write(directory / f"{TRAIN}.jsonl", kept)
    if not kept:
        path = task_file(config, task.name, TRAIN)
        raise DataError(f"{path}: every example of it is scored too, so that none is left to train {task.name} on")
    shown = len(scored[: config.limit])
    return {"train": len(kept), "scored": shown, "documents": writer.documents, "left_out": left_out}


def _scored(config: ScrollsFinetuning, task: Task) -> list[Example]:
    try:
        return merged(read_split(config, task, SCORED))
    except DataError as error:
        path = str(task_file(config, task.name, SCORED))
        raise error if path in str(error) else DataError(f"{path}: {error}") from error


def _cut(example: Example, characters: int) -> Example:
    return replace(example, answers=tuple(answer[:characters] for answer in example.answers))


class _Writer:
    """Writes documents once each, and gives examples their numbers."""

    def __init__(self, file: TextIO, characters: int | None) -> None:
        self._file, self._characters = file, characters
        self._numbers: dict[str, int] = {}

    @property
    def documents(self) -> int:
        """Documents written so far."""
        return len(self._numbers)

    def question(self, example: Example) -> Question:
        """The example with its document written, if it is the first of that document."""
        document = example.document[: self._characters]
        if document not in self._numbers:
            self._numbers[document] = len(self._numbers)
            self._file.write(json.dumps(document, ensure_ascii=False) + "\n")
        number = self._numbers[document]
        return Question(example.id, example.question, number, example.answers, example.whole_digest())


def _write(path: Path, questions: Iterable[Question]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for question in questions:
            file.write(json.dumps(asdict(question), ensure_ascii=False) + "\n")


def _questions(path: Path) -> list[Question]:
    return [Question(**record | {"answers": tuple(record["answers"])}) for record in read_records(path)]
