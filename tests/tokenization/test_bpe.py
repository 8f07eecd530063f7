"""BPE training against a slow reference, Hugging Face's trainer and the course notes."""

import random
from collections import Counter
from collections.abc import Mapping
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization import Tokenizer
from paribus.tokenization.bpe import MergeTraining, train_bpe
from paribus.tokenization.counts import SymbolCorpus, WordCounts, observed_characters
from paribus.tokenization.pretokenize import PatternPretokenizer
from paribus.tokenization.train import count_pretokens
from support.real_data import RealData, texts_of
from support.tokenization_references import huggingface_merges, reference_training
from support.trained_words import word_counts

COUNTS = st.one_of(st.integers(1, 9), st.integers(2**31, 2**42))
WORDS = st.dictionaries(st.text("abc", min_size=1, max_size=12), COUNTS, max_size=8)
ABC = np.array([ord(letter) for letter in "abc"])


def character_corpus(words: Mapping[str, int]) -> SymbolCorpus:
    return SymbolCorpus.of_characters(word_counts(words), ABC)


def byte_merges(words: WordCounts, size: int) -> list[tuple[bytes, bytes]]:
    training = train_bpe(SymbolCorpus.of_bytes(words), size)
    units, offsets = training.unit_sequences()
    spelled = [bytes(units[begin:end].tolist()) for begin, end in pairwise(offsets.tolist())]
    return [(spelled[left], spelled[right]) for left, right, _ in training.merges.tolist()]


def strings(training: MergeTraining, alphabet: str) -> list[str]:
    units, offsets = training.unit_sequences()
    spelled = "".join(alphabet[unit] for unit in units.tolist())
    return [spelled[begin:end] for begin, end in pairwise(offsets.tolist())]


def test_pair_counts_include_overlaps_and_token_counts_do_not() -> None:
    words = {"aaa": 3, "bc": 5, "ab": 1}
    training = train_bpe(character_corpus(words), 5)
    assert strings(training, "abc")[3:] == ["aa", "bc"]
    assert training.frequencies.tolist()[3:] == [3, 5]


@pytest.mark.parametrize("threshold", [None, 4, 1 << 33])
@given(words=WORDS, size=st.integers(3, 30))
def test_training_equals_counting_everything_anew_each_step(
    threshold: int | None, words: dict[str, int], size: int
) -> None:
    training = train_bpe(character_corpus(words), size, threshold=threshold)
    reference = reference_training(words, "abc", size, scaffolding=False)
    assert strings(training, "abc") == reference.tokens
    assert list(map(tuple, training.merges.tolist())) == reference.merges
    assert {rank: int(training.frequencies[rank]) for rank in reference.frequencies} == reference.frequencies
    assert training.stopped == ("vocab_size" if len(reference.tokens) >= size else "no_pair_left")


def test_counts_beyond_32_bits_are_right() -> None:
    words = {"ab": 2**40 + 1, "bc": 2**40, "ca": 2**32 + 5, "cb": 5}
    training = train_bpe(character_corpus(words), 7)
    assert strings(training, "abc")[3:] == ["ab", "bc", "ca", "cb"]
    assert training.frequencies.tolist()[3:] == [2**40 + 1, 2**40, 2**32 + 5, 5]
    assert training.frequencies.tolist()[:3] == [2**40 + 2**32 + 6, 2**41 + 6, 2**40 + 2**32 + 10]


@pytest.mark.parametrize(
    ("kind", "pretokenizer", "documents"),
    [
        ("english", "gpt2_digits", 100),
        ("english", "none", 15),
        ("declarations", "gpt4", 40),
    ],
)
def test_the_merge_list_equals_hugging_faces_on_real_text(
    real_data: RealData, kind: str, pretokenizer: str, documents: int
) -> None:
    texts = list(islice(texts_of(getattr(real_data, kind)), documents))
    pretokens = PatternPretokenizer(pretokenizer)
    words = Counter(piece for text in texts for piece in pretokens.pieces(text))
    assert byte_merges(count_pretokens(texts, pretokens), 2_000) == huggingface_merges(words, 2_000)


@pytest.mark.parametrize("threshold", [None, 1, 1000])
def test_a_word_of_a_million_letters_takes_no_quadratic_time(threshold: int | None) -> None:
    draw = random.Random(0)
    for word in ("a" * 1_000_000, "ab" * 500_000, "".join(draw.choices("abc", k=1_000_000))):
        corpus = SymbolCorpus.of_characters(word_counts({word: 1}), ABC)
        training = train_bpe(corpus, 400, threshold=threshold)
        assert training.lengths.max() > 4


def test_with_continuation_marks_a_unit_inside_a_word_is_another_one() -> None:
    words = word_counts({"aa": 4, "ba": 3})
    characters = SymbolCorpus.of_characters(words, observed_characters(words), marked=True)
    assert characters.symbols.tolist() == [-1, 0, 2, -1, 1, 2, -1]
    assert characters.frequencies.tolist() == [4, 3, 7, 0]
    assert train_bpe(characters, 6).merges.tolist() == [[0, 2, 4], [1, 2, 5]]
    assert SymbolCorpus.of_bytes(words, marked=True).symbols.tolist() == [-1, 97, 256 + 97, -1, 98, 256 + 97, -1]


def test_more_distinct_words_than_an_occurrence_can_name_are_refused() -> None:
    weights = np.broadcast_to(np.int64(1), (1 << 28,))
    corpus = SymbolCorpus(np.full(1, -1, np.int32), weights, 1, np.zeros(1, np.int64))
    with pytest.raises(DataError, match=r"268435456 distinct pre-tokens .* train on a sample"):
        train_bpe(corpus, 2)


def test_training_says_when_no_pair_is_left() -> None:
    tok = Tokenizer.train(["ab ab"], vocab_size=1_000)
    assert tok.settings.stopped == "no_pair_left"
    assert tok.vocab_size == 256 + len(tok.merges) < 1_000
    assert Tokenizer.train(["ab ab"], vocab_size=257).settings.stopped == "vocab_size"


def test_a_size_below_the_alphabet_is_refused_with_both_sizes() -> None:
    with pytest.raises(ConfigurationError, match=r"tokenizer.vocab_size: 256 .* 256 units and 1 special.* 257"):
        Tokenizer.train(["text"], vocab_size=256, special_tokens=["<eos>"])
    with pytest.raises(ConfigurationError, match=r"vocab_size: 100 .* 259 units, the 256 bytes .* at least 259"):
        Tokenizer.train(["abc"], vocab_size=100, unit="character", unknown="byte_fallback")
