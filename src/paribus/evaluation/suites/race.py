"""RACE (Lai et al. 2017): English examinations for high and middle school."""

from collections.abc import Mapping
from typing import Any

from paribus.errors import DataError
from paribus.evaluation.suites.benchmark import Benchmark, BenchmarkPrompt, Hub, Record, literal, text, texts
from paribus.evaluation.tasks.items import Item

LETTERS = "ABCD"
BLANK = "  _  ."
"""How a question that is a sentence with a gap at its end is written."""


def item(name: str, record: Record) -> Item:
    """Fields article and problems (question, options, answer of each; a list, or one written as a string).

    The last problem is asked, the others with their answers are part of the prompt, as in lm-eval. A record with the
    fields question, options and answer has one problem.
    """
    problems = literal(record, "problems") if "problems" in record else [record]
    if not isinstance(problems, list) or not problems or not all(isinstance(one, Mapping) for one in problems):
        raise DataError(f"field `problems` must be a list of one or more problems, not {problems!r}")
    *shown, asked = problems
    query = f"Article: {text(record, 'article')}\n\n{''.join(map(_answered, shown))}{text(asked, 'question')}"
    return Item(name, query, texts(asked, "options", least=4), _gold(asked))


def _answered(problem: Mapping[str, Any]) -> str:
    question, answer = text(problem, "question"), texts(problem, "options", least=4)[_gold(problem)]
    if question.endswith(BLANK):
        return f"{question[:-5]}{answer}\n"
    return f"Question: {question}\nAnswer: {answer}\n"


def _gold(problem: Mapping[str, Any]) -> int:
    answer = text(problem, "answer")
    if len(answer) != 1 or answer not in LETTERS:
        raise DataError(f"field `answer` must be one of {', '.join(LETTERS)}, not {answer!r}")
    return LETTERS.index(answer)


RACE_HIGH = Benchmark(
    "race_high",
    "test",
    item,
    BenchmarkPrompt("RACE-High test, prompt of lm-eval race"),
    Hub("EleutherAI/race", "high", train_path="ehovy/race"),
)
RACE_MIDDLE = Benchmark(
    "race_middle",
    "test",
    item,
    BenchmarkPrompt("RACE-Middle test, prompt of lm-eval race; on the hub every question is a record of its own"),
    Hub("ehovy/race", "middle"),
)
