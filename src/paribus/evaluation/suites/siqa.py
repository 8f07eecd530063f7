"""Social IQa (Sap et al. 2019): questions about people's motives and reactions."""

from paribus.evaluation.suites.benchmark import Benchmark, Question, Record, index, text, texts


def question(record: Record) -> Question:
    """Fields context, question, choices and label (index)."""
    choices = texts(record, "choices")
    prompt = f"Q: {text(record, 'context')} {text(record, 'question')}\nA:"
    return prompt, choices, index(record, "label", choices)


SIQA = Benchmark("siqa", "validation", question, "Social IQa validation, prompt of lm-eval social_iqa")
