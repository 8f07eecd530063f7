"""OpenBookQA (Mihaylov et al. 2018): elementary science, four choices."""

from paribus.errors import DataError
from paribus.evaluation.suites.benchmark import Benchmark, Question, Record, text, texts


def question(record: Record) -> Question:
    """Fields question_stem, choices (text and label lists) and answerKey (one of the labels)."""
    stem = text(record, "question_stem")
    if not isinstance(record.get("choices"), dict):
        raise DataError(f"field `choices` must hold the lists text and label, not {record.get('choices')!r}")
    choices, labels = texts(record["choices"], "text"), texts(record["choices"], "label")
    answer = text(record, "answerKey").strip()
    if len(labels) != len(choices) or answer not in labels:
        raise DataError(f"field `answerKey` must be one of {len(choices)} labels {labels}, not {answer!r}")
    return stem, choices, labels.index(answer)


OPENBOOKQA = Benchmark("openbookqa", "test", question, "OpenBookQA test, prompt of lm-eval openbookqa")
