"""COPA (Roemmele et al. 2011): the more plausible cause or effect."""

from paribus.evaluation.suites.benchmark import Benchmark, Question, Record, index, text, texts


def question(record: Record) -> Question:
    """Fields query (premise and connector, such as "The woman retired, therefore"), choices and gold (index)."""
    choices = texts(record, "choices")
    return text(record, "query"), choices, index(record, "gold", choices)


COPA = Benchmark("copa", "validation", question, "COPA validation, prompt as in the file")
