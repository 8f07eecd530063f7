"""Tokenizers of `transformers` made from ours, and ours made from `tokenizer.json`."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization import Tokenizer
from paribus.tokenization.huggingface import tokenizer_json

EOD = "<|endoftext|>"
TEXTS = [
    "The capitals of the world, 1998.\n\n  indented  text isn't hard to read",
    "naïve café 東京 \t x\x1cy" + EOD + " more text",
    "",
]
KINDS = [
    {"algorithm": "bpe", "vocab_size": 300},
    {"algorithm": "bpe", "vocab_size": 300, "pretokenizer": "gpt4"},
    {"algorithm": "bpe", "vocab_size": 300, "pretokenizer": "none"},
    {"algorithm": "bpe", "vocab_size": 300, "encoder": "longest_first"},
    {"algorithm": "scaffold_bpe", "vocab_size": 290},
    {"algorithm": "bpe", "vocab_size": 360, "unit": "character"},
    {"algorithm": "bpe", "vocab_size": 90, "unit": "character", "unknown": "token"},
    {"algorithm": "bytes"},
]
WRITTEN = st.text(st.characters(max_codepoint=0x4FF) | st.sampled_from("東京😀"), max_size=40)


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_the_ids_are_identical(options: dict[str, Any]) -> None:
    tok = Tokenizer.train(TEXTS, special_tokens=[EOD, "<pad>"], **options)
    theirs = tok.to_huggingface()
    assert len(theirs) == tok.vocab_size
    assert theirs.eos_token_id == tok.eod_id

    @settings(max_examples=40, deadline=None)
    @given(WRITTEN | st.sampled_from(TEXTS))
    def check(text: str) -> None:
        ids = tok.encode(text).tolist()
        assert theirs(text)["input_ids"] == ids
        if options.get("unknown") != "token":
            assert theirs.decode(ids) == text

    check()


def test_only_merge_rank_without_scaffolds_becomes_tokenizer_json() -> None:
    tok = Tokenizer.train(TEXTS, vocab_size=300)
    assert tok.to_huggingface().is_fast
    assert not tok.with_encoder("longest_first").to_huggingface().is_fast
    with pytest.raises(ConfigurationError, match="merge-rank"):
        tokenizer_json(tok.with_encoder("longest_first"))


@pytest.mark.parametrize("pretokenizer", ["gpt2", "gpt2_digits", "gpt4", "whitespace", "none"])
def test_an_imported_tokenizer_has_the_same_ids(pretokenizer: str, tmp_path: Path) -> None:
    tok = Tokenizer.train(TEXTS, vocab_size=300, pretokenizer=pretokenizer, special_tokens=[EOD, "<pad>"])
    tok.to_huggingface().save_pretrained(tmp_path)
    imported = Tokenizer.from_huggingface(tmp_path)
    assert imported.merges == tok.merges
    assert imported.special_tokens == tok.special_tokens
    assert imported.settings.pretokenizer == pretokenizer
    for text in TEXTS:
        assert imported.encode(text).tolist() == tok.encode(text).tolist()
    imported.save(tmp_path / "ours")
    assert Tokenizer.load(tmp_path / "ours").encode(TEXTS[0]).tolist() == tok.encode(TEXTS[0]).tolist()


def test_ids_of_another_order_survive_the_import(tmp_path: Path) -> None:
    tok = Tokenizer.train(TEXTS, vocab_size=300, pretokenizer="gpt2", special_tokens=[EOD])
    described = json.loads(tokenizer_json(tok))
    vocab = described["model"]["vocab"]
    described["model"]["vocab"] = {name: 299 - identity for name, identity in vocab.items()}
    described["added_tokens"][0]["id"] = 0
    (tmp_path / "tokenizer.json").write_text(json.dumps(described))
    imported = Tokenizer.from_huggingface(tmp_path / "tokenizer.json")
    assert imported.encode(TEXTS[0]).tolist() == [299 - identity for identity in tok.encode(TEXTS[0]).tolist()]
    assert imported.eod_id == 0
    assert imported.to_huggingface()(TEXTS[1])["input_ids"] == imported.encode(TEXTS[1]).tolist()


def test_a_tokenizer_that_cannot_be_the_same_is_refused_with_every_reason(tmp_path: Path) -> None:
    described = json.loads(tokenizer_json(Tokenizer.train(TEXTS, vocab_size=300)))
    file = tmp_path / "tokenizer.json"
    file.write_text(
        json.dumps(described | {"normalizer": {"type": "NFC"}, "model": described["model"] | {"dropout": 0.1}})
    )
    with pytest.raises(ConfigurationError, match=r"dropout=0.1, normalizer 'NFC'"):
        Tokenizer.from_huggingface(file)
    file.write_text(json.dumps(described | {"pre_tokenizer": {"type": "Whitespace"}}))
    with pytest.raises(ConfigurationError, match=r"pre_tokenizer is none of"):
        Tokenizer.from_huggingface(file)
    file.write_text("{")
    with pytest.raises(DataError, match=r"tokenizer.json"):
        Tokenizer.from_huggingface(file)
    file.write_text(json.dumps({"version": "1.0"}))
    with pytest.raises(DataError, match=r"malformed"):
        Tokenizer.from_huggingface(file)
