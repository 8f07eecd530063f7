"""LAMBADA (Paperno et al. 2016), in OpenAI's form: the last word of a passage."""

from paribus.errors import DataError
from paribus.evaluation.suites.benchmark import Benchmark, BenchmarkPrompt, Hub, Record, text
from paribus.evaluation.tasks.items import TextItem


def item(name: str, record: Record) -> TextItem:
    """Field text, whose last word is predicted; or the fields context and continuation."""
    if "context" in record:
        return TextItem(name, text(record, "context"), f" {text(record, 'continuation')}")
    context, space, word = text(record, "text").rpartition(" ")
    if not context or not word:
        raise DataError(f"field `text` must be two words or more and end in one, not {record['text']!r}")
    return TextItem(name, context, space + word)


LAMBADA_OPENAI = Benchmark(
    "lambada_openai",
    "test",
    item,
    BenchmarkPrompt("LAMBADA test, prompt of lm-eval lambada_openai", target_delimiter=""),
    Hub("EleutherAI/lambada_openai", "default", train=False),
)
