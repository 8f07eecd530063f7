"""HellaSwag (Zellers et al. 2019): how a description of a scene goes on."""

import re

from paribus.evaluation.suites.benchmark import Benchmark, BenchmarkPrompt, Hub, Record, index, string, text, texts
from paribus.evaluation.tasks.items import Item


def item(name: str, record: Record) -> Item:
    """Fields activity_label, ctx_a, ctx_b (may be empty), endings and label (index)."""
    context = f"{text(record, 'ctx_a')} {string(record, 'ctx_b').capitalize()}"
    endings = texts(record, "endings")
    choices = tuple(_cleaned(ending) for ending in endings)
    return Item(
        name, _cleaned(f"{text(record, 'activity_label')}: {context}"), choices, index(record, "label", endings)
    )


def _cleaned(content: str) -> str:
    """Without the marks that WikiHow's articles left, as lm-eval does it."""
    content = content.strip().replace(" [title]", ". ")
    return re.sub(r"\[.*?\]", "", content).replace("  ", " ")


HELLASWAG = Benchmark(
    "hellaswag",
    "validation",
    item,
    BenchmarkPrompt("HellaSwag validation, prompt of lm-eval hellaswag"),
    Hub("Rowan/hellaswag"),
)
