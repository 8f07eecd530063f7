"""The examples of course notes on tokenization, step by step, and of the Hugging Face course that they point to.

Both leave ties open, so a merge of theirs is right where its pair is one of the best; ours takes the one with the
smaller ids (BPE) or the commoner one (WordPiece). Slips of theirs are named where they are.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import pytest

from paribus.tokenization import Tokenizer
from paribus.tokenization.settings import Algorithm, EncoderName, Settings
from paribus.tokenization.vocabulary import Token, Vocabulary
from support.trained_words import strings, train_on_words, word_counts

DOCUMENTS = ["i hug pugs", "hugging pugs is fun", "i make puns"]
MERGES = [("u", "g"), (" ", "p"), ("h", "ug"), (" p", "ug"), (" pug", "s"), ("u", "n"), (" ", "hug")]
"""Those of the slides, in an order of theirs: 14 `ug` to 20 ` hug`, counted from 1."""
WORDS = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
"""The corpus of the Hugging Face course."""


def bpe_tokenizer(merges: Sequence[tuple[str, str]], alphabet: str) -> Tokenizer:
    """A tokenizer with these merges; a character outside the alphabet is one unknown token, the last."""
    names = [*alphabet, *("".join(pair) for pair in merges)]
    rank = {name: index for index, name in enumerate(names)}
    entries = [Token(rank[unit], rank[unit], unit.encode(), 0, None, False, "unit") for unit in alphabet]
    for left, right in merges:
        token = rank[left + right]
        parents = rank[left], rank[right]
        entries.append(Token(token, token, (left + right).encode(), 0, parents, False, "token"))
    entries.append(Token(len(names), len(names), b"<unk>", 0, None, False, "unknown"))
    rules = [(rank[left], rank[right], rank[left + right]) for left, right in merges]
    return Tokenizer(Vocabulary.of(entries, rules, "character"), settings("bpe", "merge_rank"))


def unigram_tokenizer(counts: Mapping[str, int]) -> Tokenizer:
    """A tokenizer whose tokens have the logarithms of their shares of all counts as scores."""
    total = sum(counts.values())
    names = sorted(counts, key=len)
    entries = [
        Token(
            rank, rank, name.encode(), 0, None, False, "unit" if len(name) == 1 else "token",
            score=math.log(counts[name] / total),
        )
        for rank, name in enumerate(names)
    ]  # fmt: skip
    entries.append(Token(len(names), len(names), b"<unk>", 0, None, False, "unknown", score=-50.0))
    return Tokenizer(Vocabulary.of(entries, [], "character"), settings("unigram", "viterbi"))


def settings(algorithm: Algorithm, encoder: EncoderName) -> Settings:
    return Settings(
        algorithm=algorithm, unit="character", unknown="token", pretokenizer="whitespace", encoder=encoder,
        special_tokens=(),
    )  # fmt: skip


def spelled(tok: Tokenizer, text: str) -> list[str]:
    return [token.decode() for token in tok.tokenize(text)]


def test_training_takes_the_merges_of_the_slides_where_one_pair_is_best() -> None:
    settings = {"unit": "character", "unknown": "refuse", "pretokenizer": "whitespace"}
    tok = Tokenizer.train(DOCUMENTS, vocab_size=20, **settings)  # type: ignore[arg-type]
    assert [(left.decode(), right.decode()) for left, right in tok.merges] == [
        *MERGES[:3], ("u", "n"), ("ug", "s"), (" p", "ugs"), (" ", "f"),
    ]  # fmt: skip
    assert [entry.frequency for entry in tok.vocabulary][13:] == [4, 3, 2, 2, 2, 2, 1]


def test_words_are_encoded_and_decoded_as_on_the_slides() -> None:
    tok = bpe_tokenizer(MERGES, " aefghikmnpsu")
    for text, numbers in {
        # The slides write 4 (`f`) for the `e`, which is 3, and 18 (` pugs`) for ` hug`, which is 20.
        "huge": [16, 3],
        " huge": [20, 3],
        "unassumingness": [19, 2, 12, 12, 13, 9, 7, 10, 5, 10, 3, 12, 12],
        " hugs": [20, 12],
        "missshapenness": [9, 7, 12, 12, 12, 6, 2, 11, 3, 10, 10, 3, 12, 12],
        # What the slides encode under that spelling has two `s`.
        "misshapenness": [9, 7, 12, 12, 6, 2, 11, 3, 10, 10, 3, 12, 12],
    }.items():
        assert [identity + 1 for identity in tok.encode(text).tolist()] == numbers, text
        assert tok.decode([number - 1 for number in numbers]) == text
    for text in ("apple", " hugest"):
        assert "\ufffd" in spelled(tok, text), "it has a letter outside the alphabet"
    # Of the spellings of a word, merging gives one of the fewest tokens; the slide's last ends in 13 (`u`), not 12.
    for numbers in [[20, 12], [1, 16, 12], [1, 6, 14, 12], [1, 6, 13, 5, 12]]:
        assert tok.decode([number - 1 for number in numbers]) == " hugs"
    assert tok.with_encoder("fewest").encode(" hugs").tolist() == [19, 11]


def test_merges_of_the_hugging_face_course_are_found() -> None:
    tok = Tokenizer.train(word_counts(WORDS), vocab_size=10, unit="character", unknown="refuse")
    assert tok.merges == [(b"u", b"g"), (b"u", b"n"), (b"h", b"ug")]
    assert [entry.frequency for entry in tok.vocabulary][7:] == [20, 16, 15]
    assert (spelled(tok, "bug"), spelled(tok, "unhug")) == (["b", "ug"], ["un", "hug"])


def test_wordpiece_takes_the_merges_of_best_score_and_the_commonest_of_equals() -> None:
    settings = {"unit": "character", "unknown": "token", "pretokenizer": "stripped"}
    tok = Tokenizer.train(word_counts(WORDS), algorithm="wordpiece", vocab_size=19, **settings)  # type: ignore[arg-type]
    # The course has ("h", "##u") of score 1/36 as the second; (p, ##u) has that too, and occurs 17 times.
    assert tok.merges[:2] == [(b"g", b"s"), (b"p", b"u")]
    assert spelled(tok, "mug") == spelled(tok, "bum") == ["\ufffd"], "a word with an unknown letter is unknown whole"
    assert b"".join(tok.tokenize("bugs")) == b"bugs"


STRICT = {
    "h": 15, "u": 36, "g": 20, "hu": 15, "ug": 20, "p": 17, "pu": 17, "n": 16, "un": 16, "b": 4, "bu": 4, "s": 5,
    "hug": 15, "gs": 5, "ugs": 5,
}  # fmt: skip
"""All strict substrings of the words, and how often each occurs."""


def probability(tokens: Sequence[str]) -> Fraction:
    return math.prod((Fraction(STRICT[token], 210) for token in tokens), start=Fraction(1))


def test_viterbi_finds_the_most_probable_tokens_of_each_word() -> None:
    for word, tokens, value in [
        ("hug", ["hug"], 0.071428),
        ("pug", ["pu", "g"], 0.007710),
        ("pun", ["pu", "n"], 0.006168),
        ("bun", ["bu", "n"], 0.001451),
        ("hugs", ["hug", "s"], 0.001701),
        ("unhug", ["un", "hug"], 0.005442),
    ]:
        assert spelled(unigram_tokenizer(STRICT), word) == tokens
        assert float(probability(tokens)) == pytest.approx(value, abs=1e-6)
    # The page takes 5 for the count of `p` and of `pu` here, which its own table has as 17.
    assert probability(["pu", "g"]) == probability(["p", "ug"]) > probability(["p", "u", "g"])


def test_training_to_fewer_tokens_keeps_all_letters_and_removes_what_costs_least() -> None:
    training = train_on_words(WORDS, sorted(set("".join(WORDS))), 9)
    pieces = strings(training, sorted(set("".join(WORDS))))
    assert pieces[:7] == tuple("bghnpsu")
    # Whole words are seeds here, and the letters of no others occur together as often: 15 and 12 times.
    assert set(pieces[7:]) == {"hug", "pun"}
