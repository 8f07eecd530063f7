"""Tokenizers of `transformers` made from ours: identical ids, for every kind, also from their saved directory."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from transformers import AddedToken, AutoTokenizer

from paribus.errors import ConfigurationError
from paribus.tokenization import Tokenizer
from paribus.tokenization.export import ParibusTokenizer, disagreement, obstacles, tokenizer_json
from support.exported_texts import EOS, MARKED_UP, real_texts
from support.real_data import RealData

WRITTEN = st.text(st.characters(max_codepoint=0x4FF) | st.sampled_from("東京😀# <>unk"), max_size=40)
FAST: dict[str, dict[str, Any]] = {
    "bpe": {},
    "gpt2": {"pretokenizer": "gpt2"},
    "gpt4": {"pretokenizer": "gpt4"},
    "whitespace": {"pretokenizer": "whitespace"},
    "none": {"pretokenizer": "none"},
    "stripped": {"pretokenizer": "stripped"},
    "characters": {"unit": "character", "vocab_size": 1400, "pretokenizer": "gpt2"},
    "unknown": {"unit": "character", "unknown": "token", "vocab_size": 1000},
    "wordpiece": {"algorithm": "wordpiece"},
    "stripped_wordpiece": {"algorithm": "wordpiece", "pretokenizer": "stripped"},
    "bert": {"algorithm": "wordpiece", "pretokenizer": "stripped", "unit": "character", "unknown": "token"},
    "from_the_left": {"encoder": "left_to_right", "pretokenizer": "gpt4"},
    "bytes": {"algorithm": "bytes"},
}
PYTHON: dict[str, dict[str, Any]] = {
    "longest_first": {"encoder": "longest_first"},
    "fewest": {"encoder": "fewest", "pretokenizer": "none"},
    "dropout": {"encoder": "dropout"},
    "scaffold": {"algorithm": "scaffold_bpe"},
    "scaffold_longest": {"algorithm": "scaffold_bpe", "encoder": "longest_first", "candidates": "expanded"},
    "unigram": {"algorithm": "unigram"},
    "stripped_unigram": {"algorithm": "unigram", "pretokenizer": "stripped", "unit": "character", "unknown": "token"},
    "fallback": {"pretokenizer": "stripped", "unit": "character", "unknown": "byte_fallback", "vocab_size": 1800},
    "characters_longest": {"encoder": "longest_first", "unit": "character", "vocab_size": 1400},
    "spans": {"pretokenizer": "spans", "encoder": "longest_first"},
}


ADDED = [
    AddedToken("<x>", normalized=False),
    AddedToken("<x>>", normalized=False),
    AddedToken("left", lstrip=True),
    AddedToken("right", rstrip=True),
    AddedToken("<|user|>", special=True, lstrip=True, rstrip=True),
    AddedToken("東京"),
]


@pytest.fixture(scope="module")
def texts(real_data: RealData) -> list[str]:
    return real_texts(real_data)


@pytest.fixture(scope="module")
def toks(texts: list[str]) -> dict[str, Tokenizer]:
    """A tokenizer of every kind; characters that occur only in the last language are outside the alphabets."""
    return {name: train(texts, **options) for name, options in (FAST | PYTHON).items()}


def train(texts: list[str], **options: Any) -> Tokenizer:
    seen = [text for text in texts if text != MARKED_UP]
    encoder = options.pop("encoder", None)
    candidates = options.pop("candidates", "normal")
    tok = Tokenizer.train(seen[:4] + seen[5:], **{"vocab_size": 1200, "special_tokens": [EOS, "<pad>"]} | options)
    return tok if encoder is None else tok.with_encoder(encoder, candidates=candidates)


@pytest.mark.parametrize("name", FAST | PYTHON)
def test_ids_text_and_sizes_are_the_same(name: str, toks: dict[str, Tokenizer], texts: list[str]) -> None:
    tok = toks[name]
    exported = tok.to_huggingface(split_special_tokens=True)
    assert exported.is_fast == (name in FAST), obstacles(tok)
    assert len(exported) == tok.vocab_size
    assert (exported.eos_token_id, exported.convert_tokens_to_ids("<pad>")) == (tok.eos_id, tok.special_tokens["<pad>"])
    ids = [tok.encode(text).tolist() for text in texts]
    assert exported(texts)["input_ids"] == ids
    for text, expected in zip(texts, ids, strict=True):
        assert exported.encode(text, add_special_tokens=False) == expected
        assert exported.convert_tokens_to_ids(exported.tokenize(text)) == expected
        if tok.settings.unknown != "token" or tok.settings.unit == "byte":
            assert exported.decode(expected) == tok.decode(expected)
        if not tok.settings.lossy:
            assert exported.decode(expected) == text
    assert exported.decode([tok.eos_id, *ids[3], tok.eos_id], skip_special_tokens=True) == exported.decode(ids[3])


@pytest.mark.parametrize("name", ["bpe", "stripped", "bert", "characters", "from_the_left", "longest_first"])
def test_ids_are_the_same_on_any_text(name: str, toks: dict[str, Tokenizer]) -> None:
    tok = toks[name]
    exported = tok.to_huggingface()

    @given(WRITTEN)
    def check(text: str) -> None:
        assert exported(text)["input_ids"] == tok.encode(text).tolist()

    check()


READ_BACK = """
import json, sys
{imports}
from transformers import AddedToken, AutoTokenizer
texts = json.loads(sys.stdin.read())
answers = {{}}
for name in sys.argv[2:]:
    tok = AutoTokenizer.from_pretrained(f"{{sys.argv[1]}}/{{name}}")
    ids = tok(texts)["input_ids"]
    answers[name] = [ids, [tok.decode(row) for row in ids], len(tok), tok.eos_token_id]
