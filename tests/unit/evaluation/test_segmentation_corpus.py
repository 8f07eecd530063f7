"""Tokenizers as word segmenters against a gold corpus."""

import gzip
from dataclasses import dataclass
from pathlib import Path

import pytest

from paribus.errors import DataError
from paribus.evaluation import segmentation_scores
from paribus.evaluation.segmentation import read_segmented, tokenizer_scores
from paribus.tokenization import Tokenizer
from support.real_data import RealData

GOLD = [["我们", "在", "北京大学"], ["Zürich", "，", "𠀀"]]


@dataclass
class Fixed:
    """A segmenter that answers from a list."""

    answers: dict[str, list[bytes]]

    def tokenize(self, text: str) -> list[bytes]:
        return self.answers[text]


def answering(*sentences: list[bytes]) -> Fixed:
    return Fixed({"".join(words): tokens for words, tokens in zip(GOLD, sentences, strict=False)})


def utf8(*words: str) -> list[bytes]:
    return [word.encode() for word in words]


def test_tokens_score_as_words_do() -> None:
    predicted = [["我们", "在", "北京", "大学"], ["Z", "ürich", "，", "𠀀"]]
    scores = tokenizer_scores(answering(*(utf8(*words) for words in predicted)), GOLD)
    assert scores == segmentation_scores(predicted, GOLD)


def test_a_token_that_cuts_a_character_is_a_predicted_word_and_wrong() -> None:
    first, second = "北京大学"[:2].encode(), "北京大学"[2:].encode()
    tokens = [*utf8("我们", "在"), first[:4], first[4:] + second]
    scores = tokenizer_scores(answering(tokens), GOLD[:1])
    assert (scores.correct, scores.predicted, scores.gold) == (2, 4, 3)


def test_a_character_as_its_bytes_is_as_many_wrong_words() -> None:
    tokens = [*utf8("我们"), *(bytes([byte]) for byte in "在".encode()), *utf8("北京大学")]
    scores = tokenizer_scores(answering(tokens), GOLD[:1])
    assert (scores.correct, scores.predicted, scores.gold) == (2, 5, 3)


def test_an_unknown_token_stands_for_one_character() -> None:
    scores = tokenizer_scores(answering(utf8("我们", "\ufffd", "北京大学"), utf8("Zürich", "\ufffd", "\ufffd")), GOLD)
    assert (scores.correct, scores.predicted) == (6, 6)


@pytest.mark.parametrize(
    "tokens", [utf8("我们", "在", "北京"), utf8("我们", "北京大学"), utf8("我们", "在", "北京大学", "\ufffd"), []]
)
def test_tokens_that_do_not_spell_the_text_are_refused_by_sentence(tokens: list[bytes]) -> None:
    with pytest.raises(DataError, match="sentence 1: the tokens do not spell the text from its byte"):
        tokenizer_scores(answering(tokens), GOLD[:1])


@pytest.mark.parametrize("unit", ["byte", "character"])
def test_a_trained_tokenizer_scores_as_its_tokens_do(unit: str, real_data: RealData) -> None:
    gold = read_segmented(real_data.segmented)[:300]
    texts = ["".join(words) for words in gold]
    tokenizer = Tokenizer.train(texts, vocab_size=2500, unit=unit, pretokenizer="none")  # type: ignore[arg-type]
    # Latin-1 makes words of byte strings, so that the scores of words can be asked.
    predicted = [[token.decode("latin-1") for token in tokenizer.tokenize(text)] for text in texts]
    reference = [[word.encode().decode("latin-1") for word in words] for words in gold]
    scores = tokenizer_scores(tokenizer, gold)
    assert scores == segmentation_scores(predicted, reference)
    assert 0.2 < scores.f1 < 0.9


@pytest.mark.parametrize("name", ["gold.txt", "gold.txt.gz"])
def test_gold_files_are_read_plain_and_compressed(name: str, tmp_path: Path) -> None:
    data = "\ufeff我们  在  北京大学\r\n\n　Zürich　，　𠀀　\n".encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert read_segmented(tmp_path / name) == GOLD


def test_the_msr_test_set_has_its_known_size(shared_data: Path) -> None:
    gold = read_segmented(shared_data / "corpora" / "sighan2005_msr_test_gold.seg.txt.gz")
    assert (len(gold), sum(map(len, gold))) == (3985, 106873)
