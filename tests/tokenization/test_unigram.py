"""Unigram training against the library that does it, and what it promises for any table of words."""

import io
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from paribus.tokenization.unigram import UnigramTraining, seed_pieces
from support.trained_words import strings, train_on_words

BYTES = [chr(byte) for byte in range(256)]
TEXT = (
    "The tokenizer cuts the text into tokens, and the tokens into the vocabulary that the trainer trained. "
    "Training tokenizers on trained text trains the training of text trainers in training. "
    "Der Tokenisierer zerlegt den Text in Wörter, und die Wörter in Teile von Wörtern. "
    "分词器把文本切成词语，词语是文本的单位。文本的词语由分词器决定。"
    "def train(self, text):\n    return self.trainer.train(text)\n\tself.tokens = [token for token in self.tokens]\n"
    "🙂🙂 👩‍👩‍👧 🙂👍🏽 हिन्दी में पाठ और हिन्दी के शब्द। "
)


def words_of(text: str) -> Counter[str]:
    """Pre-tokens that begin with their whitespace."""
    return Counter(text.replace(" ", "\x1f ").split("\x1f"))


def as_bytes(words: Mapping[str, int]) -> dict[str, int]:
    return {word.encode().decode("latin-1"): count for word, count in words.items()}


def alphabet_of(words: Mapping[str, int]) -> list[str]:
    return sorted(set("".join(words)))


def scores_of(training: UnigramTraining, alphabet: list[str]) -> dict[str, float]:
    return dict(zip(strings(training, alphabet), training.scores.tolist(), strict=True))


@pytest.mark.parametrize("unit", ["byte", "character"])
def test_pieces_are_as_many_as_were_asked_for_and_the_same_in_any_order_of_words(unit: str) -> None:
    words = words_of(TEXT) if unit == "character" else as_bytes(words_of(TEXT))
    alphabet = alphabet_of(words) if unit == "character" else BYTES
    size = len(alphabet) + 40
    training = train_on_words(words, alphabet, size)
    spelled = strings(training, alphabet)
    assert training.stopped == "vocab_size"
    assert len(spelled) == len(set(spelled)) == len(training.scores) == size
    assert list(spelled[: len(alphabet)]) == alphabet
    assert training.scores.dtype == np.float64 and (training.scores < 0).all()
    assert (np.diff(training.scores[len(alphabet) :]) <= 0).all()
    assert all(any(piece in word for word in words) for piece in spelled[len(alphabet) :])
    again = train_on_words(dict(reversed(words.items())), alphabet, size)
    assert again.tokens == training.tokens and np.array_equal(again.scores, training.scores)


def test_units_that_the_library_treats_specially_are_units_like_others() -> None:
    for word in ("naïve", "分词", "🙂", "\t\n \0", "\u2581\u2585", "\udce2"):
        alphabet = sorted(set(word))
        training = train_on_words({word: 4}, alphabet, len(alphabet) + 1)
        assert set(alphabet) <= set(strings(training, alphabet))
        assert np.isfinite(training.scores).all()


def test_words_of_too_few_pieces_give_what_there_is_and_stop_as_exhausted() -> None:
    training = train_on_words({"ab": 4}, ["a", "b"], 50)
    assert (training.stopped, strings(training, ["a", "b"])) == ("exhausted", ("a", "b", "ab"))
    empty = train_on_words({}, ["a", "b"], 50)
    assert (empty.stopped, empty.tokens) == ("exhausted", ((0,), (1,)))
    assert empty.scores[0] == empty.scores[1] < 0
    assert train_on_words({"ab": 4}, ["a", "b"], 2).stopped == "vocab_size"


def library(lines: list[str], size: int, **options: object) -> dict[str, float]:
    """The library's own training on plain lines, the space as its U+2581."""
    written = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=written, model_type="unigram", vocab_size=size + 1,
        hard_vocab_limit=False, character_coverage=1.0, normalization_rule_name="identity", add_dummy_prefix=False,
        remove_extra_whitespaces=False, split_by_unicode_script=False, split_by_number=False, bos_id=-1, eos_id=-1,
        num_threads=1, minloglevel=2, **options,
    )  # fmt: skip
    model = SentencePieceProcessor(model_proto=written.getvalue())
    return {
        model.id_to_piece(number).replace("\u2581", " "): model.get_score(number)
        for number in range(1, model.get_piece_size())
    }


def english(words: int) -> list[str]:
    """Words made of common parts, so that there is something to learn."""
    source = random.Random(7)
    stems = ["token", "train", "text", "word", "piece", "count", "merge", "split", "read", "write"]
    endings = ["", "s", "er", "ing", "ed", "ers", "able", "ization"]
    prefixes = ["", "re", "un", "pre"]
    return ["".join(map(source.choice, (prefixes, stems, endings))) for _ in range(words)]


def test_scores_are_those_of_the_library_for_the_same_seeds(tmp_path: Path) -> None:
    corpus = english(600)
    words, seeds = Counter(corpus), tmp_path / "seeds.tsv"
    alphabet = alphabet_of(words)
    counted = words + Counter(alphabet)
    pieces = seed_pieces(list(counted), list(counted.values()), 16, 10**6)
    seeds.write_text("".join(f"{piece}\t{count}\n" for piece, count in pieces))
    scores = scores_of(train_on_words(words, alphabet, 60), alphabet)
    expected = library([*corpus, *alphabet], 60, seed_sentencepieces_file=str(seeds))
    assert scores.keys() == expected.keys()
    assert [scores[piece] for piece in expected] == pytest.approx(list(expected.values()), abs=2e-4)


@given(
    words=st.dictionaries(st.text("abc", min_size=1, max_size=9), st.integers(1, 2**40), min_size=1, max_size=9),
    longest=st.integers(1, 6),
    limit=st.integers(1, 12),
)
def test_seeds_are_the_substrings_counted_one_by_one(words: dict[str, int], longest: int, limit: int) -> None:
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for start in range(len(word)):
            for end in range(start + 1, min(start + longest, len(word)) + 1):
                counts[word[start:end]] += count
    around: Counter[str] = Counter()
    for piece, count in counts.items():
        for inner in {piece[:-1], piece[1:]}:
            around[inner] = max(around[inner], count)
    candidates = [(-count * len(piece), piece) for piece, count in counts.items() if len(piece) > 1 and count > 1]
    ordered = [piece for _, piece in sorted(candidates) if around[piece] < counts[piece]]
    seeds = seed_pieces(list(words), list(words.values()), longest, limit)
    assert seeds == [(piece, counts[piece]) for piece in ordered[:limit]]
