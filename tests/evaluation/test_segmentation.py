"""SIGHAN word segmentation scores.

Numbers "of the script" were printed by the script `score` of the second bakeoff (icwb2-data, 2005) with perl 5.36 and
GNU diff 3.8. Its numbers of right words are those of true words less its deletions and substitutions.
"""

import gzip
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from paribus.errors import DataError
from paribus.evaluation import segmentation_scores
from paribus.evaluation.evaluate import WORD_F1, WORD_PRECISION, WORD_RECALL, word_values
from paribus.evaluation.segmentation import SegmentedWords, read_segmented, scores_of_counts, tokenizer_scores
from paribus.tokenization import Tokenizer
from support.real_data import RealData

Words = list[str]
Segmenter = Callable[[Words], Words]

GOLD = """
扬帆 远东 做 与 中国 合作 的 先行
希腊 的 经济 结构 较 特殊 。
海运 业 雄踞 全球 之 首 ， 按 吨位 计 占 世界 总数 的 １７％ 。
"""
PREDICTED = """
扬帆 远 东 做 与 中国合作 的 先行
希腊 的 经济 结构 较 特殊。
海 运业 雄踞 全球 之首 ， 按 吨位 计 占 世界 总数 的 １ ７％ 。
"""


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


def test_sentences_of_different_text_are_refused_by_number() -> None:
    with pytest.raises(DataError, match=r"sentence 2: .* from character 3 on"):
        segmentation_scores([["a"], ["bc", "d"]], [["a"], ["bc", "e"]])
    with pytest.raises(DataError, match="2 predicted sentences against 1"):
        segmentation_scores([["a"], ["b"]], [["a"]])
    with pytest.raises(DataError, match="sentence 1 has an empty word"):
        segmentation_scores([["a", ""]], [["a"]])


def words_of(text: str) -> list[Words]:
    return [line.split() for line in text.strip().splitlines()]


@pytest.fixture(scope="module")
def msr(shared_data: Path) -> list[Words]:
    with gzip.open(shared_data / "corpora" / "sighan2005_msr_test_gold.seg.txt.gz", "rt", encoding="utf-8") as file:
        return words_of(file.read())


def joined(words: Words) -> Words:
    """Every third word is joined to the one before it."""
    made: Words = []
    for number, word in enumerate(words):
        if number % 3 == 2:
            made[-1] += word
        else:
            made.append(word)
    return made


def longest_match(known: set[str]) -> Segmenter:
    """From the left, the longest known word of at most 10 characters, else one character."""

    def segment(words: Words) -> Words:
        text, made = "".join(words), []
        while text:
            length = next((n for n in range(min(10, len(text)), 1, -1) if text[:n] in known), 1)
            made.append(text[:length])
            text = text[length:]
        return made

    return segment


def test_the_script_printed_these_scores_for_three_sentences() -> None:
    scores = segmentation_scores(words_of(PREDICTED), words_of(GOLD))
    assert [f"{value:.3f}" for value in (scores.recall, scores.precision, scores.f1)] == ["0.677", "0.700", "0.689"]
    assert (scores.correct, scores.predicted, scores.gold) == (31 - 3 - 7, 30, 31)


def segmenters(msr: list[Words], half: int = 2000) -> dict[str, Segmenter]:
    return {
        "gold": list,
        "joined": joined,
        "longest_match": longest_match({word for words in msr for word in words}),
        "longest_match_of_half": longest_match({word for words in msr[:half] for word in words}),
    }


@pytest.mark.parametrize(
    ("name", "printed", "missed"),
    [
        ("gold", "1.000 1.000 1.000", 0),
        ("joined", "0.358 0.527 0.427", 34778 + 33824),
        ("longest_match", "0.990 0.987 0.989", 230 + 839),
        ("longest_match_of_half", "0.923 0.835 0.877", 156 + 8121 - 20),
    ],
)
def test_the_script_printed_these_scores_for_the_msr_test_set(
    name: str, printed: str, missed: int, msr: list[Words]
) -> None:
    """The 20 words of the last row are those that `diff` leaves out though both their ends are a gold word's."""
    segment = segmenters(msr)[name]
    scores = segmentation_scores([segment(words) for words in msr], msr)
    assert f"{scores.recall:.3f} {scores.precision:.3f} {scores.f1:.3f}" == printed
    assert (scores.gold, scores.correct) == (106873, 106873 - missed)


# Tokenizers as word segmenters against a gold corpus.

GOLD_SENTENCES = [["我们", "在", "北京大学"], ["Zürich", "，", "𠀀"]]


@dataclass
class Fixed:
    """A segmenter that answers from a list."""

    answers: dict[str, list[bytes]]

    def tokenize(self, text: str) -> list[bytes]:
        return self.answers[text]


def answering(*sentences: list[bytes]) -> Fixed:
    return Fixed({"".join(words): tokens for words, tokens in zip(GOLD_SENTENCES, sentences, strict=False)})


def utf8(*words: str) -> list[bytes]:
    return [word.encode() for word in words]


def test_a_token_that_cuts_a_character_is_a_predicted_word_and_wrong() -> None:
    first, second = "北京大学"[:2].encode(), "北京大学"[2:].encode()
    tokens = [*utf8("我们", "在"), first[:4], first[4:] + second]
    scores = tokenizer_scores(answering(tokens), GOLD_SENTENCES[:1])
    assert (scores.correct, scores.predicted, scores.gold) == (2, 4, 3)


@pytest.mark.parametrize(
    "tokens", [utf8("我们", "在", "北京"), utf8("我们", "北京大学"), utf8("我们", "在", "北京大学", "\ufffd"), []]
)
def test_tokens_that_do_not_spell_the_text_are_refused_by_sentence(tokens: list[bytes]) -> None:
    with pytest.raises(DataError, match="sentence 1: the tokens do not spell the text from its byte"):
        tokenizer_scores(answering(tokens), GOLD_SENTENCES[:1])


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
    assert read_segmented(tmp_path / name) == GOLD_SENTENCES


# What each sentence contributes to precision, recall and F1 of words.


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
