"""Winogrande (Sakaguchi et al. 2020): which of two names a pronoun, here a blank, stands for."""

from paribus.errors import DataError
from paribus.evaluation.suites.benchmark import Benchmark, BenchmarkPrompt, Hub, Record, index, text
from paribus.evaluation.tasks.items import BlankItem

BLANK = "_"


def item(name: str, record: Record) -> BlankItem:
    """Fields sentence (with the blank `_`), option1, option2 and answer (1 or 2)."""
    before, blank, after = text(record, "sentence").partition(BLANK)
    if not blank or not after.strip():
        raise DataError(f"field `sentence` must have a blank `{BLANK}` with text after it, not {record['sentence']!r}")
    contexts = tuple(before + text(record, field) for field in ("option1", "option2"))
    return BlankItem(name, contexts, after.strip(), index(record, "answer", contexts, first=1))


WINOGRANDE = Benchmark(
    "winogrande",
    "validation",
    item,
    BenchmarkPrompt("Winogrande validation, prompt of lm-eval winogrande"),
    Hub("allenai/winogrande", "winogrande_xl"),
)
