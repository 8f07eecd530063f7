"""WebQuestions (Berant et al. 2013): questions that Freebase answers."""

from paribus.evaluation.suites.benchmark import Benchmark, BenchmarkPrompt, Generation, Hub, Record, answers, text
from paribus.evaluation.tasks.items import AnswerItem


def item(name: str, record: Record) -> AnswerItem:
    """Fields question and answers."""
    return AnswerItem(name, f"Question: {text(record, 'question')}\nAnswer:", answers(record, "answers"))


WEBQS = Benchmark(
    "webqs",
    "test",
    item,
    BenchmarkPrompt("WebQuestions test, prompt of lm-eval webqs, the answer written instead of scored"),
    Hub("stanfordnlp/web_questions"),
    Generation(("\n",), "squad"),
)
