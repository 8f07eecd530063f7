"""WordPiece training by likelihood against counting everything anew with fractions."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.tokenization import Tokenizer
from paribus.tokenization.bpe import MergeTraining, train_wordpiece
from paribus.tokenization.counts import SymbolCorpus, observed_characters
from paribus.tokenization.pretokenize import PatternPretokenizer
from paribus.tokenization.train import count_pretokens
from support.real_data import RealData, texts_of
from support.tokenization_references import count_pairs, count_symbols, replace
from support.trained_words import word_counts

COUNTS = st.one_of(st.integers(1, 9), st.integers(2**31, 2**42), st.integers(2**56 - 3, 2**56))
WORDS = st.dictionaries(st.text("abcd", min_size=1, max_size=14), COUNTS, max_size=2)
MANY_WORDS = st.dictionaries(st.text("abcd", min_size=1, max_size=14), st.integers(1, 30), max_size=12)
ABCD = np.array([ord(letter) for letter in "abcd"])


def reference(words: list[tuple[list[int], int]], units: int, size: int) -> list[tuple[int, int, int]]:
    merges: list[tuple[int, int, int]] = []
    while units + len(merges) < size:
        live, pairs = count_symbols(words), count_pairs(words)
        if not pairs:
            break
        score = {pair: Fraction(count, live[pair[0]] * live[pair[1]]) for pair, count in pairs.items()}
        left, right = min(pairs, key=lambda pair: (-score[pair], -pairs[pair], pair))
        token = units + len(merges)
        merges.append((left, right, token))
        words = [(replace(symbols, left, right, token), count) for symbols, count in words]
    return merges


def split(words: Mapping[str, int], alphabet: str) -> list[tuple[list[int], int]]:
    return [([alphabet.index(unit) for unit in word], count) for word, count in words.items()]


def merges_of(training: MergeTraining) -> list[tuple[int, ...]]:
    return list(map(tuple, training.merges.tolist()))


@given(words=st.one_of(WORDS, MANY_WORDS), size=st.integers(4, 40))
def test_training_equals_scoring_everything_anew_each_step(words: dict[str, int], size: int) -> None:
    training = train_wordpiece(SymbolCorpus.of_characters(word_counts(words), ABCD), size)
    expected = reference(split(words, "abcd"), 4, size)
    assert merges_of(training) == expected
    assert training.stopped == ("vocab_size" if 4 + len(expected) >= size else "no_pair_left")


@pytest.mark.parametrize("kind", ["english", "declarations"])
def test_training_on_real_text_equals_scoring_everything_anew(real_data: RealData, kind: str) -> None:
    texts = [text[:1500] for text in islice(texts_of(getattr(real_data, kind)), 0, 400, 100)]
    words = count_pretokens(texts, PatternPretokenizer("gpt2"))
    alphabet = observed_characters(words)
    training = train_wordpiece(SymbolCorpus.of_characters(words, alphabet), len(alphabet) + 150)
    listed = {word.decode(): count for word, count in words}
    expected = reference(split(listed, "".join(map(chr, alphabet))), len(alphabet), len(alphabet) + 150)
    assert merges_of(training) == expected


def test_fractions_that_floats_cannot_tell_apart_are_told_apart() -> None:
    large = 2**52
    words = {"ab": large, "a": 1, "cd": large + 1, "c": 1, "ba": 1}
    training = train_wordpiece(SymbolCorpus.of_characters(word_counts(words), ABCD), 6)
    assert merges_of(training) == reference(split(words, "abcd"), 4, 6)


def test_a_word_of_a_million_letters_takes_no_quadratic_time() -> None:
    short, long = (SymbolCorpus.of_characters(word_counts({"ab" * n: 1}), ABCD) for n in (60, 500_000))
    assert merges_of(train_wordpiece(short, 100)) == reference(split({"ab" * 60: 1}, "abcd"), 4, 100)
    assert train_wordpiece(long, 100).lengths.max() > 10_000


def test_words_without_spaces_have_marked_pieces() -> None:
    texts = ["unaffable affable unable able ably", "tables and stables"] * 3
    tok = Tokenizer.train(
        texts,
        algorithm="wordpiece",
        vocab_size=60,
        unit="character",
        unknown="token",
        pretokenizer="stripped",
        encoder="left_to_right",
    )
    pieces = [(entry.bytes, entry.continuation) for entry in tok.vocabulary]
    assert len(set(pieces)) == len(pieces)
    assert {continuation for _, continuation in pieces} == {False, True}
    assert b"".join(tok.tokenize("unaffable tables")) == b"unaffabletables"
