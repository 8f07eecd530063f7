"""BLEU and what each sentence contributes to it."""

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from paribus.evaluation.measures.bleu import bleu

WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "and",
    "saw",
    "two",
    "dogs",
    "that",
    "ran",
    "over",
    "old",
    "bridges",
    "in",
    "rain",
]


def sentences(count: int, seed: int, *, shorter: int = 0) -> tuple[list[str], list[str]]:
    """Translations that have most of their references' words."""
    generator = np.random.default_rng(seed)
    references = [list(generator.choice(WORDS, generator.integers(6, 20))) for _ in range(count)]
    translations = [[w if generator.random() < 0.8 else "fish" for w in one[shorter:]] for one in references]
    return [" ".join(one) for one in translations], [" ".join(one) for one in references]


@pytest.mark.parametrize("shorter", [0, 2])
def test_sentences_add_up_to_sacrebleus_score(shorter: int) -> None:
    translations, references = sentences(200, 0, shorter=shorter)
    found = bleu(translations, references)
    assert found.score == BLEU().corpus_score(translations, [references]).score
    assert found.sentences.mean() == pytest.approx(found.score, rel=1e-12)
    assert "tok:13a" in found.signature and "smooth:exp" in found.signature


@pytest.mark.parametrize("shorter", [0, 2])
def test_the_spread_over_sentences_is_that_of_resampled_corpora(shorter: int) -> None:
    translations, references = sentences(300, 1, shorter=shorter)
    error = bleu(translations, references).sentences.std(ddof=1) / 300**0.5
    resampled = BLEU().corpus_score(translations, [references], n_bootstrap=1000)
    assert 1.96 * error == pytest.approx(resampled._ci, rel=0.15)


def test_a_corpus_without_a_match_of_four_words_has_one_value_for_all() -> None:
    found = bleu(["one two three", "a b"], ["one two four", "b a"])
    assert (found.sentences == found.score).all()


def test_lists_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="1 of 2"):
        bleu(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="0 of 0"):
        bleu([], [])
