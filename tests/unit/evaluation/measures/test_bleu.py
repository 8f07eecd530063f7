"""BLEU and what each sentence contributes to it."""

import math
from collections import Counter

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from paribus.evaluation.translation import bleu, tokenized_bleu

TEXT = "the cat sat on a mat and saw two dogs that ran over old bridges in rain"
WORDS = TEXT.split()


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


def multi_bleu(translations: list[str], references: list[str]) -> float:
    """The counts and the formula of Moses' multi-bleu.perl, of one reference."""
    precisions = []
    for order in range(1, 5):
        correct = total = 0
        for one, other in zip(translations, references, strict=True):
            mine, its = (
                Counter(tuple(words[i : i + order]) for i in range(len(words) - order + 1))
                for words in (one.split(), other.split())
            )
            correct, total = correct + (mine & its).total(), total + mine.total()
        precisions.append(correct / total if total else 0.0)
    if not all(precisions):
        return 0.0
    length, wanted = (sum(len(text.split()) for text in texts) for texts in (translations, references))
    penalty = math.exp(1 - wanted / length) if length < wanted else 1.0
    return 100 * penalty * math.exp(sum(map(math.log, precisions)) / 4)


@pytest.mark.parametrize("shorter", [0, 2])
def test_tokenized_bleu_of_plain_words_is_that_of_multi_bleu(shorter: int) -> None:
    translations, references = sentences(200, 3, shorter=shorter)
    found = tokenized_bleu(translations, references, "de")
    assert found.score == pytest.approx(multi_bleu(translations, references), rel=1e-12)
    assert found.sentences.mean() == pytest.approx(found.score, rel=1e-12)


def test_moses_cuts_both_sides_by_the_rules_of_the_language_and_at_hyphens() -> None:
    german = "Die Rich-Text-Datei kostet z. B. 3,5 Mio. Euro (heute)."
    cut = "Die Rich @-@ Text @-@ Datei kostet z. B. 3,5 Mio. Euro ( heute ) ."
    other, plain = "Die Text-Datei kostet z. B. 3,5 Mio. Mark.", "Die Text @-@ Datei kostet z. B. 3,5 Mio. Mark ."
    assert tokenized_bleu([other], [german], "de").score == pytest.approx(multi_bleu([plain], [cut]))
    assert tokenized_bleu([other], [german], "de").score != pytest.approx(tokenized_bleu([other], [german], "en").score)
    french = ["C'est l'heure, dit-il aujourd'hui à Paris."], ["C'est l'heure, dit-elle aujourd'hui à Lyon."]
    expected = [
        ["C' est l' heure , dit @-@ il aujourd' hui à Paris ."],
        ["C' est l' heure , dit @-@ elle aujourd' hui à Lyon ."],
    ]
    assert tokenized_bleu(*french, "fr").score == pytest.approx(multi_bleu(*expected))


def test_case_counts_and_nothing_is_smoothed() -> None:
    assert tokenized_bleu(["The cat sat on a mat"], ["the cat sat on a mat"], "en").score < 100
    pairs = ["one two three five six", "a b"], ["one two three four six", "a b"]
    found = tokenized_bleu(*pairs, "en")
    assert found.score == 0 and (found.sentences == 0).all()
    assert bleu(*pairs).score > 0


def test_the_signature_says_what_cut_the_text() -> None:
    signature = tokenized_bleu(["a"], ["a"], "fr").signature
    assert "case:mixed" in signature and "tok:none" in signature and "smooth:none" in signature
    assert "moses:fr-a-sacremoses-" in signature
