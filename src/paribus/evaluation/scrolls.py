"""Tasks of SCROLLS that models are fine-tuned on, and the stage `finetuning_data`: examples, and each document once.

They are those that In-Context Pretraining reports: Shaham et al. 2022, arXiv 2201.03533; Shi et al., arXiv 2310.10638.
The files of all tasks are read before anything is trained, so that a malformed one is named first.

`<task>/documents.jsonl` has a document a line, `<task>/train.jsonl` and `<task>/validation.jsonl` an example a line
with the number of its document. Documents, and answers that are trained on, are cut as the configuration says.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from paribus.config.groups.evaluation import FinetuningConfig, NoFinetuning, ScrollsFinetuning
from paribus.config.validate import unknown
from paribus.errors import ConfigurationError, DataError, ParibusError, Problem
from paribus.evaluation.data_files import fetch_archive, read_lines, split_file
from paribus.evaluation.items import Fields, entry, read_records, string, text, text_digest, write_records
from paribus.stage import JSON, StageContext
from paribus.store.files import FileDigests

ROUGE = ("rouge_geometric_mean", "rouge1", "rouge2", "rougeL")
TRAIN, SCORED = "train", "validation"
"""Splits; SCROLLS gives out no answers of its test splits."""


@dataclass(frozen=True)
class Task:
    """A question type: what is asked of a document, and how answers are judged."""

    name: str
    """Name in the hub's `tau/scrolls`, and of the directory of its files."""
    metrics: tuple[str, ...]
    """The one it is reported by first."""
    question: bool = True
    """True if the input begins with a question and an empty line."""


TASKS: Mapping[str, Task] = MappingProxyType(
    {
        task.name: task
        for task in (
            Task("narrative_qa", ("f1",)),
            Task("qasper", ("f1",)),
            Task("contract_nli", ("exact_match", "f1")),
            Task("qmsum", ROUGE),
            Task("gov_report", ROUGE, question=False),
        )
    }
)


SEPARATOR = "\n\n"
"""Between question and document."""
QUERIES = ("general_query_list", "specific_query_list")


@dataclass(frozen=True)
class Example:
    """A question about a document, and its accepted answers."""

    id: str
    question: str
    """Empty where the task asks the same of every document."""
    document: str
    answers: tuple[str, ...]

    def digest(self, *more: str) -> str:
        """Hexadecimal digest of question, document and `more`."""
        return text_digest(json.dumps([self.question, self.document, *more], ensure_ascii=False))


def examples_of(name: str, record: Fields, task: Task) -> list[Example]:
    """The examples of a record; DataError where it is of neither schema, or a text is missing or empty."""
    if task.name == "qmsum" and "meeting_transcripts" in record:
        return list(_meeting_examples(name, record))
    question, document = "", text(record, "input")
    if task.question:
        question, _, document = document.partition(SEPARATOR)
        if not question.strip() or not document.strip():
            beginning = record["input"][:60]
            raise DataError(f"field `input` must be a question, an empty line and a document, not {beginning!r}")
    return [Example(text(record, "id"), question, document, (text(record, "output"),))]


def _meeting_examples(name: str, record: Fields) -> Iterator[Example]:
    turns = _list_of_objects(record, "meeting_transcripts")
    spoken = [(text(turn, "speaker"), string(turn, "content")) for turn in turns]
    document = "\n".join(f"{speaker}: {content}" for speaker, content in spoken if content.strip())
    if not document:
        raise DataError("field `meeting_transcripts` says nothing")
    for field in QUERIES:
        for number, query in enumerate(_list_of_objects(record, field), start=1):
            kind = field.partition("_")[0]
            yield Example(f"{name}/{kind}/{number}", text(query, "query"), document, (text(query, "answer"),))


def _list_of_objects(record: Fields, field: str) -> list[dict[str, Any]]:
    value = entry(record, field)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise DataError(f"field `{field}` must be a list of objects, not {str(value)[:60]}")
    return value


def merged_examples(examples: Iterable[Example]) -> list[Example]:
    """Examples of one id as one that accepts the answers of all, in the order of the first.

    Raises DataError where they ask something else.
    """
    merged: dict[str, Example] = {}
    for example in examples:
        before = merged.setdefault(example.id, example)
        if before.digest() != example.digest():
            raise DataError(f"id {example.id!r} names two questions: {before.question!r} and {example.question!r}")
        if before is not example:
            merged[example.id] = replace(before, answers=tuple(dict.fromkeys((*before.answers, *example.answers))))
    return list(merged.values())


@dataclass(frozen=True)
class Question:
    """An example whose document is a number."""

    id: str
    question: str
    document: int
    """Line of the documents' file, from 0."""
    answers: tuple[str, ...]
    digest: str
    """Digest of question, document and answers."""


@dataclass(frozen=True)
class TaskData:
    """A task's examples and documents in memory."""

    documents: list[str]
    train: list[Question]
    scored: list[Question]


