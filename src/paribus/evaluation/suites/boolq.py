"""BoolQ (Clark et al. 2019): yes or no questions about a passage."""

from paribus.evaluation.suites.benchmark import Benchmark, BenchmarkPrompt, Hub, Record, index, text
from paribus.evaluation.tasks.items import Item

ANSWERS = ("no", "yes")


def item(name: str, record: Record) -> Item:
    """Fields passage, question and label (0 no, 1 yes)."""
    query = f"{text(record, 'passage')}\nQuestion: {text(record, 'question')}?\nAnswer:"
    return Item(name, query, ANSWERS, index(record, "label", ANSWERS))


BOOLQ = Benchmark(
    "boolq",
    "validation",
    item,
    BenchmarkPrompt("BoolQ validation, prompt of lm-eval boolq"),
    Hub("aps/super_glue", "boolq"),
)
