"""NQ-Swap (Longpre et al. 2021): questions whose passage was changed, so that it contradicts what a model remembers."""

from paribus.evaluation.suites.benchmark import Benchmark, BenchmarkPrompt, Generation, Hub, Record, answers, text
from paribus.evaluation.tasks.items import AnswerItem


def item(name: str, record: Record) -> AnswerItem:
    """Fields question, sub_context (the changed passage) and sub_answer (a list: what the passage now says)."""
    query = f"{text(record, 'sub_context').strip()}\nQuestion: {text(record, 'question')}?\nAnswer:"
    return AnswerItem(name, query, answers(record, "sub_answer"))


NQ_SWAP = Benchmark(
    "nq_swap",
    "dev",
    item,
    BenchmarkPrompt("NQ-Swap, the changed passage before the question"),
    Hub("pminervini/NQ-Swap", train=False),
    Generation(("\n",), "squad"),
)
