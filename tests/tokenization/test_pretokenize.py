"""Pre-tokens: the papers' examples, and that nothing is lost."""

import unicodedata

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization.pretokenize import PATTERNS, PatternPretokenizer, class_table


def pieces(name: str, text: str) -> list[str]:
    return PatternPretokenizer(name).pieces(text)


EXAMPLES: tuple[tuple[str, str, list[str]], ...] = (
    ("gpt2", "It's 2024,  ok\n", ["It", "'s", " 2024", ",", " ", " ok", "\n"]),
    ("gpt2_digits", " 12", [" ", "1", "2"]),
    ("gpt2_digits", "in 1998 ½", ["in", " ", "1", "9", "9", "8", " ", "½"]),
    ("gpt2_digits", "The Capitals", ["The", " Capitals"]),
    ("gpt4", "I'LL pay 12345!\n\n", ["I", "'LL", " pay", " ", "123", "45", "!\n\n"]),
    ("whitespace", "i hug pugs", ["i", " hug", " pugs"]),
    ("whitespace", "a  b\n", ["a", " ", " b", "\n"]),
    ("punctuation", "It's (fun), 2x!", ["It", "'s", " ", "(fun", ")", ",", " 2x", "!"]),
    # Marks belong to words.
    ("punctuation", "हिन्दी में पढ़ना।", ["हिन्दी", " में", " पढ़ना", "।"]),
    ("punctuation", "cafe\u0301s, na\u0303o", ["cafe\u0301s", ",", " na\u0303o"]),
    ("none", "a b\nc", ["a b\nc"]),
    ("none", "", []),
    ("stripped", " i  hug\tpugs\u3000世界\n", ["i", "hug", "pugs", "世界"]),
    ("stripped", " \n ", []),
)


def test_texts_are_cut_as_the_papers_examples_are() -> None:
    assert [(name, text, pieces(name, text)) for name, text, _ in EXAMPLES] == list(EXAMPLES)


TRICKY = "  \n\r\t" + "'" * 3 + "sstmdrevlSTLL abcXYZ012359.,!?-é\u00a0\u3000\u2003ſ世界ñ٣½ⅷ𝟘😀\u0301न\u0085\x1c"


@pytest.mark.parametrize("name", PATTERNS)
@given(text=st.one_of(st.text(), st.text(TRICKY), st.text(TRICKY, min_size=60, max_size=140)))
def test_the_compiled_scanner_is_the_regular_expression(name: str, text: str) -> None:
    assert pieces(name, text) == regex.findall(PATTERNS[name], text)
    if name != "stripped":
        assert "".join(pieces(name, text)) == text


@pytest.mark.parametrize("name", PATTERNS)
def test_the_scanner_agrees_on_every_character_of_unicode(name: str) -> None:
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    for begin in range(0, len(characters), 65_521):
        text = "a".join(characters[begin : begin + 65_521])
        assert pieces(name, text) == regex.findall(PATTERNS[name], text)


def test_the_pinned_classes_are_those_of_this_python_where_it_knows_the_character() -> None:
    table = class_table()
    for code in range(0x110000):
        category = unicodedata.category(chr(code))
        if category != "Cn":
            assert (table[code] == 1) == category.startswith("L")
            assert (table[code] == 2) == category.startswith("N")
            assert (class_table("punctuation")[code] == 1) == category.startswith(("L", "M"))


def test_lone_surrogates_and_unknown_names_are_refused() -> None:
    with pytest.raises(DataError, match=r"character 1 is the lone surrogate U\+DC80"):
        pieces("gpt2", "a\udc80")
    with pytest.raises(ConfigurationError, match="gpt2_digits"):
        PatternPretokenizer("gpt3")
