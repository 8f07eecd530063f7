"""Statistics on numbers that can be checked by hand."""

import pytest

from paribus.tokenization import Tokenizer
from paribus.tokenization.statistics import corpus_statistics


def test_bytes_have_known_entropy_and_redundancy() -> None:
    tok = Tokenizer.train([], algorithm="bytes")
    found = corpus_statistics(tok, ["abab", "cdcd"])
    assert (found.texts, found.tokens, found.bytes, found.bytes_per_token) == (2, 8, 8, 1.0)
    assert found.entropy == pytest.approx(2.0)
    assert found.redundancy == pytest.approx(1 - 2 / 8)
    assert found.token_lengths == {"1-3": 8}
    assert found.used_tokens == 4


def test_lengths_are_in_characters_and_bytes_are_the_texts() -> None:
    tok = Tokenizer.train(["éééé ab"] * 3, vocab_size=300, pretokenizer="whitespace")
    found = corpus_statistics(tok, ["éééé é"])
    assert found.token_lengths == {"1-3": 2, "4-6": 1}
    assert found.bytes == 11
    assert found.bytes_per_token == pytest.approx(11 / 3)


def test_one_repeated_token_has_no_entropy_and_no_text_has_no_tokens() -> None:
    tok = Tokenizer.train([], algorithm="bytes")
    assert corpus_statistics(tok, ["aaaa"]).entropy == 0
    assert corpus_statistics(tok, ["aaaa"]).redundancy == 1
    empty = corpus_statistics(tok, [""])
    assert (empty.tokens, empty.bytes_per_token, empty.token_lengths) == (0, 0.0, {})
