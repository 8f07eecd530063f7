"""Word segmentation scores as in the SIGHAN bakeoffs.

A predicted word is right when both its ends are the ends of one gold word. Counts are summed over all sentences
before dividing, so long sentences weigh more. The bakeoff's own script counts the same, but for accidents of the
alignment it uses: see `paribus.evaluation.segmenters.script`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from paribus.errors import DataError


@dataclass(frozen=True)
class SegmentationScores:
    """Scores in [0, 1] and the counts of words behind them."""

    precision: float
    """Right predicted words over predicted words; 0 without predicted words."""
    recall: float
    """Right predicted words over gold words; 0 without gold words."""
    f1: float
    """Harmonic mean of the two; 0 when both are 0."""
    correct: int
    predicted: int
    gold: int


def segmentation_scores(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> SegmentationScores:
    """Score segmentations of the same sentences (SIGHAN bakeoff; arXiv 2506.15889, section 4).

    `predicted[i]` and `gold[i]` are the words of sentence i; each list's concatenation must be the same text.
    Raises DataError naming the sentence (counted from 1) where the texts differ or a word is empty.
    """
    check_same_text(predicted, gold)
    correct = sum(len(_spans(words) & _spans(reference)) for words, reference in zip(predicted, gold, strict=True))
    return scores_of_counts(correct, sum(map(len, predicted)), sum(map(len, gold)))


def scores_of_counts(correct: int, predicted: int, gold: int) -> SegmentationScores:
    """Precision, recall and F1 of the numbers of right, predicted and gold words."""
    precision = correct / predicted if predicted else 0.0
    recall = correct / gold if gold else 0.0
    f1 = 2 * correct / (predicted + gold) if correct else 0.0
    return SegmentationScores(precision, recall, f1, correct, predicted, gold)


def check_same_text(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> None:
    """Raise DataError naming the sentence (counted from 1) where the texts differ or a word is empty."""
    if len(predicted) != len(gold):
        raise DataError(f"{len(predicted)} predicted sentences against {len(gold)} gold sentences; they must be pairs")
    for number, (words, gold_words) in enumerate(zip(predicted, gold, strict=True), start=1):
        _check(number, words, gold_words)


def _check(number: int, words: Sequence[str], gold_words: Sequence[str]) -> None:
    if not all(words) or not all(gold_words):
        raise DataError(f"sentence {number} has an empty word")
    text, gold_text = "".join(words), "".join(gold_words)
    if text == gold_text:
        return
    pairs = zip(text, gold_text, strict=False)
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(text), len(gold_text)))
    raise DataError(
        f"sentence {number}: the predicted words spell another text than the gold words, from character {at + 1} on: "
        f"{text[at : at + 20]!r} against {gold_text[at : at + 20]!r}"
    )


def _spans(words: Sequence[str]) -> set[tuple[int, int]]:
    spans, start = set(), 0
    for word in words:
        spans.add((start, start + len(word)))
        start += len(word)
    return spans
