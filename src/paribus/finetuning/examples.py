"""From records of SCROLLS, or of QMSum's own files, to examples."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from paribus.errors import DataError
from paribus.evaluation.suites.benchmark import Record, entry, string, text
from paribus.finetuning.tasks import Task

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

    def digest(self) -> str:
        """Hexadecimal digest of question and document."""
        return _digest([self.question, self.document])

    def whole_digest(self) -> str:
        """Hexadecimal digest of question, document and answers."""
        return _digest([self.question, self.document, *self.answers])


def examples_of(name: str, record: Record, task: Task) -> list[Example]:
    """The examples of a record; DataError where it is of neither schema, or a text is missing or empty."""
    if task.name == "qmsum" and "meeting_transcripts" in record:
        return list(_of_meeting(name, record))
    question, document = _split(text(record, "input"), task)
    return [Example(text(record, "id"), question, document, (text(record, "output"),))]


def _split(given: str, task: Task) -> tuple[str, str]:
    if not task.question:
        return "", given
    question, found, document = given.partition(SEPARATOR)
    if not found or not question.strip() or not document.strip():
        raise DataError(f"field `input` must be a question, an empty line and a document, not {given[:60]!r}")
    return question, document


def _of_meeting(name: str, record: Record) -> Iterator[Example]:
    spoken = [(text(turn, "speaker"), string(turn, "content")) for turn in _objects(record, "meeting_transcripts")]
    turns = [f"{speaker}: {content}" for speaker, content in spoken if content.strip()]
    if not turns:
        raise DataError("field `meeting_transcripts` says nothing")
    document = "\n".join(turns)
    for field in QUERIES:
        for number, asked in enumerate(_objects(record, field), start=1):
            kind = field.partition("_")[0]
            yield Example(f"{name}/{kind}/{number}", text(asked, "query"), document, (text(asked, "answer"),))


def _objects(record: Record, field: str) -> list[dict[str, Any]]:
    """A field that must be a list of objects."""
    value = entry(record, field)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise DataError(f"field `{field}` must be a list of objects, not {str(value)[:60]}")
    return value


def merged(examples: Iterable[Example]) -> list[Example]:
    """Examples of one id as one that accepts the answers of all, in the order of the first.

    Raises DataError where they ask something else.
    """
    found: dict[str, Example] = {}
    for example in examples:
        before = found.setdefault(example.id, example)
        if before is example:
            continue
        if before.digest() != example.digest():
            raise DataError(f"id {example.id!r} names two questions: {before.question!r} and {example.question!r}")
        found[example.id] = replace(before, answers=tuple(dict.fromkeys((*before.answers, *example.answers))))
    return list(found.values())


def _digest(texts: list[str]) -> str:
    return hashlib.blake2b(json.dumps(texts, ensure_ascii=False).encode(), digest_size=16).hexdigest()
