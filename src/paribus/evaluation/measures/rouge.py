"""ROUGE (Lin 2004) by the package rouge_score, as SCROLLS' own script takes it: F-measures, without stemming."""

import math
from collections.abc import Sequence

from rouge_score.rouge_scorer import RougeScorer

ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")
GEOMETRIC_MEAN = "rouge_geometric_mean"


def rouge_scores(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> list[dict[str, float]]:
    """ROUGE-1, -2 and -L of each prediction, in [0, 1], each of the accepted answer that is best for it.

    SCROLLS' score is the geometric mean of the three means over items, and no mean over items itself. What an item has
    of it here is its linearised value (delta method): G + G / 3 · Σ (R_i - mean R) / mean R over the three. The mean of
    these is G, and their spread gives its standard error and paired tests. They are 0 where one of the means is 0.
    """
    scorer = RougeScorer(list(ROUGE_TYPES), use_stemmer=False)
    found = [_of_one(scorer, text, accepted) for text, accepted in zip(predictions, answers, strict=True)]
    means = {name: math.fsum(scores[name] for scores in found) / len(found) for name in ROUGE_TYPES}
    whole = math.prod(means.values()) ** (1 / len(means))
    return [scores | {GEOMETRIC_MEAN: _linearised(scores, means, whole)} for scores in found]


def _of_one(scorer: RougeScorer, prediction: str, answers: Sequence[str]) -> dict[str, float]:
    best = scorer.score_multi(answers, prediction)
    return {name: float(best[name].fmeasure) for name in ROUGE_TYPES}


def _linearised(scores: dict[str, float], means: dict[str, float], whole: float) -> float:
    if not whole:
        return 0.0
    return whole + whole / len(means) * sum((scores[name] - mean) / mean for name, mean in means.items())