assert ("paribus" in sys.modules) == {expected}
print(json.dumps(answers))
"""


@pytest.mark.parametrize(("names", "imports"), [(list(FAST), ""), (list(PYTHON), "paribus.tokenization.export")])
def test_a_fresh_process_reads_the_saved_directories(
    names: list[str], imports: str, toks: dict[str, Tokenizer], texts: list[str], tmp_path: Path
) -> None:
    for name in names:
        toks[name].to_huggingface(split_special_tokens=True).save_pretrained(tmp_path / name)
        assert (tmp_path / name / "tokenizer.json").exists() == (name in FAST)
    script = READ_BACK.format(imports=f"import {imports}" if imports else "", expected=bool(imports))
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", script, str(tmp_path), *names]
    output = subprocess.check_output(command, input=json.dumps(texts), env=environment, text=True)
    for name, (ids, decoded, size, eos) in json.loads(output.splitlines()[-1]).items():
        tok = toks[name]
        assert ids == [tok.encode(text).tolist() for text in texts]
        assert (size, eos) == (tok.vocab_size, tok.eos_id)
        if not tok.settings.lossy:
            assert decoded == texts


def test_the_directory_of_a_model_is_read_and_no_other_tokenizer_left_in_it(
    toks: dict[str, Tokenizer], texts: list[str], tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}')
    for name in ("longest_first", "bpe"):
        toks[name].to_huggingface().save_pretrained(tmp_path)
        loaded = AutoTokenizer.from_pretrained(tmp_path)
        assert isinstance(loaded, ParibusTokenizer) == (name == "longest_first")
        assert loaded(texts[0])["input_ids"] == toks[name].encode(texts[0]).tolist()
    with pytest.raises(ConfigurationError, match=r"tokenizer.json is of another tokenizer"):
        toks["longest_first"].to_huggingface().save_pretrained(tmp_path)


@pytest.mark.parametrize("name", ["bpe", "stripped", "bert", "scaffold"])
def test_special_tokens_in_text_are_special_unless_they_are_to_be_split(name: str, toks: dict[str, Tokenizer]) -> None:
    tok, text = toks[name], f"one {EOS}two<pad>"
    parts = [*tok.encode("one ").tolist(), tok.eos_id, *tok.encode("two").tolist(), tok.special_tokens["<pad>"]]
    for exported in (ParibusTokenizer(tok, pad_token="<pad>"), tok.to_huggingface(pad_token="<pad>")):
        assert exported(text)["input_ids"] == parts
        assert exported(text, split_special_tokens=True)["input_ids"] == tok.encode(text).tolist() != parts


def test_added_tokens_are_saved_and_decoded(toks: dict[str, Tokenizer], tmp_path: Path) -> None:
    text = f"<s>one left squa <x>> right  <|user|> 東京é{EOS}"
    for name, decoded in {
        "longest_first": f"<s>oneleft squa <x>> right<|user|>東京é{EOS}",
        "stripped": f"<s> one left squa <x>> right <|user|> 東京 é {EOS}",
    }.items():
        exported = ParibusTokenizer(toks[name], pad_token="<pad>")
        exported.add_tokens(ADDED)
        exported.add_special_tokens({"bos_token": "<s>"})
        exported.save_pretrained(tmp_path / name)
        loaded = AutoTokenizer.from_pretrained(tmp_path / name)
        ids = exported(text)["input_ids"]
        assert loaded(text)["input_ids"] == ids
        assert {loaded.bos_token_id, loaded.convert_tokens_to_ids("<x>>"), loaded.eos_token_id} < set(ids)
        assert loaded.decode(ids) == decoded
        assert len(loaded) == len(exported) == toks[name].vocab_size + len(ADDED) + 1


def test_a_tokenizer_json_that_cannot_be_the_same_is_refused(toks: dict[str, Tokenizer]) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot describe this tokenizer: encoder=longest_first, scaffolds$"):
        tokenizer_json(toks["scaffold_longest"])
    assert obstacles(toks["fallback"]) == ["byte fallback with continuation marks"]
    assert obstacles(toks["spans"].with_encoder("merge_rank")) == ["pretokenizer=spans"]
    description = json.loads(tokenizer_json(toks["bpe"]))
    assert disagreement(toks["bpe"], tokenizers.Tokenizer.from_str(json.dumps(description))) is None
    description["model"]["merges"].pop(20)
    assert disagreement(toks["bpe"], tokenizers.Tokenizer.from_str(json.dumps(description))) is not None


def test_text_that_spells_the_unknown_token_stays_text() -> None:
    options: dict[str, Any] = {"unit": "character", "unknown": "token", "pretokenizer": "stripped"}
    for encoder in ("merge_rank", "left_to_right"):
        tok = Tokenizer.train(["an <unk> word, <unk>s"] * 9, vocab_size=60, **options).with_encoder(encoder)
        assert tok.tokenize("<unk>") == [b"<unk>"]
        exported = tok.to_huggingface(split_special_tokens=True)
        assert exported.is_fast
        for text in ("<unk> an", "<unk>s", "a 東 word", "東"):
            assert exported(text)["input_ids"] == tok.encode(text).tolist()
        assert exported("東")["input_ids"] == [exported.unk_token_id]
