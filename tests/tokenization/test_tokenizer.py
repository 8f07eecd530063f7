"""The promised interface of `Tokenizer`."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization import Tokenizer
from support.real_data import RealData

TEXTS = [
    "The capitals of the world, 1998.",
    "Capital letters aren't the capital's letters.\n\n  indented",
    "naïve café 東京",
]
EOS = "<|endoftext|>"
KINDS = [
    {"algorithm": "bpe", "vocab_size": 290},
    {"algorithm": "scaffold_bpe", "vocab_size": 290},
    {"algorithm": "bpe", "vocab_size": 320, "unit": "character"},
    {"algorithm": "scaffold_bpe", "vocab_size": 320, "unit": "character", "pretokenizer": "none"},
    {"algorithm": "bytes"},
]


def train(**options: object) -> Tokenizer:
    return Tokenizer.train(TEXTS, **{"special_tokens": [EOS, "<pad>"], **options})


@pytest.mark.parametrize("encoder", ["merge_rank", "longest_first"])
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_any_text_comes_back_exactly(options: dict[str, object], encoder: str) -> None:
    tok = train(encoder=encoder, **options)

    @given(st.text() | st.lists(st.sampled_from([*TEXTS, EOS, "\x00", "\U0001f600"])).map("".join))
    def check(text: str) -> None:
        ids = tok.encode(text)
        assert ids.ndim == 1
        assert tok.decode(ids) == text
        assert b"".join(tok.tokenize(text)) == text.encode()
        assert not len(ids) or 0 <= ids.min() <= ids.max() < tok.vocab_size
        assert int(tok.token_byte_lengths()[ids].sum()) == len(text.encode())

    check()


def test_special_tokens_come_last_and_are_never_matched_in_text() -> None:
    tok = train(vocab_size=290)
    assert tok.special_tokens == {EOS: 288, "<pad>": 289}
    assert tok.eos_id == 288
    assert not {288, 289} & set(tok.encode(f"a{EOS}b<pad>").tolist())
    assert tok.token_byte_lengths()[[288, 289]].tolist() == [0, 0]
    assert tok.decode([tok.eos_id]) == EOS


@pytest.mark.parametrize("pretokenizer", ["gpt2_digits", "stripped"])
def test_the_bytes_of_tokens_are_those_of_the_text_and_special_tokens_have_none(pretokenizer: str) -> None:
    tok = train(vocab_size=600, pretokenizer=pretokenizer)
    listed = tok.token_bytes()
    assert len(listed) == tok.vocab_size
    assert [listed[identity] for identity in tok.special_tokens.values()] == [b"", b""]
    text = "a  hug\nand pugs"
    expected = {"gpt2_digits": text, "stripped": " a hug and pugs"}[pretokenizer]
    assert b"".join(listed[identity] for identity in tok.encode(text).tolist()) == expected.encode()


def test_a_character_outside_the_alphabet_is_bytes_or_unknown_or_refused() -> None:
    fallback = Tokenizer.train(["abab"], vocab_size=300, unit="character", unknown="byte_fallback")
    assert fallback.tokenize("ab€") == [b"ab", b"\xe2", b"\x82", b"\xac"]
    unknown = Tokenizer.train(["abab"], vocab_size=4, unit="character", unknown="token")
    ids = unknown.encode("ab€ab")
    assert ids.tolist() == [2, 3, 2]
    assert unknown.decode(ids) == "ab\ufffdab"
    assert unknown.token_byte_lengths().tolist() == [1, 1, 2, 0]
    with pytest.raises(DataError, match=r"U\+20AC"):
        Tokenizer.train(["abab"], vocab_size=3, unit="character").encode("€")


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_a_lone_surrogate_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(DataError, match="surrogate"):
        train(**options).encode("a\udc41")
    if options["algorithm"] != "bytes":
        with pytest.raises(DataError, match="surrogate"):
            Tokenizer.train(["a\udc41"], **options)


def test_unknown_names_and_ids_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="scaffold_bpe"):
        Tokenizer.train(TEXTS, algorithm="morfessor", vocab_size=300)
    with pytest.raises(ConfigurationError, match="longest_first"):
        train(vocab_size=290).with_encoder("longest")
    with pytest.raises(ConfigurationError, match="distinct"):
        train(vocab_size=290, special_tokens=["<a>", "<a>"])
    with pytest.raises(DataError, match=r"0\.\.289"):
        train(vocab_size=290).decode([290])


def test_a_tokenizer_says_what_it_is_and_how_many_tokens_it_has() -> None:
    tokenizer = Tokenizer.train(["a b a b"], vocab_size=258, special_tokens=["<end>"], encoder="longest_first")
    assert repr(tokenizer) == "Tokenizer(algorithm='bpe', vocab_size=258, encoder='longest_first')"
    assert len(tokenizer) == tokenizer.vocab_size == 258


# What a caller of the library plausibly gives by mistake, and what holds texts and ids.

SENTENCES = ["all else being equal and nothing else in 1998"] * 3


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(SENTENCES, vocab_size=270, special_tokens=("<end>",))


def test_a_mistake_is_a_type_error_that_says_what_is_right(tokenizer: Tokenizer) -> None:
    with pytest.raises(TypeError, match=r"Tokenizer\.train takes several strings.*\[text\]"):
        Tokenizer.train("a string", vocab_size=270)
    with pytest.raises(TypeError, match="encode_batch takes several strings"):
        tokenizer.encode_batch("abc")
    with pytest.raises(TypeError, match="encode: a text is a string, not bytes"):
        tokenizer.encode(b"abc")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="token ids are whole numbers"):
        tokenizer.decode([97, 1.5])


def test_a_vocabulary_smaller_than_was_asked_for_is_said() -> None:
    with pytest.warns(UserWarning, match="vocab_size=30000 was asked for, and the texts gave 258 tokens") as warned:
        small = Tokenizer.train(["abc"], vocab_size=30_000)
    assert (small.vocab_size, small.settings.stopped, warned[0].filename) == (258, "no_pair_left", __file__)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Tokenizer.train((), algorithm="bytes").vocab_size == 256


# Hundreds of languages and scripts, and Chinese without spaces.


@pytest.fixture(scope="module")
def declarations(real_data: RealData) -> list[str]:
    return [text[:1_500] for text in real_data.declaration_texts()]


@pytest.mark.parametrize("unit", ["byte", "character"])
@pytest.mark.parametrize("algorithm", ["bpe", "scaffold_bpe"])
def test_every_language_comes_back_exactly(declarations: list[str], algorithm: str, unit: str) -> None:
    tok = Tokenizer.train(
        declarations[::2],
        algorithm=algorithm,
        vocab_size=4_500,
        unit=unit,
        pretokenizer="gpt4",
        unknown="byte_fallback",
    )
    for encoder in ("merge_rank", "longest_first"):
        encoding = tok.with_encoder(encoder)
        for text in declarations[::5]:
            assert encoding.decode(encoding.encode(text)) == text
