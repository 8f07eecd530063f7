"""SQuAD v1.1 (Rajpurkar et al. 2016): the span of a passage that answers a question."""

from collections.abc import Mapping

from paribus.errors import DataError
from paribus.evaluation.suites.benchmark import (
    Benchmark,
    BenchmarkPrompt,
    Generation,
    Hub,
    Record,
    answers,
    entry,
    text,
)
from paribus.evaluation.tasks.items import AnswerItem


def item(name: str, record: Record) -> AnswerItem:
    """Fields title, context, question and answers (with the list text)."""
    title, context, question = (text(record, field) for field in ("title", "context", "question"))
    found = entry(record, "answers")
    if not isinstance(found, Mapping):
        raise DataError(f"field `answers` must hold the list text, not {found!r}")
    query = f"Title: {title}\n\nBackground: {context}\n\nQuestion: {question}\n\nAnswer:"
    return AnswerItem(name, query, answers(found, "text"))


SQUAD = Benchmark(
    "squad",
    "validation",
    item,
    BenchmarkPrompt("SQuAD v1.1 validation, prompt of lm-eval squadv2"),
    Hub("rajpurkar/squad"),
    Generation(("\n",), "squad"),
)
