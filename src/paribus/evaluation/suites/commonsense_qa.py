"""CommonsenseQA (Talmor et al. 2019), answered by the letter of the choice."""

from paribus.evaluation.suites.benchmark import Benchmark, BenchmarkPrompt, Hub, Record, index, lettered, text, texts
from paribus.evaluation.tasks.items import Item


def item(name: str, record: Record) -> Item:
    """Fields query (the whole prompt, choices listed in it), choices (letters) and gold (index); or the hub's.

    The hub's are question, choices (text and label lists) and answerKey; then the prompt is that of lm-eval
    commonsense_qa.
    """
    if "query" in record:
        choices = texts(record, "choices")
        return Item(name, text(record, "query"), choices, index(record, "gold", choices))
    choices, gold = lettered(record)
    letters = tuple("ABCDEFGHIJ"[: len(choices)])
    listed = "\n".join(f"{letter}. {choice}" for letter, choice in zip(letters, choices, strict=True))
    return Item(name, f"Question: {text(record, 'question').strip()}\n{listed}\nAnswer:", letters, gold)


COMMONSENSE_QA = Benchmark(
    "commonsense_qa",
    "validation",
    item,
    BenchmarkPrompt("CommonsenseQA validation, prompt as in the file"),
    Hub("tau/commonsense_qa"),
)
