"""A token a word: which words are tokens, and what becomes of the others."""

import pytest

from paribus.errors import ConfigurationError
from paribus.tokenization import Tokenizer
from paribus.tokenization.settings import EncoderName

TEXTS = ["i hug pugs", "hugging pugs is fun", "i make puns"]


def spelled(tok: Tokenizer, text: str) -> list[str]:
    return [token.decode() for token in tok.tokenize(text)]


def words(size: int, unit: str = "character", unknown: str | None = "token") -> Tokenizer:
    return Tokenizer.train(
        TEXTS, algorithm="words", vocab_size=size, unit=unit, unknown=unknown, pretokenizer="punctuation",
        special_tokens=["<eos>"],
    )  # type: ignore[arg-type]  # fmt: skip


def test_the_commonest_pretokens_are_tokens_and_others_are_unknown() -> None:
    tok = words(5)
    assert [entry.bytes for entry in tok.vocabulary] == [b" pugs", b"i", b" fun", b"<unk>", b"<eos>"]
    assert [entry.frequency for entry in tok.vocabulary] == [2, 2, 1, 0, 0]
    assert spelled(tok, "i hug pugs") == ["i", "\ufffd", " pugs"]
    assert tok.encode("z zz").tolist() == [3, 3]


@pytest.mark.parametrize(("unit", "size"), [("byte", 259), ("character", 13 + 256 + 3)])
def test_without_an_unknown_token_other_words_are_spelled_in_units(unit: str, size: int) -> None:
    tok = words(size, unit, "byte_fallback")
    assert spelled(tok, "i pugs hug") == ["i", " pugs", *" hug"]
    for text in ("i hug pugs", "é", "a pugs. 世界"):
        assert tok.decode(tok.encode(text)) == text


def test_the_tokenizer_is_stored_and_stopped_says_whether_words_ran_out(tmp_path: object) -> None:
    with pytest.warns(UserWarning, match="vocab_size=50"):
        tok = words(50)
    tok.save(f"{tmp_path}/words")
    assert tok.settings.stopped == "no_pair_left"
    assert Tokenizer.load(f"{tmp_path}/words").encode("i hug zebras").tolist() == tok.encode("i hug zebras").tolist()


@pytest.mark.parametrize("encoder", ["longest_first", "fewest", "merge_rank", "viterbi"])
def test_encoders_that_need_units_or_merges_are_refused(encoder: EncoderName) -> None:
    with pytest.raises(ConfigurationError, match="encoder="):
        words(5).with_encoder(encoder)


def test_any_vocabulary_takes_the_encoder_of_words() -> None:
    tok = Tokenizer.train(TEXTS, vocab_size=300, pretokenizer="whitespace").with_encoder("whole")
    assert spelled(tok, "i pugs pug") == ["i", " pugs", " ", "p", "u", "g"]
