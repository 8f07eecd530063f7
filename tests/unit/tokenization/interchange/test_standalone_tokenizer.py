"""The file of Python that loads our tokenizers where transformers is and paribus is not."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization import Tokenizer
from paribus.tokenization.interchange.huggingface import ParibusTokenizer
from paribus.tokenization.interchange.standalone import add_code as module
from paribus.tokenization.interchange.standalone.add_code import add_code
from paribus.tokenization.interchange.standalone.tokenization_paribus import ParibusTokenizer as Standalone
from support.exported_texts import EOS, MARKED_UP, real_texts
from support.real_data import RealData

CHARACTERS: dict[str, Any] = {"unit": "character", "vocab_size": 1400}
KINDS: dict[str, dict[str, Any]] = {
    "scaffold": {"algorithm": "scaffold_bpe"},
    "scaffold_longest": {"algorithm": "scaffold_bpe", "encoder": "longest_first", "candidates": "expanded"},
    "scaffold_shortest": {"algorithm": "scaffold_bpe", "demolish": "shortest", "pretokenizer": "gpt2"},
    "longest_first": {"encoder": "longest_first", "pretokenizer": "gpt4"},
    "longest_characters": {"encoder": "longest_first", "pretokenizer": "whitespace"} | CHARACTERS,
    "fewest": {"encoder": "fewest", "pretokenizer": "punctuation"},
    "unigram": {"algorithm": "unigram"} | CHARACTERS,
    "stripped_unigram": {"algorithm": "unigram", "pretokenizer": "stripped", "unit": "character", "unknown": "token"},
    "marked_fallback": {"pretokenizer": "stripped", "unknown": "byte_fallback"} | CHARACTERS | {"vocab_size": 1800},
    "left_to_right": {"encoder": "left_to_right", "pretokenizer": "none", "unit": "character", "unknown": "token"},
    "words": {"algorithm": "words", "unit": "character", "unknown": "token", "pretokenizer": "punctuation"},
    "words_and_bytes": {"algorithm": "words"},
    "spans": {"pretokenizer": "spans", "encoder": "longest_first"},
    "merges_over_spans": {"pretokenizer": "spans"},
}
ODD = ["it'ſ 'ſ I'LL 'Ve\u2028x", "a\r\n \n\r\n  b \u3000\u00a0 c", "١٢٣456789 ½ⅷ 𝟘x", "the hidden <unk> \ufdd0"]
WRITTEN = st.text(st.characters(max_codepoint=0x4FF) | st.sampled_from("東京😀# ſ\r\n'sLL𐐀<>unk"), max_size=40)


@pytest.fixture(scope="module")
def texts(real_data: RealData) -> list[str]:
    return [*real_texts(real_data), *real_data.declaration_texts()[:3], *ODD]


@pytest.fixture(scope="module")
def made(texts: list[str]) -> dict[str, Tokenizer]:
    """A tokenizer of every kind; characters that occur only in one language are outside the alphabets."""
    seen = [text for number, text in enumerate(texts) if number != 4 and text != MARKED_UP]
    special = {"vocab_size": 1200, "special_tokens": [EOS, "<pad>"]}
    return {name: Tokenizer.train(seen, **special | options) for name, options in KINDS.items()}


def saved(tok: Tokenizer, directory: Path) -> Path:
    ParibusTokenizer(tok, pad_token="<pad>", model_max_length=128).save_pretrained(directory)
    add_code(directory)
    return directory


ALONE = """
import json, sys
sys.modules["paribus"] = None  # importing it fails
from transformers import AutoTokenizer
texts = json.loads(sys.stdin.read())
answers = {}
for name in sys.argv[2:]:
    tok = AutoTokenizer.from_pretrained(f"{sys.argv[1]}/{name}", trust_remote_code=True)
    tok.save_pretrained(f"{sys.argv[1]}/again/{name}")
    for directory in (name, f"again/{name}"):
        tok = AutoTokenizer.from_pretrained(f"{sys.argv[1]}/{directory}", trust_remote_code=True)
        ids = tok(texts, split_special_tokens=True)["input_ids"]
        spelled = tok("one<|endoftext|>", "two")["input_ids"]
        padded = tok(["one", "two or more"], padding=True)["attention_mask"]
        decoded = [tok.decode(row) for row in ids]
        answers[directory] = [ids, decoded, spelled, padded, tok.get_vocab(), tok.model_max_length, tok.eos_token_id]
