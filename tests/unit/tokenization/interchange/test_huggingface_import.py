"""Tokenizers read from `tokenizer.json`: the same ids, or a refusal that names every reason."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import regex
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization import Tokenizer
from paribus.tokenization.export import tokenizer_json
from paribus.tokenization.huggingface import PRETOKENIZER_OF_PATTERN
from paribus.tokenization.pretokenize import PATTERNS
from support.exported_texts import EOS, real_texts
from support.real_data import RealData

QWEN = PATTERNS["gpt4"].replace(r"\p{N}{1,3}", r"\p{N}")


@pytest.fixture(scope="module")
def texts(real_data: RealData) -> list[str]:
    return real_texts(real_data)


@pytest.fixture(scope="module")
def tok(texts: list[str]) -> Tokenizer:
    return Tokenizer.train(texts, vocab_size=1000, pretokenizer="gpt2", special_tokens=[EOS, "<pad>"])


@pytest.fixture
def described(tok: Tokenizer) -> dict[str, Any]:
    return json.loads(tokenizer_json(tok))  # type: ignore[no-any-return]


def write(described: dict[str, Any], path: Path) -> Path:
    file = path / "tokenizer.json"
    file.write_text(json.dumps(described), encoding="utf-8")
    return file


def assert_same_ids(imported: Tokenizer, file: Path, texts: list[str]) -> None:
    theirs = tokenizers.Tokenizer.from_file(str(file))
    theirs.encode_special_tokens = True
    for text in texts:
        assert imported.encode(text).tolist() == theirs.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("pretokenizer", ["gpt2", "gpt2_digits", "gpt4", "whitespace", "none"])
def test_an_imported_tokenizer_has_the_same_ids(pretokenizer: str, texts: list[str], tmp_path: Path) -> None:
    tok = Tokenizer.train(texts, vocab_size=700, pretokenizer=pretokenizer, special_tokens=["<pad>", EOS])
    tok.to_huggingface().save_pretrained(tmp_path)
    imported = Tokenizer.from_huggingface(tmp_path)
    assert imported.merges == tok.merges
    assert imported.special_tokens == tok.special_tokens
    assert (imported.eos_id, imported.settings.pretokenizer) == (tok.eos_id, pretokenizer)
    assert_same_ids(imported, tmp_path / "tokenizer.json", texts)
    for encoder in ("longest_first", "left_to_right", "fewest"):
        for text in texts:
            expected = tok.with_encoder(encoder).encode(text).tolist()
            assert imported.with_encoder(encoder).encode(text).tolist() == expected
    imported.save(tmp_path / "ours")
    assert Tokenizer.load(tmp_path / "ours").encode(texts[0]).tolist() == tok.encode(texts[0]).tolist()


def test_gpt2s_file_is_read_as_it_is(described: dict[str, Any], texts: list[str], tmp_path: Path) -> None:
    """No model type, merges as strings, the special token in the vocabulary, a prefix-space flag and no use_regex."""
    model = described["model"]
    del model["type"]
    model |= {"unk_token": "", "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": False}
    model["merges"] = [" ".join(pair) for pair in model["merges"]]
    model["vocab"][EOS] = described["added_tokens"][0]["id"]
    described["pre_tokenizer"] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    file = write(described, tmp_path)
    assert_same_ids(Tokenizer.from_huggingface(file), file, texts)


def test_llama3s_file_is_read_as_it_is(texts: list[str], tmp_path: Path) -> None:
    """Its tokens need not be reachable by merges: `ignore_merges` takes a pre-token that is a token whole."""
    trained = Tokenizer.train(texts, vocab_size=900, pretokenizer="gpt4", special_tokens=["<|begin_of_text|>", EOS])
    described = json.loads(tokenizer_json(trained))
    described["model"]["ignore_merges"] = True
    described["model"]["merges"] = [pair for pair in described["model"]["merges"] if len("".join(pair)) % 3]
    described["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": EOS, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {EOS: {"id": EOS, "ids": [899], "tokens": [EOS]}},
    }
    file = write(described, tmp_path)
    imported = Tokenizer.from_huggingface(file)
    assert_same_ids(imported, file, texts)
    assert imported.to_huggingface()(texts[0])["input_ids"] == imported.encode(texts[0]).tolist()
    described["model"]["ignore_merges"] = False
    without = Tokenizer.from_huggingface(write(described, tmp_path))
    assert_same_ids(without, file, texts)
    assert any(without.encode(text).tolist() != imported.encode(text).tolist() for text in texts)
    for text in texts:
        longest = imported.with_encoder("longest_first").encode(text).tolist()
        assert without.with_encoder("longest_first").encode(text).tolist() == longest


def test_ids_of_another_order_survive_the_import(tok: Tokenizer, texts: list[str], tmp_path: Path) -> None:
    described = json.loads(tokenizer_json(tok))
    last = tok.vocab_size - 1
    described["model"]["vocab"] |= {token["content"]: token["id"] for token in described["added_tokens"]}
    vocab = described["model"]["vocab"]
    described["model"]["vocab"] = {name: last - identity for name, identity in vocab.items()}
    for token in described["added_tokens"]:
        token["id"] = last - token["id"]
    file = write(described, tmp_path)
    imported = Tokenizer.from_huggingface(file)
    assert imported.special_tokens == {"<pad>": 0, EOS: 1}
    assert_same_ids(imported, file, texts)
    for text in texts:
        assert imported.to_huggingface(split_special_tokens=True)(text)["input_ids"] == [
            last - identity for identity in tok.encode(text)
        ]


SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}


def sentencepiece(described: dict[str, Any]) -> None:
    prepend = {"type": "Prepend", "prepend": "▁"}
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    described["normalizer"] = {"type": "Sequence", "normalizers": [prepend, replace]}
    described["model"]["byte_fallback"] = True
    described["pre_tokenizer"] = None


def patterned(pattern: str) -> Callable[[dict[str, Any]], None]:
    split = SPLIT | {"pattern": {"Regex": pattern}}
    return lambda described: described.update(pre_tokenizer={"type": "Sequence", "pretokenizers": [split, BYTES]})


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "dropout": (lambda it: it["model"].update(dropout=0.1), r"model\.dropout=0\.1"),
    "normalizer": (lambda it: it.update(normalizer={"type": "NFC"}), "normalizer 'NFC'"),
    "wordpiece": (lambda it: it["model"].update(type="WordPiece"), r"model 'WordPiece' \(only BPE, or WordPiece"),
    "unigram": (lambda it: it["model"].update(type="Unigram"), r"model 'Unigram' \(only BPE, or WordPiece"),
    "version": (lambda it: it.update(version="2.0"), r"version '2\.0' \(only 1\.0\)"),
    "suffix": (lambda it: it["model"].update(end_of_word_suffix="</w>"), "end_of_word_suffix='</w>'"),
    "whitespace": (lambda it: it.update(pre_tokenizer={"type": "Whitespace"}), "pre_tokenizer 'Whitespace'"),
    "prefix": (lambda it: it["pre_tokenizer"].update(add_prefix_space=True), "without prefix space"),
    "digits": (
        lambda it: it.update(pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "Digits"}, BYTES]}),
        "pre_tokenizer 'Digits' and 'ByteLevel'",
    ),
    "qwen": (patterned(QWEN), regex.escape(QWEN)),
    "llama2": (sentencepiece, "byte_fallback=True; normalizer 'Prepend' and 'Replace'; pre_tokenizer none"),
    "added": (lambda it: it["added_tokens"][0].update(special=False), "1 added tokens that are not special"),
    "characters": (
        lambda it: it["model"]["vocab"].update({"東": 998}),
        "'東' is not written in the characters of bytes",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_cannot_be_the_same_is_refused_by_name(name: str, described: dict[str, Any], tmp_path: Path) -> None:
    change, message = CHANGES[name]
    change(described)
    with pytest.raises(ConfigurationError, match=rf"tokenizer.json: cannot be the same tokenizer here: .*{message}"):
        Tokenizer.from_huggingface(write(described, tmp_path))


BREAKS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "hole": (lambda it: it["model"]["vocab"].pop("Ġthe"), r"1 ids up to 999 are of no token: \d+; "),
    "byte": (lambda it: it["model"]["vocab"].pop("a"), "1 bytes are no tokens, such as 0x61"),
    "shared": (lambda it: it["model"]["vocab"].update(Ġthe=5), "id 5 is of both"),
    "merge": (
        lambda it: it["model"]["merges"].append(["Ġthe", "Ġthe"]),
        "a merge names b' the the', which is no token",
    ),
    "again": (lambda it: it["model"]["merges"].append(it["model"]["merges"][3]), "are merged twice"),
    "special": (lambda it: it["added_tokens"].append(it["added_tokens"][0]), "an added token is there twice"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_file_is_refused_by_name(name: str, described: dict[str, Any], tmp_path: Path) -> None:
    change, message = BREAKS[name]
    if name == "hole":
        described["model"]["merges"] = []
    change(described)
    with pytest.raises(DataError, match=rf"tokenizer.json: .*{message}"):
        Tokenizer.from_huggingface(write(described, tmp_path))


@pytest.mark.parametrize("pattern", sorted(PRETOKENIZER_OF_PATTERN))
def test_every_pattern_that_is_taken_for_ours_cuts_like_ours(pattern: str) -> None:
    ours, theirs = regex.compile(PATTERNS[PRETOKENIZER_OF_PATTERN[pattern]]), regex.compile(pattern)

    @settings(max_examples=300, deadline=None)
    @given(st.text(st.sampled_from("aZsStlvedm' \t\n\r\v 19٣!.-é中ſK\u00a0\u2028\x1c") | st.characters(), max_size=12))
    def check(text: str) -> None:
        assert theirs.findall(text) == ours.findall(text)

    check()
