"""ARC (Clark et al. 2018): grade-school science, an easy and a challenge set."""

from paribus.evaluation.suites.benchmark import Benchmark, BenchmarkPrompt, Hub, Record, index, lettered, text, texts
from paribus.evaluation.tasks.items import Item


def item(name: str, record: Record) -> Item:
    """Fields query (beginning with "Question: "), choices and gold (index); or the hub's.

    The hub's are question, choices (text and label lists) and answerKey (one of the labels).
    """
    if "query" in record:
        choices = texts(record, "choices")
        return Item(name, f"{text(record, 'query')}\nAnswer:", choices, index(record, "gold", choices))
    return Item(name, f"Question: {text(record, 'question')}\nAnswer:", *lettered(record))


ARC_EASY = Benchmark(
    "arc_easy",
    "test",
    item,
    BenchmarkPrompt("ARC-Easy test, prompt of lm-eval arc_easy"),
    Hub("allenai/ai2_arc", "ARC-Easy"),
)
ARC_CHALLENGE = Benchmark(
    "arc_challenge",
    "test",
    item,
    BenchmarkPrompt("ARC-Challenge test, prompt of lm-eval arc_challenge"),
    Hub("allenai/ai2_arc", "ARC-Challenge"),
)
