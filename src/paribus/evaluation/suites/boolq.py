"""BoolQ (Clark et al. 2019): yes or no questions about a passage."""

from paribus.evaluation.suites.benchmark import Benchmark, Question, Record, index, text


def question(record: Record) -> Question:
    """Fields passage, question and label (0 no, 1 yes)."""
    choices = ["no", "yes"]
    prompt = f"{text(record, 'passage')}\nQuestion: {text(record, 'question')}?\nAnswer:"
    return prompt, choices, index(record, "label", choices)


BOOLQ = Benchmark("boolq", "validation", question, "BoolQ validation, prompt of lm-eval boolq")
