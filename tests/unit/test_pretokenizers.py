"""Pre-tokens: the papers' examples, and that nothing is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.errors import ConfigurationError
from paribus.tokenization.pretokenizers import PATTERNS, Pretokenizer


def pieces(name: str, text: str) -> list[str]:
    return list(Pretokenizer(name).pretokenize(text))


def test_gpt2_keeps_numbers_whole_and_the_space_with_the_word() -> None:
    assert pieces("gpt2", "It's 2024,  ok\n") == ["It", "'s", " 2024", ",", " ", " ok", "\n"]


def test_gpt2_digits_makes_every_digit_and_the_space_before_it_a_piece() -> None:
    assert pieces("gpt2_digits", " 12") == [" ", "1", "2"]
    assert pieces("gpt2_digits", "in 1998 ½") == ["in", " ", "1", "9", "9", "8", " ", "½"]
    assert pieces("gpt2_digits", "The Capitals") == ["The", " Capitals"]


def test_gpt4_groups_digits_by_three_and_ignores_case_of_contractions() -> None:
    assert pieces("gpt4", "I'LL pay 12345!\n\n") == ["I", "'LL", " pay", " ", "123", "45", "!\n\n"]


def test_whitespace_is_split_before_each_whitespace_character_and_kept() -> None:
    assert pieces("whitespace", "i hug pugs") == ["i", " hug", " pugs"]
    assert pieces("whitespace", "a  b\n") == ["a", " ", " b", "\n"]


def test_none_keeps_the_document_whole() -> None:
    assert pieces("none", "a b\nc") == ["a b\nc"]
    assert pieces("none", "") == []


@pytest.mark.parametrize("name", PATTERNS)
@given(text=st.text())
def test_the_pieces_together_are_the_text(name: str, text: str) -> None:
    found = pieces(name, text)
    assert "".join(found) == text
    assert "" not in found


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="gpt2_digits"):
        Pretokenizer("gpt3")
