"""COPA (Roemmele et al. 2011): the more plausible cause or effect."""

from paribus.errors import DataError
from paribus.evaluation.suites.benchmark import Benchmark, BenchmarkPrompt, Hub, Record, index, text, texts
from paribus.evaluation.tasks.items import Item

CONNECTORS = {"cause": "because", "effect": "therefore"}


def item(name: str, record: Record) -> Item:
    """Fields query (premise and connector, such as "The woman retired, therefore"), choices and gold; or the hub's.

    The hub's are premise, question (cause or effect), choice1, choice2 and label; then the prompt is that of lm-eval
    copa.
    """
    if "query" in record:
        choices = texts(record, "choices")
        return Item(name, text(record, "query"), choices, index(record, "gold", choices))
    question = text(record, "question")
    if question not in CONNECTORS:
        raise DataError(f"field `question` must be cause or effect, not {question!r}")
    choices = tuple(_lowered(text(record, field)) for field in ("choice1", "choice2"))
    query = f"{text(record, 'premise').strip()[:-1]} {CONNECTORS[question]}"
    return Item(name, query, choices, index(record, "label", choices))


def _lowered(choice: str) -> str:
    return choice[0].lower() + choice[1:]


COPA = Benchmark(
    "copa", "validation", item, BenchmarkPrompt("COPA validation, prompt as in the file"), Hub("aps/super_glue", "copa")
)
