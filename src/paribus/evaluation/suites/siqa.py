"""Social IQa (Sap et al. 2019): questions about people's motives and reactions."""

from paribus.evaluation.suites.benchmark import Benchmark, BenchmarkPrompt, Hub, Record, index, text, texts
from paribus.evaluation.tasks.items import Item


def item(name: str, record: Record) -> Item:
    """Fields context, question, choices and label (index); or the hub's: answerA, answerB, answerC, label (1 to 3)."""
    query = f"Q: {text(record, 'context')} {text(record, 'question')}\nA:"
    if "choices" in record:
        choices = texts(record, "choices")
        return Item(name, query, choices, index(record, "label", choices))
    choices = tuple(text(record, f"answer{letter}") for letter in "ABC")
    return Item(name, query, choices, index(record, "label", choices, first=1))


SIQA = Benchmark(
    "siqa",
    "validation",
    item,
    BenchmarkPrompt("Social IQa validation, prompt of lm-eval social_iqa"),
    Hub("lighteval/siqa"),
)
