"""CommonsenseQA (Talmor et al. 2019), answered by the letter of the choice."""

from paribus.evaluation.suites.benchmark import Benchmark, Question, Record, index, text, texts


def question(record: Record) -> Question:
    """Fields query (the whole prompt, choices listed in it), choices (letters) and gold (index)."""
    choices = texts(record, "choices")
    return text(record, "query"), choices, index(record, "gold", choices)


COMMONSENSE_QA = Benchmark("commonsense_qa", "validation", question, "CommonsenseQA validation, prompt as in the file")
