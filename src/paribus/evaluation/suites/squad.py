"""SQuAD v1.1 (Rajpurkar et al. 2016): the span of a passage that answers a question."""

from collections.abc import Mapping

from paribus.errors import DataError
from paribus.evaluation.items import AnswerItem
from paribus.evaluation.suites.benchmark import Benchmark, Generation, Hub, Prompt, Record, entry, text, texts


def item(name: str, record: Record) -> AnswerItem:
    """Fields title, context, question and answers (with the list text)."""
    title, context, question = (text(record, field) for field in ("title", "context", "question"))
    answers = entry(record, "answers")
    if not isinstance(answers, Mapping):
        raise DataError(f"field `answers` must hold the list text, not {answers!r}")
    query = f"Title: {title}\n\nBackground: {context}\n\nQuestion: {question}\n\nAnswer:"
    return AnswerItem(name, query, tuple((answer,) for answer in texts(answers, "text", least=1)))


SQUAD = Benchmark(
    "squad",
    "validation",
    item,
    Prompt("SQuAD v1.1 validation, prompt of lm-eval squadv2"),
    Hub("rajpurkar/squad"),
    Generation(("\n",), "squad"),
)
