"""Which language a corpus of pairs is in, and which test sets fit it."""

from dataclasses import replace
from typing import Any

import pytest

from paribus.checks.combinations import impossible
from paribus.config.groups.corpus import ParallelCorpus
from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.tokenization import WordPieceTokenizer
from paribus.config.schema import RunConfig
from support.run_config import run_config
from support.training_inputs import pair_config

ENGLISH_TO_GERMAN = ParallelCorpus(source=("train.en.gz",), target=("train.de.gz",))


@pytest.mark.parametrize(
    ("fields", "languages"),
    [
        ({"source": ("a.en.gz", "opus/*.en"), "target": ("a.de.gz", "opus/*.de")}, ("en", "de")),
        ({"source": ("a.jsonl.zst",), "source_field": "en", "target_field": "de"}, ("en", "de")),
        ({"source": ("a.en-de.en",), "target": ("a.en-de.de",)}, ("en", "de")),
        ({"source": ("a.jsonl",)}, (None, None)),
        ({"source": ("a.txt",), "target": ("b",)}, (None, None)),
        ({"source": ("a.en", "b.fr"), "target": ("a.de", "b.de")}, (None, "de")),
        ({"source": ("a.jsonl",), "source_language": "en", "target_language": "de"}, ("en", "de")),
    ],
)
def test_languages_are_told_by_suffixes_fields_or_in_so_many_words(fields: Any, languages: Any) -> None:
    assert ParallelCorpus(**fields).languages() == languages


def refused(corpus: ParallelCorpus, *tasks: str, **evaluation: Any) -> dict[str, str]:
    config = replace(pair_config(), evaluation=EvaluationConfig(tasks=tasks, **evaluation))
    return of_evaluation(replace(config, corpus=corpus))


def of_evaluation(config: RunConfig) -> dict[str, str]:
    return {path: message for path, message in impossible(config) if path.startswith("evaluation")}


def test_a_set_in_the_direction_of_the_corpus_is_accepted() -> None:
    assert refused(ENGLISH_TO_GERMAN, "wmt14_en_de", "multi30k_en_de", "pku") == {}


def test_a_set_in_another_direction_is_refused_with_what_would_be_right() -> None:
    assert "from de to en, the corpus from en to de" in refused(ENGLISH_TO_GERMAN, "wmt14_de_en")["evaluation.tasks"]
    assert refused(ENGLISH_TO_GERMAN, "wmt14_de_en")["evaluation.tasks"].endswith("take wmt14_en_de")
    said = refused(ParallelCorpus(source=("a.jsonl",)), "wmt14_en_fr")["evaluation.tasks"]
    assert "the corpus from an unnamed language to an unnamed language" in said
    assert said.endswith("say corpus.source_language=en corpus.target_language=fr if that is so")


def test_what_an_encoder_decoder_cannot_score_is_refused() -> None:
    found = refused(ENGLISH_TO_GERMAN, "continuation", "pku", texts=("books",))
    assert found["evaluation.tasks"].startswith("continuation scores what follows a text")
    assert found["evaluation.texts"].startswith("books has texts without a source")


def test_only_an_encoder_decoder_translates() -> None:
    config = run_config(evaluation=EvaluationConfig(tasks=("wmt14_en_de",)))
    assert "is translated by an encoder_decoder" in of_evaluation(config)["evaluation.tasks"]


def test_a_tokenizer_that_loses_whole_words_is_not_scored_as_a_segmenter() -> None:
    lossy = WordPieceTokenizer(vocab_size=500, unit="character", unknown="token", lossless=False)
    config = run_config(tokenizer=lossy, evaluation=EvaluationConfig(tasks=("pku",)))
    assert of_evaluation(config)["evaluation.tasks"].endswith("use tokenizer.unknown=byte_fallback")
    assert of_evaluation(replace(config, tokenizer=replace(lossy, unknown="byte_fallback"))) == {}
