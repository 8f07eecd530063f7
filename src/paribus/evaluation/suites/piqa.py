"""PIQA (Bisk et al. 2020): which of two solutions reaches a goal."""

from paribus.evaluation.suites.benchmark import Benchmark, Question, Record, index, text


def question(record: Record) -> Question:
    """Fields goal, sol1, sol2 and label (0 or 1)."""
    choices = [text(record, "sol1"), text(record, "sol2")]
    return f"Question: {text(record, 'goal')}\nAnswer:", choices, index(record, "label", choices)


PIQA = Benchmark("piqa", "validation", question, "PIQA validation, prompt of lm-eval piqa")
