"""SIGHAN word segmentation scores.

Numbers "of the script" were printed by the script `score` of the second bakeoff (icwb2-data, 2005) with perl 5.36 and
GNU diff 3.8. Its numbers of right words are those of true words less its deletions and substitutions.
"""

import gzip
import random
from pathlib import Path

import numpy as np
import pytest

from paribus.evaluation import segmentation_scores
from paribus.evaluation.evaluate import WORD_F1, WORD_PRECISION, WORD_RECALL, word_values
from paribus.evaluation.segmentation import SegmentedWords, read_segmented, scores_of_counts, tokenizer_scores
from paribus.tokenization import Tokenizer
from support.real_data import RealData


def obvious_scores(predicted: list[list[str]], gold: list[list[str]]) -> tuple[float, float, float]:
    """A word is right when both its ends are ends of one gold word."""

    def ends(words: list[str]) -> set[tuple[int, int]]:
        return {(len("".join(words[:i])), len("".join(words[: i + 1]))) for i in range(len(words))}

    right = sum(len(ends(words) & ends(reference)) for words, reference in zip(predicted, gold, strict=True))
    precision, recall = right / sum(map(len, predicted)), right / sum(map(len, gold))
    return precision, recall, 2 * precision * recall / (precision + recall)


def test_scores_agree_with_the_obvious_computation_on_random_segmentations() -> None:
    draw = random.Random(3)

    def cut(text: str) -> list[str]:
        return "".join(character + draw.choice((" ", "")) for character in text).split()

    texts = ["".join(draw.choices("甲乙丙丁ab", k=draw.randint(1, 12))) for _ in range(60)]
    predicted, gold = [cut(text) for text in texts], [cut(text) for text in texts]
    scores = segmentation_scores(predicted, gold)
    assert (scores.precision, scores.recall, scores.f1) == pytest.approx(obvious_scores(predicted, gold))


def longest_match(words: list[str], known: set[str]) -> list[str]:
    """From the left, the longest known word of at most 10 characters, else one character."""
    text, matches = "".join(words), []
    while text:
        length = next((n for n in range(min(10, len(text)), 1, -1) if text[:n] in known), 1)
        matches.append(text[:length])
        text = text[length:]
    return matches


def test_the_script_printed_these_scores_for_the_msr_test_set(shared_data: Path) -> None:
    """The 20 words of the last row are those that `diff` leaves out though both their ends are a gold word's."""
    with gzip.open(shared_data / "corpora" / "sighan2005_msr_test_gold.seg.txt.gz", "rt", encoding="utf-8") as file:
        msr = [line.split() for line in file]
    for count, printed, missed in (
        (len(msr), "0.990 0.987 0.989", 230 + 839),
        (2000, "0.923 0.835 0.877", 156 + 8121 - 20),
    ):
        known = {word for words in msr[:count] for word in words}
        scores = segmentation_scores([longest_match(words, known) for words in msr], msr)
        assert f"{scores.recall:.3f} {scores.precision:.3f} {scores.f1:.3f}" == printed
        assert (scores.gold, scores.correct) == (106873, 106873 - missed)


GOLD_SENTENCES = [["我们", "在", "北京大学"], ["Zürich", "，", "𠀀"]]


class Fixed:
    """A tokenizer that gives these tokens for any text."""

    def __init__(self, *tokens: bytes) -> None:
        self.tokens = tokens

    def tokenize(self, text: str) -> list[bytes]:
        return list(self.tokens)


def test_a_token_that_cuts_a_character_is_a_predicted_word_and_wrong() -> None:
    *words, last = (word.encode() for word in GOLD_SENTENCES[0])
    scores = tokenizer_scores(Fixed(*words, last[:4], last[4:]), GOLD_SENTENCES[:1])
    assert (scores.correct, scores.predicted, scores.gold) == (2, 4, 3)


@pytest.mark.parametrize("unit", ["byte", "character"])
def test_a_trained_tokenizer_scores_as_the_words_its_tokens_spell(unit: str, real_data: RealData) -> None:
    gold = read_segmented(real_data.segmented)[:300]
    texts = ["".join(words) for words in gold]
    tokenizer = Tokenizer.train(texts, vocab_size=2500, unit=unit, pretokenizer="none")  # type: ignore[arg-type]
    # Latin-1 makes words of byte strings, so that the scores of words can be asked.
    predicted = [[token.decode("latin-1") for token in tokenizer.tokenize(text)] for text in texts]
    reference = [[word.encode().decode("latin-1") for word in words] for words in gold]
    scores = tokenizer_scores(tokenizer, gold)
    assert scores == segmentation_scores(predicted, reference)
    assert 0.2 < scores.f1 < 0.9


def test_gold_files_are_read_plain_and_compressed(tmp_path: Path) -> None:
    data = "\ufeff我们  在  北京大学\r\n\n　Zürich　，　𠀀　\n".encode()
    for name, content in {"gold.txt": data, "gold.txt.gz": gzip.compress(data)}.items():
        (tmp_path / name).write_bytes(content)
        assert read_segmented(tmp_path / name) == GOLD_SENTENCES


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


def test_values_of_sentences_have_the_mean_of_the_corpus_and_the_spread_of_resampled_ones() -> None:
    counts = drawn(400, 1)
    generator = np.random.default_rng(2)
    resampled = [ratios([counts[i] for i in generator.integers(0, 400, 400)]) for _ in range(1_000)]
    values = [word_values(counts)[name] for name in (WORD_PRECISION, WORD_RECALL, WORD_F1)]
    assert [each.mean() for each in values] == pytest.approx(ratios(counts), rel=1e-12)
    assert [each.std(ddof=1) / 20 for each in values] == pytest.approx(np.std(resampled, axis=0), rel=0.1)
