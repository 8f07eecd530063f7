"""Merge-rank and longest-first encoding against the algorithms as they are written."""

import time
from collections.abc import Iterable

import pytest
from encoder_references import demolished, longest_first, merge_rank
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenization_references import ReferenceTraining, reference_training

from paribus.tokenization.settings import Candidates, EncoderName, Settings
from paribus.tokenization.tokenizer import Tokenizer
from paribus.tokenization.vocabulary import Entry, Vocabulary

WORDS = st.dictionaries(st.text("abc", min_size=1, max_size=14), st.integers(1, 30), min_size=1, max_size=10)


def vocabulary_of(strings: Iterable[str]) -> Vocabulary:
    """A character vocabulary with these tokens, their characters added, without merges."""
    strings = list(strings)
    units = sorted(set("".join(strings)))
    entries = [Entry(n, n, unit.encode(), 0, None, False, "unit") for n, unit in enumerate(units)]
    for string in strings:
        if string not in units:
            entries.append(Entry(len(entries), len(entries), string.encode(), 0, None, False, "token"))
    return Vocabulary.of(entries, (), "character")


def tokenizer_of(vocabulary: Vocabulary, encoder: EncoderName, candidates: Candidates = "normal") -> Tokenizer:
    """A tokenizer that takes a text as one pre-token."""
    settings = Settings(
        algorithm="scaffold_bpe",
        unit="character",
        unknown="refuse",
        pretokenizer="none",
        encoder=encoder,
        candidates=candidates,
        demolish="parents",
        special_tokens=(),
        stopped="no_pair_left",
        string_equal_pairs=0,
    )
    return Tokenizer(vocabulary, settings)


def encoded(vocabulary: Vocabulary, encoder: EncoderName, text: str, candidates: Candidates = "normal") -> list[str]:
    """The tokens of a text."""
    return [token.decode() for token in tokenizer_of(vocabulary, encoder, candidates).tokenize(text)]


def longest_first_tokens(strings: Iterable[str], text: str) -> str:
    return "|".join(encoded(vocabulary_of(strings), "longest_first", text))


@pytest.mark.parametrize(
    ("strings", "text", "expected"),
    [
        (["abc", "cde", "d", "e"], "abcde", "abc|d|e"),
        (["ab", "bcd", "a", "d", "c"], "abcd", "a|bcd"),
        (["éa", "abc"], "éabc", "é|abc"),
        (["aa", "aaaa", "b"], "aaaaab", "aaaa|a|b"),
    ],
)
def test_the_worked_examples_of_longest_first(strings: list[str], text: str, expected: str) -> None:
    assert longest_first_tokens(strings, text) == expected


def test_length_in_bytes_makes_a_tie_where_length_in_characters_does_not() -> None:
    strings = [unit.encode().decode("latin-1") for unit in ("éa", "abc")]
    units = "éabc".encode().decode("latin-1")
    assert longest_first_tokens(strings, units).encode().decode() == "Ã©a|b|c"


def test_longest_first_needs_no_merge_path() -> None:
    tok = Tokenizer.train(["xab xab xab ab ab"], vocab_size=258, pretokenizer="whitespace")
    assert (b"a", b"b") in tok.merges
    assert tok.with_encoder("longest_first").tokenize("qabab") == [b"q", b"ab", b"ab"]


def test_merge_rank_is_leftmost_at_equal_rank() -> None:
    tok = Tokenizer.train(["aa"], vocab_size=257)
    assert tok.tokenize("aaa") == [b"aa", b"a"]
    assert tok.tokenize("aaaaa") == [b"aa", b"aa", b"a"]


@settings(max_examples=200, deadline=None)
@given(strings=st.sets(st.text("abc", min_size=1, max_size=6), max_size=12), text=st.text("abc", max_size=30))
def test_longest_first_equals_algorithm_1(strings: set[str], text: str) -> None:
    everything = strings | set("abc")
    assert longest_first_tokens(sorted(everything), text) == "|".join(longest_first(text, everything))


@settings(max_examples=200, deadline=None)
@given(words=WORDS, text=st.text("abc", max_size=30), size=st.integers(3, 24))
def test_merge_rank_equals_applying_one_merge_at_a_time(words: dict[str, int], text: str, size: int) -> None:
    training = reference_training(words, "abc", size, scaffolding=False)
    merges = [(training.tokens[left], training.tokens[right]) for left, right, _ in training.merges]
    assert encoded(as_vocabulary(training), "merge_rank", text) == merge_rank(text, merges)


@settings(max_examples=200, deadline=None)
@given(words=WORDS, text=st.text("abc", max_size=30), size=st.integers(3, 20))
def test_scaffold_encodings_equal_encoding_over_everything_and_demolishing(
    words: dict[str, int], text: str, size: int
) -> None:
    training = reference_training(words, "abc", size, scaffolding=True)
    vocabulary = as_vocabulary(training)
    merges = [(training.tokens[left], training.tokens[right]) for left, right, _ in training.merges]
    normal = {token for rank, token in enumerate(training.tokens) if rank not in training.scaffold}
    parents = {training.tokens[token]: merge for merge, (_, _, token) in zip(merges, training.merges, strict=True)}
    over_all = demolished(merge_rank(text, merges), normal, parents)
    assert encoded(vocabulary, "merge_rank", text) == over_all
    assert encoded(vocabulary, "longest_first", text) == longest_first(text, normal)
    expanded = demolished(longest_first(text, set(training.tokens)), normal, parents)
    assert encoded(vocabulary, "longest_first", text, "expanded") == expanded


def as_vocabulary(training: ReferenceTraining) -> Vocabulary:
    parents = {token: (left, right) for left, right, token in training.merges}
    entries: list[Entry] = []
    identity = 0
    for rank, token in enumerate(training.tokens):
        scaffold, kind = rank in training.scaffold, "token" if rank in parents else "unit"
        number = None if scaffold else identity
        entries.append(Entry(rank, number, token.encode(), 0, parents.get(rank), scaffold, kind))
        identity += not scaffold
    return Vocabulary.of(entries, training.merges, "character")


@pytest.mark.parametrize("encoder", ["merge_rank", "longest_first"])
@pytest.mark.parametrize(
    "text", [" " * 16_000, "ab" * 8_000, "a" * 16_000, "the quick brown fox".replace(" ", "") * 900]
)
def test_a_pretoken_of_16000_units_takes_no_minutes(encoder: str, text: str) -> None:
    training = ["a" * 64, " " * 64, "ab" * 20, "the quick brown fox"] * 3
    tok = Tokenizer.train(training, vocab_size=300, pretokenizer="none", encoder=encoder)
    started = time.process_time()
    assert tok.decode(tok.encode(text)) == text
    assert time.process_time() - started < 5
