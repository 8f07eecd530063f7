"""SIGHAN word segmentation scores."""

import random

import pytest

from paribus.errors import DataError
from paribus.evaluation import segmentation_scores


def obvious_scores(predicted: list[list[str]], gold: list[list[str]]) -> tuple[float, float, float]:
    """Boundaries as sets of positions; a word is right when both ends are ends of one gold word."""
    right = words = gold_words = 0
    for sentence, reference in zip(predicted, gold, strict=True):
        for i, word in enumerate(sentence):
            start = len("".join(sentence[:i]))
            for j, gold_word in enumerate(reference):
                gold_start = len("".join(reference[:j]))
                right += (start, start + len(word)) == (gold_start, gold_start + len(gold_word))
        words, gold_words = words + len(sentence), gold_words + len(reference)
    precision, recall = right / words, right / gold_words
    return precision, recall, 2 * precision * recall / (precision + recall) if right else 0.0


def test_a_predicted_word_is_right_when_both_its_ends_are_a_gold_words() -> None:
    scores = segmentation_scores([["我们", "在", "北京", "大学"]], [["我们", "在", "北京大学"]])
    assert (scores.correct, scores.predicted, scores.gold) == (2, 4, 3)
    assert scores.precision == pytest.approx(2 / 4)
    assert scores.recall == pytest.approx(2 / 3)
    assert scores.f1 == pytest.approx(2 * 2 / 7)


def test_scores_agree_with_the_obvious_computation_on_random_segmentations() -> None:
    draw = random.Random(3)

    def cut(text: str) -> list[str]:
        words, start = [], 0
        for i in range(1, len(text) + 1):
            if i == len(text) or draw.random() < 0.5:
                words.append(text[start:i])
                start = i
        return words

    texts = ["".join(draw.choices("甲乙丙丁ab", k=draw.randint(1, 12))) for _ in range(60)]
    predicted, gold = [cut(text) for text in texts], [cut(text) for text in texts]
    scores = segmentation_scores(predicted, gold)
    assert (scores.precision, scores.recall, scores.f1) == pytest.approx(obvious_scores(predicted, gold))


def test_the_gold_segmentation_scores_one_and_nothing_right_scores_zero() -> None:
    gold = [["甲乙", "丙"], ["丁"]]
    assert segmentation_scores(gold, gold).f1 == 1
    assert segmentation_scores([["甲", "乙丙"]], [["甲乙丙"]]).f1 == 0
    assert segmentation_scores([], []).precision == 0


def test_sentences_of_different_text_are_refused_by_number() -> None:
    with pytest.raises(DataError, match=r"sentence 2: .* from character 3 on"):
        segmentation_scores([["a"], ["bc", "d"]], [["a"], ["bc", "e"]])
    with pytest.raises(DataError, match="2 predicted sentences against 1"):
        segmentation_scores([["a"], ["b"]], [["a"]])
    with pytest.raises(DataError, match="sentence 1 has an empty word"):
        segmentation_scores([["a", ""]], [["a"]])
