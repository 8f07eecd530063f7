"""Merge-rank and longest-first encoding against the algorithms as they are written."""

import time
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.tokenization.settings import Algorithm, Candidates, EncoderName, Settings
from paribus.tokenization.tokenizer import Tokenizer
from paribus.tokenization.vocabulary import Token, Vocabulary
from support.encoder_references import fewest, left_to_right, longest_first, merge_rank

WORDS = st.dictionaries(st.text("abc", min_size=1, max_size=14), st.integers(1, 30), min_size=1, max_size=10)


def vocabulary_of(strings: Iterable[str]) -> Vocabulary:
    """A character vocabulary with these tokens, their characters added, without merges."""
    strings = list(strings)
    units = sorted(set("".join(strings)))
    entries = [Token(n, n, unit.encode(), 0, None, False, "unit") for n, unit in enumerate(units)]
    for string in strings:
        if string not in units:
            entries.append(Token(len(entries), len(entries), string.encode(), 0, None, False, "token"))
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
        (["abcd", "abc", "defgh"], "abcdefgh", "abc|defgh"),
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


@settings(max_examples=200, deadline=None)
@given(strings=st.sets(st.text("abc", min_size=1, max_size=6), max_size=12), text=st.text("abc", max_size=30))
def test_longest_first_equals_algorithm_1(strings: set[str], text: str) -> None:
    to_plain = strings | set("abc")
    assert longest_first_tokens(sorted(to_plain), text) == "|".join(longest_first(text, to_plain))


def trained(algorithm: Algorithm, words: dict[str, int], size: int) -> Tokenizer:
    """A tokenizer over characters whose pre-tokens are whole texts; its alphabet is a, b, c."""
    texts = [*"abc", *(word for word, count in words.items() for _ in range(count))]
    return Tokenizer.train(
        texts, algorithm=algorithm, vocab_size=size, unit="character", unknown="refuse", pretokenizer="none"
    )


def merges_of(tok: Tokenizer) -> list[tuple[str, str]]:
    return [(left.decode(), right.decode()) for left, right in tok.merges]


@settings(max_examples=200, deadline=None)
@given(words=WORDS, text=st.text("abc", max_size=30), size=st.integers(3, 24))
def test_merge_rank_equals_applying_one_merge_at_a_time(words: dict[str, int], text: str, size: int) -> None:
    tok = trained("bpe", words, size)
    assert [token.decode() for token in tok.tokenize(text)] == merge_rank(text, merges_of(tok))


@settings(max_examples=200, deadline=None)
@given(words=WORDS, text=st.text("abc", max_size=30), size=st.integers(3, 20))
def test_scaffold_encodings_equal_encoding_over_everything_and_demolishing(
    words: dict[str, int], text: str, size: int
) -> None:
    tok = trained("scaffold_bpe", words, size)
    spelled = {entry.bytes.decode(): entry for entry in tok.vocabulary}
    normal = {token for token, entry in spelled.items() if not entry.scaffold}

    def demolished(tokens: list[str]) -> list[str]:
        made: list[str] = []
        for token in tokens:
            parents = spelled[token].parents
            if token in normal or parents is None:
                made.append(token)
            else:
                made += demolished([tok.vocabulary[parent].bytes.decode() for parent in parents])
        return made

    def encode(encoder: EncoderName, candidates: Candidates = "normal") -> list[str]:
        return [token.decode() for token in tok.with_encoder(encoder, candidates=candidates).tokenize(text)]

    assert encode("merge_rank") == demolished(merge_rank(text, merges_of(tok)))
    assert encode("longest_first") == longest_first(text, normal)
    assert encode("longest_first", "expanded") == demolished(longest_first(text, set(spelled)))
    assert encode("left_to_right") == left_to_right(text, normal)
    assert encode("fewest") == fewest(text, normal)


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
