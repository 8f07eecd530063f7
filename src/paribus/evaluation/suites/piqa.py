"""PIQA (Bisk et al. 2020): which of two solutions reaches a goal."""

from paribus.evaluation.suites.benchmark import Benchmark, BenchmarkPrompt, Hub, Record, index, text
from paribus.evaluation.tasks.items import Item


def item(name: str, record: Record) -> Item:
    """Fields goal, sol1, sol2 and label (0 or 1)."""
    choices = (text(record, "sol1"), text(record, "sol2"))
    return Item(name, f"Question: {text(record, 'goal')}\nAnswer:", choices, index(record, "label", choices))


PIQA = Benchmark(
    "piqa", "validation", item, BenchmarkPrompt("PIQA validation, prompt of lm-eval piqa"), Hub("baber/piqa")
)
