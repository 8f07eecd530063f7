"""What each sentence contributes to precision, recall and F1 of words."""

import numpy as np
import pytest

from paribus.evaluation.evaluate import WORD_F1, WORD_PRECISION, WORD_RECALL, word_values
from paribus.evaluation.segmentation import SegmentedWords, scores_of_counts


def drawn(sentences: int, seed: int) -> list[SegmentedWords]:
    generator = np.random.default_rng(seed)
    gold = generator.integers(3, 60, sentences)
    predicted = gold + generator.integers(0, 6, sentences)
    return [
        SegmentedWords(int(generator.binomial(words, 0.7)), int(tokens), int(words))
        for words, tokens in zip(gold, predicted, strict=True)
    ]


def ratios(counts: list[SegmentedWords]) -> tuple[float, float, float]:
    scores = scores_of_counts(*(sum(column) for column in zip(*counts, strict=True)))
    return scores.precision, scores.recall, scores.f1


def test_sentences_add_up_to_the_scores_of_the_corpus() -> None:
    counts = drawn(200, 0)
    values = word_values(counts)
    means = [values[name].mean() for name in (WORD_PRECISION, WORD_RECALL, WORD_F1)]
    assert means == pytest.approx(ratios(counts), rel=1e-12)


def test_the_spread_over_sentences_is_that_of_resampled_corpora() -> None:
    counts = drawn(400, 1)
    generator = np.random.default_rng(2)
    resampled = [ratios([counts[i] for i in generator.integers(0, 400, 400)]) for _ in range(1_000)]
    values = word_values(counts)
    errors = [values[name].std(ddof=1) / 20 for name in (WORD_PRECISION, WORD_RECALL, WORD_F1)]
    assert errors == pytest.approx(np.std(resampled, axis=0), rel=0.1)


def test_a_corpus_without_a_right_word_scores_nothing() -> None:
    values = word_values([SegmentedWords(0, 3, 2), SegmentedWords(0, 4, 4)])
    assert all((column == 0).all() for column in values.values())
