"""Translations by beam search, against decoding one token at a time, and their BLEU."""

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sacrebleu.metrics.bleu import BLEU

from paribus.evaluation.translation import Translator, bleu, tokenized_bleu
from paribus.modeling.models import build_model
from paribus.tokenization import Tokenizer
from support.training_inputs import TRANSLATOR, pair_texts

EOS, LENGTH = 256, 8
MODEL = replace(TRANSLATOR, initialization="normal", initializer_range=0.5)
SOURCES = [source[:length] for length, (source, _) in zip((3, 40, 1, 7, 5, 6, 2, 12), pair_texts(8), strict=True)]
SOURCES.append("\0ab")  # id 0 is a token like others


@pytest.fixture(scope="module")
def model() -> Any:
    """A model that ends texts so often that hypotheses of several lengths compete."""
    model = build_model(MODEL, 257, 3, eos_id=EOS).eval()
    model.final_logits_bias[0, EOS] += 6.0
    return model


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train((), algorithm="bytes", special_tokens=("<|endoftext|>",))


def log_probabilities(model: Any, source: str, written: list[int]) -> torch.Tensor:
    """Of each next token."""
    encoded = [*source.encode()[: LENGTH - 1], EOS]
    with torch.inference_mode():
        logits = model(
            input_ids=torch.tensor([encoded]), decoder_input_ids=torch.tensor([[EOS, *written]]), use_cache=False
        ).logits
    return torch.log_softmax(logits[0, -1].double(), 0)


def beam(model: Any, source: str, beams: int) -> list[int]:
    """The best of the hypotheses that `beams` beams finish, a token at a time."""
    open_, finished = [(0.0, [])], list[tuple[float, list[int]]]()
    for _ in range(LENGTH - 1):
        grown = [
            (weight + float(value), [*written, token])
            for weight, written in open_
            for token, value in enumerate(log_probabilities(model, source, written))
        ]
        best = sorted(grown, reverse=True)[: 2 * beams]
        finished += [(w / len(ids) ** 0.6, ids) for w, ids in best[:beams] if ids[-1] == EOS]
        open_ = [(w, ids) for w, ids in best if ids[-1] != EOS][:beams]
    finished += [(w / len(ids) ** 0.6, ids) for w, ids in open_]
    return max(finished)[1]


@pytest.mark.parametrize(("beams", "batch"), [(1, 8), (1, 3), (4, 8), (4, 1)])
def test_translations_are_those_of_decoding_a_source_at_a_time(
    model: Any, tokenizer: Tokenizer, beams: int, batch: int
) -> None:
    translations = Translator(model, tokenizer, LENGTH, 64 * batch, beams=beams).translate(SOURCES)
    expected = [beam(model, source, beams) for source in SOURCES]
    assert translations == [tokenizer.decode(np.array([i for i in ids if i != EOS])) for ids in expected]


TEXT = "the cat sat on a mat and saw two dogs that ran over old bridges in rain"
WORDS = TEXT.split()


def sentences(count: int, seed: int, *, shorter: int = 0) -> tuple[list[str], list[str]]:
    """Translations that have most of their references' words."""
    generator = np.random.default_rng(seed)
    references = [list(generator.choice(WORDS, generator.integers(6, 20))) for _ in range(count)]
    translations = [[w if generator.random() < 0.8 else "fish" for w in words[shorter:]] for words in references]
    return [" ".join(words) for words in translations], [" ".join(words) for words in references]


@pytest.mark.parametrize("shorter", [0, 2])
def test_values_of_sentences_have_the_mean_of_sacrebleus_score_and_the_spread_of_resampled_ones(shorter: int) -> None:
    translations, references = sentences(300, 1, shorter=shorter)
    scores = bleu(translations, references)
    resampled = BLEU().corpus_score(translations, [references], n_bootstrap=1000)
    assert scores.score == resampled.score
    assert scores.sentences.mean() == pytest.approx(scores.score, rel=1e-12)
    assert 1.96 * scores.sentences.std(ddof=1) / 300**0.5 == pytest.approx(resampled._ci, rel=0.15)
    assert "tok:13a" in scores.signature and "smooth:exp" in scores.signature


def multi_bleu(translations: list[str], references: list[str]) -> float:
    """The counts and the formula of Moses' multi-bleu.perl, of one reference."""
    precisions = []
    for order in range(1, 5):
        correct = total = 0
        for pair in zip(translations, references, strict=True):
            counts, accepted = (
                Counter(tuple(words[i : i + order]) for i in range(len(words) - order + 1))
                for words in map(str.split, pair)
            )
            correct, total = correct + (counts & accepted).total(), total + counts.total()
        precisions.append(correct / total)
    length, expected = (sum(len(text.split()) for text in texts) for texts in (translations, references))
    penalty = math.exp(1 - expected / length) if length < expected else 1.0
    return 100 * penalty * math.exp(sum(map(math.log, precisions)) / 4)


@pytest.mark.parametrize("shorter", [0, 2])
def test_tokenized_bleu_of_plain_words_is_that_of_multi_bleu(shorter: int) -> None:
    translations, references = sentences(200, 3, shorter=shorter)
    scores = tokenized_bleu(translations, references, "de")
    assert scores.score == pytest.approx(multi_bleu(translations, references), rel=1e-12)
    assert scores.sentences.mean() == pytest.approx(scores.score, rel=1e-12)


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