def build_data(context: StageContext) -> dict[str, JSON]:
    """Write the examples of every task; DataError names file and line of what is missing, malformed or empty."""
    config = context.config.finetuning
    assert isinstance(config, ScrollsFinetuning)
    counts: dict[str, JSON] = {}
    for number, name in enumerate(config.tasks):
        context.listener.progress(number, len(config.tasks), unit="tasks", doing=f"reading {name}")
        counts[name] = _write_task(context.output / name, config, TASKS[name])
    return {"tasks": counts}


def read_task(directory: Path) -> TaskData:
    """Read the directory that `build_data` wrote for a task."""
    train, scored = (
        [
            Question(**record | {"answers": tuple(record["answers"])})
            for record in read_records(directory / f"{split}.jsonl")
        ]
        for split in (TRAIN, SCORED)
    )
    return TaskData(read_records(directory / "documents.jsonl"), train, scored)


def _write_task(directory: Path, config: ScrollsFinetuning, task: Task) -> dict[str, JSON]:
    directory.mkdir()
    try:
        scored = merged_examples(read_split(config, task, SCORED))
    except DataError as error:
        path = str(task_file(config, task.name, SCORED))
        raise error if path in str(error) else DataError(f"{path}: {error}") from error
    digests = {example.digest() for example in scored}
    numbers: dict[str, int] = {}

    def numbered(example: Example) -> dict[str, Any]:
        document = numbers.setdefault(example.document[: config.document_characters], len(numbers))
        digest = example.digest(*example.answers)
        return asdict(Question(example.id, example.question, document, example.answers, digest))

    questions = [numbered(example) for example in scored[: config.limit]]
    train, left_out = [], 0
    for example in read_split(config, task, TRAIN):
        if example.digest() in digests:
            left_out += 1
        else:
            answers = tuple(answer[: config.answer_characters] for answer in example.answers)
            train.append(numbered(replace(example, answers=answers)))
    if not train:
        path = str(task_file(config, task.name, TRAIN))
        raise DataError(f"{path}: every example of it is scored too, so that none is left to train {task.name} on")
    write_records(directory / f"{SCORED}.jsonl", questions)
    write_records(directory / f"{TRAIN}.jsonl", train)
    write_records(directory / "documents.jsonl", numbers)
    return {"train": len(train), "scored": len(questions), "documents": len(numbers), "left_out": left_out}


HUB = "https://huggingface.co/datasets/tau/scrolls/resolve/main"


def task_file(config: ScrollsFinetuning, task: str, split: str) -> Path:
    """The file of a split; ConfigurationError where there is no directory to look in, DataError for a missing file."""
    if config.data is None:
        files = f"{task}/{TRAIN}.jsonl[.gz] and {task}/{SCORED}.jsonl[.gz]"
        message = f"finetuning.tasks names {task}, which needs the directory that holds {files}; it is null"
        raise ConfigurationError(Problem("evaluation.data", message))
    path = split_file(Path(config.data), task, split)
    if path is None:
        expected = Path(config.data) / task / f"{split}.jsonl"
        message = f"fine-tuning on {task} needs {expected} or the same with .gz; evaluation.source=hub fetches it"
        raise DataError(Problem("evaluation.data", message))
    return path


def read_split(config: ScrollsFinetuning, task: Task, split: str) -> Iterator[Example]:
    """The examples of a split in order; DataError names file and line."""
    path = task_file(config, task.name, split)
    for examples in read_lines(path, f"task {task.name}", lambda name, record: examples_of(name, record, task)):
        yield from examples


def scrolls_fingerprint(config: ScrollsFinetuning, digests: FileDigests) -> dict[str, JSON]:
    """Digests of the files of each task; ConfigurationError for unknown tasks, DataError for a missing file."""
    if problems := check_scrolls_names(config):
        raise ConfigurationError(*problems)
    return {
        name: {split: digests.of(task_file(config, name, split)) for split in (TRAIN, SCORED)} for name in config.tasks
    }


def check_scrolls(config: FinetuningConfig) -> list[Problem]:
    """(config path, what is wrong and what would be right) of every problem; empty when there is none."""
    if isinstance(config, NoFinetuning):
        return []
    return check_scrolls_names(config) + [
        problem for name in config.tasks if name in TASKS for problem in _missing_files(config, name)
    ]


def check_scrolls_names(config: FinetuningConfig) -> list[Problem]:
    """The problems that no file decides."""
    if isinstance(config, NoFinetuning):
        return []
    messages = [unknown(name, list(TASKS)) for name in config.tasks if name not in TASKS]
    messages += [f"names {name} {count} times" for name, count in Counter(config.tasks).items() if count > 1]
    return [Problem("finetuning.tasks", problem) for problem in messages]


def _missing_files(config: ScrollsFinetuning, name: str) -> Iterator[Problem]:
    for split in (TRAIN, SCORED):
        try:
            if config.source == "hub" and config.data is not None:
                fetch_archive(Path(config.data), name, split, f"zip://{name}/{split}.jsonl::{HUB}/{name}.zip")
            task_file(config, name, split)
        except ParibusError as error:
            yield from error.problems
