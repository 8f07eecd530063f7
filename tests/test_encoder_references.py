"""The references against each other, and against what can be worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.encoder_references import (
    dropout,
    fewest,
    left_to_right,
    longest_first,
    merge_rank,
    pretoken_stream,
    segmentations,
    splitmix64,
    viterbi,
)

TEXT = st.text("abc", max_size=12)
TOKENS = st.sets(st.text("abc", min_size=1, max_size=5), max_size=10)
EIGHTHS = st.integers(-40, -1).map(lambda number: number / 8)
"""Scores whose sums are exact in floating point."""


def tuples(units: str) -> tuple[int, ...]:
    return tuple(map(ord, units))


@pytest.mark.parametrize(
    ("tokens", "text", "expected"),
    [
        ({"éa", "abc", "é", "a", "b", "c"}, "éabc", ["é", "abc"]),
        ({"abc", "cde", "d", "e"}, "abcde", ["abc", "d", "e"]),
        ({"ab", "bcd", "a", "d"}, "abcd", ["a", "bcd"]),
    ],
)
def test_longest_first_on_examples_worked_by_hand(tokens: set[str], text: str, expected: list[str]) -> None:
    assert longest_first(text, tokens) == expected


@given(text=TEXT, scores=st.dictionaries(st.text("abc", min_size=1, max_size=5), EIGHTHS, max_size=10))
def test_viterbi_is_the_best_of_all_segmentations(text: str, scores: dict[str, float]) -> None:
    scores |= dict.fromkeys("abc", -6.0)

    def quality(pieces: list[str]) -> tuple[float, int, list[int]]:
        return sum(map(scores.__getitem__, pieces)), -len(pieces), list(map(len, pieces))

    assert viterbi(text, scores) == max(segmentations(text, scores), key=quality)


@given(text=TEXT, tokens=TOKENS)
def test_fewest_is_the_shortest_of_all_segmentations(text: str, tokens: set[str]) -> None:
    tokens |= set("abc")
    pieces = fewest(text, tokens)
    assert pieces == max(segmentations(text, tokens), key=lambda found: (-len(found), list(map(len, found))))
    assert pieces is not None
    assert len(pieces) <= min(len(longest_first(text, tokens)), len(left_to_right(text, tokens) or []))


@given(text=TEXT, tokens=TOKENS, stream=st.integers(0, 2**64 - 1))
def test_without_dropout_merges_go_by_rank_and_with_all_dropped_units_stay(
    text: str, tokens: set[str], stream: int
) -> None:
    merges = [(token[:1], token[1:]) for token in sorted(tokens) if len(token) > 1]
    assert dropout(text, merges, 0.0, stream) == merge_rank(text, merges)
    assert dropout(text, merges, 1.0, stream) == list(text)


def test_dropout_skips_each_merge_with_its_probability() -> None:
    whole = sum(dropout("ab", [("a", "b")], 0.25, pretoken_stream(3, 11, place)) == ["ab"] for place in range(4000))
    assert whole / 4000 == pytest.approx(0.75, abs=0.03)


def test_dropout_reaches_every_segmentation_that_its_merges_allow() -> None:
    merges = [("a", "b"), ("ab", "c"), ("b", "c")]
    seen = {"|".join(dropout("abc", merges, 0.5, pretoken_stream(0, 0, place))) for place in range(300)}
    assert seen == {"abc", "ab|c", "a|bc", "a|b|c"}


def test_splitmix64_gives_its_published_numbers() -> None:
    state, gamma = 1234567, 0x9E3779B97F4A7C15
    found = [splitmix64((state + step * gamma) % 2**64) for step in range(5)]
    assert found == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