print(json.dumps(answers))
"""


@pytest.mark.slow
def test_a_process_without_paribus_has_its_ids(made: dict[str, Tokenizer], texts: list[str], tmp_path: Path) -> None:
    for name, tok in made.items():
        saved(tok, tmp_path / name)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    answered = subprocess.run(
        [sys.executable, "-c", ALONE, str(tmp_path), *made],
        input=json.dumps(texts),
        env=environment | {"HF_HUB_OFFLINE": "1", "HF_MODULES_CACHE": str(tmp_path / "modules")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    answers = json.loads(answered.stdout.splitlines()[-1])
    assert len(answers) == 2 * len(made)
    for directory, (ids, decoded, spelled, padded, vocabulary, longest, eos) in answers.items():
        tok = made[Path(directory).name]
        ours = ParibusTokenizer(tok, pad_token="<pad>")
        assert ids == [tok.encode(text).tolist() for text in texts]
        assert decoded == [ours.decode(row) for row in ids]
        assert (spelled, padded) == (
            ours("one<|endoftext|>", "two")["input_ids"],
            ours(["one", "two or more"], padding=True)["attention_mask"],
        )
        assert (vocabulary, longest, eos) == (ours.get_vocab(), 128, tok.eos_id)


@pytest.mark.parametrize("name", ["scaffold_longest", "longest_first", "marked_fallback", "left_to_right", "unigram"])
def test_ids_are_the_same_on_any_text(name: str, made: dict[str, Tokenizer], tmp_path: Path) -> None:
    standalone = Standalone.from_pretrained(saved(made[name], tmp_path))

    @settings(max_examples=80, deadline=None)
    @given(WRITTEN)
    def check(text: str) -> None:
        assert standalone(text, split_special_tokens=True)["input_ids"] == made[name].encode(text).tolist()

    check()


def test_a_character_outside_the_alphabet_is_refused_by_name(tmp_path: Path) -> None:
    tok = Tokenizer.train(["a city"] * 9, vocab_size=12, unit="character", special_tokens=[EOS, "<pad>"])
    assert tok.settings.unknown == "refuse"
    standalone = Standalone.from_pretrained(saved(tok.with_encoder("longest_first"), tmp_path))
    assert standalone("city")["input_ids"] == tok.with_encoder("longest_first").encode("city").tolist()
    with pytest.raises(ValueError, match=r"character '東' \(U\+6771\) is not in the tokenizer's alphabet"):
        standalone("a 東")


def test_what_paribus_reads_it_saves_without_naming_code_that_it_does_not_write(
    made: dict[str, Tokenizer], tmp_path: Path
) -> None:
    read = AutoTokenizer.from_pretrained(saved(made["scaffold"], tmp_path / "code"))
    assert isinstance(read, ParibusTokenizer)
    read.save_pretrained(tmp_path / "plain")
    assert "auto_map" not in (tmp_path / "plain" / "tokenizer_config.json").read_text(encoding="utf-8")
    assert list((tmp_path / "plain").rglob("*.py")) == []


def test_what_the_file_cannot_say_is_refused_before_anything_is_written(
    made: dict[str, Tokenizer], tmp_path: Path
) -> None:
    tok = Tokenizer.train(["a city"] * 9, vocab_size=262, special_tokens=[EOS, "<pad>"])
    ParibusTokenizer(tok.with_encoder("dropout")).save_pretrained(tmp_path)
    with pytest.raises(ConfigurationError, match=r"does without encoder=dropout, .*; read it with the package paribus"):
        add_code(tmp_path)
    assert list(tmp_path.rglob("*.py")) == []


def test_the_file_is_compared_with_the_tokenizer(
    made: dict[str, Tokenizer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = saved(made["scaffold"], tmp_path / "other")
    shutil.copytree(other, tmp_path / "mine")
    made["longest_first"].save(tmp_path / "mine" / "tokenizer")
    loaded = module._loaded
    monkeypatch.setattr(module, "_loaded", lambda _: loaded(other))
    with pytest.raises(DataError, match=r"tokenization_paribus.py gives other ids for .All human beings"):
        add_code(tmp_path / "mine")


def test_offsets_are_refused(made: dict[str, Tokenizer], tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match="knows no offsets"):
        Standalone.from_pretrained(saved(made["longest_first"], tmp_path))("a", return_offsets_mapping=True)
