"""OpenBookQA (Mihaylov et al. 2018): elementary science, four choices."""

from paribus.evaluation.suites.benchmark import Benchmark, BenchmarkPrompt, Hub, Record, lettered, text
from paribus.evaluation.tasks.items import Item


def item(name: str, record: Record) -> Item:
    """Fields question_stem, choices (text and label lists) and answerKey (one of the labels)."""
    return Item(name, text(record, "question_stem"), *lettered(record))


OPENBOOKQA = Benchmark(
    "openbookqa",
    "test",
    item,
    BenchmarkPrompt("OpenBookQA test, prompt of lm-eval openbookqa"),
    Hub("allenai/openbookqa", "main"),
)
