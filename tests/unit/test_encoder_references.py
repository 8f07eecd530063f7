"""The references against each other, and against what can be worked out by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.encoder_references import (
    demolished,
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
from support.tokenization_references import reference_training, reference_wordpiece

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


def test_longest_first_by_bytes_takes_the_leftmost_of_two_equally_long() -> None:
    tokens = {bytes_of(token) for token in ("éa", "abc", "b", "c")}
    assert longest_first(bytes_of("éabc"), tokens) == [bytes_of(token) for token in ("éa", "b", "c")]


def bytes_of(text: str) -> tuple[int, ...]:
    return tuple(text.encode())


def test_left_to_right_is_not_longest_first() -> None:
    assert left_to_right("abcd", {"ab", "bcd", "a", "c", "d"}) == ["ab", "c", "d"]
    assert left_to_right("abx", {"a", "ab"}) is None


def test_merge_rank_is_leftmost_at_equal_rank() -> None:
    assert merge_rank("aaa", [("a", "a")]) == ["aa", "a"]
    assert merge_rank((7, 7, 7), [((7,), (7,))]) == [(7, 7), (7,)]


def test_fewest_prefers_the_longer_first_token() -> None:
    assert fewest("abc", {"a", "ab", "bc", "c"}) == ["ab", "c"]
    assert fewest("abcd", {"a", "b", "ab", "bcd", "cd", "c", "d"}) == ["ab", "cd"]
    assert fewest("", {"a"}) == []
    assert fewest("ab", {"a"}) is None


def test_viterbi_decides_equal_sums_by_fewer_tokens_then_by_the_longer_first() -> None:
    assert viterbi("ab", {"a": -1.0, "b": -1.0, "ab": -2.0}) == ["ab"]
    assert viterbi("abc", {"a": -1.0, "bc": -2.0, "ab": -2.0, "c": -1.0, "b": -9.0}) == ["ab", "c"]
    assert viterbi("ab", {"a": -1.0, "b": -0.5, "ab": -2.0}) == ["a", "b"]


def test_the_course_notes_example_of_byte_pair_encoding() -> None:
    words: dict[str, int] = {}
    for word in ["i", " hug", " pugs", "hugging", " pugs", " is", " fun", "i", " make", " puns"]:
        words[word] = words.get(word, 0) + 1
    alphabet = sorted(set("".join(words)))
    training = reference_training(words, alphabet, 20, scaffolding=False)
    assert len(alphabet) == 13
    assert training.tokens[13:15] == ["ug", " p"]
    assert [training.frequencies[rank] for rank in (13, 14)] == [4, 3]
    assert all(training.frequencies[rank] <= 2 for rank in range(15, 20))


def test_a_scaffold_is_demolished_to_its_parents_and_no_further_than_normal_tokens() -> None:
    parents = {"zona": ("zon", "a"), "zon": ("zo", "n"), "zo": ("z", "o"), "Arizona": ("Ari", "zona")}
    normal = {"Arizona", "Ari", "zon", "a", "z", "o", "n"}
    assert demolished(["zona", "Arizona"], normal, parents) == ["zon", "a", "Arizona"]
    assert demolished(["zona"], normal - {"zon"}, parents) == ["z", "o", "n", "a"]


def test_wordpiece_merges_the_most_likely_pair_and_decides_ties_by_frequency() -> None:
    words = {"hUG": 10, "pUG": 5, "pUN": 12, "bUN": 4, "hUGS": 5}
    training = reference_wordpiece(words, sorted(set("".join(words))), 9)
    assert training.tokens[7:] == ["GS", "pU"]


@settings(max_examples=100, deadline=None)
@given(words=st.dictionaries(st.text("abc", min_size=1, max_size=8), st.integers(1, 9), min_size=1, max_size=6))
def test_wordpiece_ends_with_every_word_one_token(words: dict[str, int]) -> None:
    training = reference_wordpiece(words, "abc", 1000)
    assert all(len(symbols) == 1 for symbols, _ in training.words)
    assert set(words) <= set(training.tokens)


@settings(max_examples=300, deadline=None)
@given(text=TEXT, scores=st.dictionaries(st.text("abc", min_size=1, max_size=5), EIGHTHS, max_size=10))
def test_viterbi_is_the_best_of_all_segmentations(text: str, scores: dict[str, float]) -> None:
    scores |= dict.fromkeys("abc", -6.0)

    def quality(pieces: list[str]) -> tuple[float, int, list[int]]:
        return sum(map(scores.__getitem__, pieces)), -len(pieces), list(map(len, pieces))

    assert viterbi(text, scores) == max(segmentations(text, scores), key=quality)


@settings(max_examples=300, deadline=None)
@given(text=TEXT, tokens=TOKENS)
def test_fewest_is_the_shortest_of_all_segmentations(text: str, tokens: set[str]) -> None:
    tokens |= set("abc")
    pieces = fewest(text, tokens)
    assert pieces == max(segmentations(text, tokens), key=lambda found: (-len(found), list(map(len, found))))
    assert pieces is not None
    assert len(pieces) <= min(len(longest_first(text, tokens)), len(left_to_right(text, tokens) or []))


@settings(max_examples=200, deadline=None)
@given(text=TEXT, tokens=TOKENS, probability=st.floats(0, 0.99), stream=st.integers(0, 2**64 - 1))
def test_every_encoder_loses_nothing_and_strings_equal_indices(
    text: str, tokens: set[str], probability: float, stream: int
) -> None:
    tokens |= set("abc")
    merges = [(token[:cut], token[cut:]) for token in sorted(tokens) for cut in range(1, len(token))]
    as_tuples = [(tuples(left), tuples(right)) for left, right in merges]
    for plain, indexed in [
        (longest_first(text, tokens), longest_first(tuples(text), set(map(tuples, tokens)))),
        (left_to_right(text, tokens), left_to_right(tuples(text), set(map(tuples, tokens)))),
        (fewest(text, tokens), fewest(tuples(text), set(map(tuples, tokens)))),
        (merge_rank(text, merges), merge_rank(tuples(text), as_tuples)),
        (dropout(text, merges, probability, stream), dropout(tuples(text), as_tuples, probability, stream)),
    ]:
        assert "".join(plain or []) == text
        assert list(map(tuples, plain or [])) == indexed


@settings(max_examples=100, deadline=None)
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


def test_streams_differ_between_pretokens_documents_and_seeds() -> None:
    streams = {
        pretoken_stream(seed, document, place) for seed in range(9) for document in range(99) for place in range(99)
    }
    assert len(streams) > 0.99 * len({(seed ^ document, place) for seed in range(9) for document in range(99)
                                      for place in range(99)})  # fmt: skip
