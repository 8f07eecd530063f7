"""BPE training against a slow reference, Hugging Face's trainer and the course notes."""

import json
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenization_references import huggingface_merges, reference_training

from paribus.errors import ConfigurationError
from paribus.tokenization import Tokenizer
from paribus.tokenization.bpe import BPETrainer
from paribus.tokenization.pretokenizers import Pretokenizer
from paribus.tokenization.symbol_corpus import SymbolCorpus, pair_key
from paribus.tokenization.training import count_pretokens
from paribus.tokenization.units import BYTE_ALPHABET

WORDS = st.dictionaries(st.text("abc", min_size=1, max_size=12), st.integers(1, 9), max_size=8)


def byte_merges(words: Counter[str], size: int) -> list[tuple[bytes, bytes]]:
    as_units = {word.encode().decode("latin-1"): count for word, count in words.items()}
    training = BPETrainer(as_units, BYTE_ALPHABET).train(size)
    spelled = [token.encode("latin-1") for token in training.tokens]
    return [(spelled[left], spelled[right]) for left, right, _ in training.merges]


def test_pair_counts_include_overlaps_and_token_counts_do_not() -> None:
    corpus = SymbolCorpus({"aaa": 1}, {"a": 0})
    assert corpus.pair_counts() == {pair_key(0, 0): 2}
    assert corpus.replace(0, 0, 1)[0] == 1


def test_the_example_of_the_course_notes() -> None:
    texts = ["i hug pugs", "hugging pugs is fun", "i make puns"]
    tok = Tokenizer.train(texts, algorithm="bpe", vocab_size=20, unit="character", pretokenizer="whitespace")
    assert tok.vocab_size == 20
    assert [entry.bytes.decode() for entry in tok.vocabulary][:13] == sorted(set("".join(texts)))
    assert tok.merges[:2] == [(b"u", b"g"), (b" ", b"p")]
    assert [entry.frequency for entry in tok.vocabulary][13:] == [4, 3, 2, 2, 2, 2, 1]
    assert tok.merges[2:] == [(b"h", b"ug"), (b"u", b"n"), (b"ug", b"s"), (b" p", b"ugs"), (b" ", b"f")]


@settings(max_examples=150, deadline=None)
@given(words=WORDS, size=st.integers(3, 30))
def test_training_equals_counting_everything_anew_each_step(words: dict[str, int], size: int) -> None:
    training = BPETrainer(words, "abc").train(size)
    reference = reference_training(words, "abc", size, scaffolding=False)
    assert list(training.tokens) == reference.tokens
    assert list(training.merges) == reference.merges
    assert {rank: training.frequencies[rank] for rank in reference.frequencies} == reference.frequencies


@settings(max_examples=50, deadline=None)
@given(words=WORDS, size=st.integers(256, 290))
def test_the_merge_list_equals_hugging_faces_on_random_words(words: dict[str, int], size: int) -> None:
    assert byte_merges(Counter(words), size) == huggingface_merges(words, size)


@pytest.mark.parametrize(
    ("file", "pretokenizer", "documents"),
    [
        ("english_mixed.jsonl.zst", "gpt2_digits", 100),
        ("english_mixed.jsonl.zst", "none", 15),
        ("udhr_multilingual.jsonl.zst", "gpt4", 40),
    ],
)
def test_the_merge_list_equals_hugging_faces_on_real_text(
    shared_data: Path, file: str, pretokenizer: str, documents: int
) -> None:
    with zstandard.open(shared_data / "corpora" / file, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in islice(lines, documents)]
    words = count_pretokens(texts, Pretokenizer(pretokenizer))
    assert byte_merges(words, 2_000) == huggingface_merges(words, 2_000)


def test_a_pair_that_spells_an_existing_token_keeps_its_id_and_adds_a_rule() -> None:
    training = BPETrainer({"abc": 5, "ab": 9}, ("a", "b", "c", "abc")).train(9)
    assert training.tokens == ("a", "b", "c", "abc", "ab")
    assert training.merges == ((0, 1, 4), (4, 2, 3))
    assert training.string_equal_pairs == 1


@settings(max_examples=100, deadline=None)
@given(words=WORDS)
def test_training_never_spells_one_string_twice(words: dict[str, int]) -> None:
    assert BPETrainer(words, "abc").train(60).string_equal_pairs == 0


def test_training_says_when_no_pair_is_left() -> None:
    tok = Tokenizer.train(["ab ab"], vocab_size=1_000)
    assert tok.settings.stopped == "no_pair_left"
    assert tok.vocab_size == 256 + len(tok.merges) < 1_000
    assert Tokenizer.train(["ab ab"], vocab_size=257).settings.stopped == "vocab_size"


def test_a_size_below_the_alphabet_is_refused_with_both_sizes() -> None:
    with pytest.raises(ConfigurationError, match=r"tokenizer.vocab_size: 256 .* 256 units and 1 special.* 257"):
        Tokenizer.train(["text"], vocab_size=256, special_tokens=["<eod>"])
    with pytest.raises(ConfigurationError, match=r"vocab_size: 100 .* 259 units, the 256 bytes .* at least 259"):
        Tokenizer.train(["abc"], vocab_size=100, unit="character", unknown="byte_fallback")


def test_the_result_does_not_depend_on_the_order_of_texts() -> None:
    texts = ["the cat sat", "on the mat", "that is that"]
    forward = Tokenizer.train(texts, vocab_size=270)
    assert Tokenizer.train(texts[::-1], vocab_size=270).merges == forward.merges
