"""Exact match and F1 of written answers, by lm-eval's copies of the official scripts. Imports lm_eval."""

from collections.abc import Sequence

from lm_eval.tasks.drop.utils import get_metrics
from lm_eval.tasks.qasper.metrics import f1_abstractive, normalize_answer

Answers = Sequence[Sequence[str]]
"""Accepted answers, each one span of text or several."""


def squad_scores(prediction: str, answers: Answers) -> dict[str, float]:
    """SQuAD v1.1 (Rajpurkar et al. 2016): the best accepted answer counts.

    Case, punctuation, articles and runs of whitespace do not matter; F1 is over words.
    """
    accepted = [", ".join(spans) for spans in answers]
    exact = any(normalize_answer(prediction) == normalize_answer(answer) for answer in accepted)
    return {
        "exact_match": float(exact),
        "f1": max(float(f1_abstractive([prediction], [answer])) for answer in accepted),
    }


def drop_scores(prediction: str, answers: Answers) -> dict[str, float]:
    """DROP (Dua et al. 2019): the best accepted answer counts, its spans aligned with the prediction.

    Numbers are compared as numbers, and F1 is 0 where they differ.
    """
    pairs = [get_metrics([prediction], tuple(spans)) for spans in answers]
    return {
        "exact_match": max(float(exact) for exact, _ in pairs),
        "f1": max(float(f1) for _, f1 in pairs),
    }
