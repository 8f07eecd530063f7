"""ARC (Clark et al. 2018): grade-school science, an easy and a challenge set."""

from paribus.evaluation.suites.benchmark import Benchmark, Question, Record, index, text, texts


def question(record: Record) -> Question:
    """Fields query (beginning with "Question: "), choices and gold (index)."""
    choices = texts(record, "choices")
    return f"{text(record, 'query')}\nAnswer:", choices, index(record, "gold", choices)


ARC_EASY = Benchmark("arc_easy", "test", question, "ARC-Easy test, prompt of lm-eval arc_easy")
ARC_CHALLENGE = Benchmark("arc_challenge", "test", question, "ARC-Challenge test, prompt of lm-eval arc_challenge")
