"""Natural Questions with short answers (Lee et al. 2019), without context and with retrieved passages."""

from types import MappingProxyType

from paribus.evaluation.suites.benchmark import Benchmark, BenchmarkPrompt, Generation, Hub, Record, answers, text
from paribus.evaluation.suites.passages import open_book_item
from paribus.evaluation.tasks.items import AnswerItem

DESCRIPTION = "Answer these questions:\n\n"
GENERATION = Generation(
    ("\n", ".", ","),
    "lm_eval",
    MappingProxyType(
        {
            "ignore_case": True,
            "ignore_punctuation": True,
            "regexes_to_ignore": [r"\b(?:The |the |An |A |The |a |an )"],
        }
    ),
)


def item(name: str, record: Record) -> AnswerItem:
    """Fields question and answer (a list)."""
    return AnswerItem(name, _query(record), answers(record, "answer"))


def open_book(name: str, record: Record) -> AnswerItem:
    """Field question, and those of `open_book_item`."""
    return open_book_item(name, record, _query(record))


def _query(record: Record) -> str:
    return f"Q: {text(record, 'question')}?\nA:"


NQ_OPEN = Benchmark(
    "nq_open",
    "validation",
    item,
    BenchmarkPrompt("NQ-open validation, prompt of lm-eval nq_open", fewshot_delimiter="\n", description=DESCRIPTION),
    Hub("google-research-datasets/nq_open"),
    GENERATION,
)
NQ_OPEN_BOOK = Benchmark(
    "nq_open_book",
    "validation",
    open_book,
    BenchmarkPrompt("NQ-open with retrieved passages before the prompt of lm-eval nq_open", description=DESCRIPTION),
    generation=GENERATION,
)
