"""The promised interface of `Tokenizer`, and that a saved one is self-contained, and refused when it is broken."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization import Tokenizer
from support.stages import files

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


def test_tokens_have_the_bytes_of_the_text_and_special_tokens_none() -> None:
    text = "a  hug\nand pugs"
    for pretokenizer, expected in {"gpt2_digits": text, "stripped": " a hug and pugs"}.items():
        tok = train(vocab_size=600, pretokenizer=pretokenizer)
        token_bytes = tok.token_bytes()
        assert len(token_bytes) == tok.vocab_size
        assert [token_bytes[identity] for identity in tok.special_tokens.values()] == [b"", b""]
        assert b"".join(token_bytes[identity] for identity in tok.encode(text).tolist()) == expected.encode()


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


def test_a_lone_surrogate_is_refused() -> None:
    for options in KINDS:
        with pytest.raises(DataError, match="surrogate"):
            train(**options).encode("a\udc41")
    with pytest.raises(DataError, match="surrogate"):
        Tokenizer.train(["a\udc41"], vocab_size=290)


def test_unknown_names_and_ids_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="scaffold_bpe"):
        Tokenizer.train(TEXTS, algorithm="morfessor", vocab_size=300)
    with pytest.raises(ConfigurationError, match="longest_first"):
        train(vocab_size=290).with_encoder("longest")
    with pytest.raises(ConfigurationError, match="distinct"):
        train(vocab_size=290, special_tokens=["<a>", "<a>"])
    with pytest.raises(DataError, match=r"0\.\.289"):
        train(vocab_size=290).decode([290])


def test_a_plausible_mistake_is_a_type_error_that_says_what_is_right() -> None:
    tok = train(vocab_size=290)
    assert repr(tok) == "Tokenizer(algorithm='bpe', vocab_size=290, encoder='merge_rank')"
    assert len(tok) == tok.vocab_size == 290
    with pytest.raises(TypeError, match=r"Tokenizer\.train takes several strings.*\[text\]"):
        Tokenizer.train("a string", vocab_size=270)
    with pytest.raises(TypeError, match="encode_batch takes several strings"):
        tok.encode_batch("abc")
    with pytest.raises(TypeError, match="encode: a text is a string, not bytes"):
        tok.encode(b"abc")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="token ids are whole numbers"):
        tok.decode([97, 1.5])


def test_a_vocabulary_smaller_than_was_asked_for_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="vocab_size=30000 was asked for, and the texts gave 258 tokens") as warned:
        small = Tokenizer.train(["abc"], vocab_size=30_000)
    assert (small.vocab_size, small.settings.stopped, warned[0].filename) == (258, "no_pair_left", __file__)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Tokenizer.train((), algorithm="bytes").vocab_size == 256


SAVED_TEXTS = ["the cat sat on the mat", "that cat is that cat", "été à la plage"]
SAVED_KINDS = [
    {"algorithm": "bpe", "vocab_size": 270, "special_tokens": ["<eos>"]},
    {"algorithm": "scaffold_bpe", "vocab_size": 262, "encoder": "longest_first", "candidates": "expanded"},
    {"algorithm": "scaffold_bpe", "vocab_size": 290, "unit": "character", "demolish": "shortest"},
    {"algorithm": "bpe", "vocab_size": 40, "unit": "character", "unknown": "token", "pretokenizer": "none"},
    {"algorithm": "words", "vocab_size": 8, "unit": "character", "unknown": "token"},
    {"algorithm": "bytes"},
    {"algorithm": "bpe", "vocab_size": 280, "encoder": "dropout"},
]


@pytest.mark.parametrize("options", SAVED_KINDS, ids=str)
def test_a_loaded_tokenizer_is_the_saved_one(options: dict[str, Any], tmp_path: Path) -> None:
    tok = Tokenizer.train(SAVED_TEXTS, **options)
    tok.save(tmp_path / "first")
    loaded = Tokenizer.load(tmp_path / "first")
    assert loaded.settings == tok.settings
    assert list(loaded.vocabulary) == list(tok.vocabulary)
    assert loaded.merges == tok.merges
    for text in [*SAVED_TEXTS, "zebra ≠ 東"]:
        assert loaded.encode(text).tolist() == tok.encode(text).tolist()
    loaded.save(tmp_path / "second")
    assert files(tmp_path / "first") == files(tmp_path / "second")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    Tokenizer.train(SAVED_TEXTS, vocab_size=270, special_tokens=["<eos>"]).save(tmp_path / "tok")
    return tmp_path / "tok"


def change(file: Path, key: int | str, field: int | str | None, value: object) -> None:
    content = json.loads(file.read_text())
    if field is None:
        content[key] = value
    else:
        content[key][field] = value
    file.write_text(json.dumps(content))


def test_a_missing_directory_or_file_is_refused_by_name(saved: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere: no tokenizer directory"):
        Tokenizer.load(saved / "nowhere")
    (saved / "merges.json").unlink()
    with pytest.raises(DataError, match=r"merges.json: missing"):
        Tokenizer.load(saved)


def test_a_contradiction_in_saved_files_is_refused(saved: Path) -> None:
    for name, place, value, message in [
        ("settings.json", ("format", None), 99, "not a paribus tokenizer"),
        ("settings.json", ("encoder", None), "fastest", "encoder: 'fastest' is unknown"),
        ("settings.json", ("vocab_size", None), 5, "says 5 tokens"),
        ("vocabulary.json", (261, 1), 3, "ids of"),
        ("vocabulary.json", (261, 0), "00", "entries 0 and 260 are the same token"),
        ("vocabulary.json", (261, 0), "0001", "do not make"),
        ("vocabulary.json", (261, 4), 265, "older than its parents"),
        ("vocabulary.json", (6, 0), "", "entry 5 is a unit, but b'' is not one byte"),
        ("merges.json", (0, None), [1, 2, 9_999], "names ranks"),
    ]:
        before = (saved / name).read_text()
        change(saved / name, *place, value)  # type: ignore[misc]
        with pytest.raises(DataError, match=message):
            Tokenizer.load(saved)
        (saved / name).write_text(before)
    Tokenizer.train(SAVED_TEXTS, vocab_size=40, unit="character", unknown="refuse").save(saved)
    for unknown in ("byte_fallback", "token"):
        change(saved / "settings.json", "unknown", None, unknown)
        with pytest.raises(DataError, match=f"unknown={unknown}, but"):
            Tokenizer.load(saved)
