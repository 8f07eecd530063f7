"""TriviaQA (Joshi et al. 2017), without context and with retrieved passages."""

from collections.abc import Mapping
from types import MappingProxyType

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
from paribus.evaluation.suites.passages import open_book_item
from paribus.evaluation.tasks.items import AnswerItem

GENERATION = Generation(
    ("\n", ".", ","), "lm_eval", MappingProxyType({"ignore_case": True, "ignore_punctuation": True})
)


def item(name: str, record: Record) -> AnswerItem:
    """Fields question and answer (with the list aliases)."""
    answer = entry(record, "answer")
    if not isinstance(answer, Mapping):
        raise DataError(f"field `answer` must hold the list aliases, not {answer!r}")
    return AnswerItem(name, _query(record), answers(answer, "aliases"))


def open_book(name: str, record: Record) -> AnswerItem:
    """Field question, and those of `open_book_item`."""
    return open_book_item(name, record, _query(record))


def _query(record: Record) -> str:
    return f"Question: {text(record, 'question')}?\nAnswer:"


TRIVIAQA = Benchmark(
    "triviaqa",
    "validation",
    item,
    BenchmarkPrompt("TriviaQA validation without context, prompt of lm-eval triviaqa"),
    Hub("mandarjoshi/trivia_qa", "rc.nocontext"),
    GENERATION,
)
TRIVIAQA_OPEN_BOOK = Benchmark(
    "triviaqa_open_book",
    "validation",
    open_book,
    BenchmarkPrompt("TriviaQA with retrieved passages before the prompt of lm-eval triviaqa"),
    generation=GENERATION,
)
