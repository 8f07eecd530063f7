"""A saved tokenizer is self-contained, deterministic, and refused when it is broken."""

import json
from pathlib import Path
from typing import Any

import pytest

from paribus.errors import DataError
from paribus.tokenization import Tokenizer

TEXTS = ["the cat sat on the mat", "that cat is that cat", "été à la plage"]
KINDS = [
    {"algorithm": "bpe", "vocab_size": 270, "special_tokens": ["<eos>"]},
    {"algorithm": "scaffold_bpe", "vocab_size": 262, "encoder": "longest_first", "candidates": "expanded"},
    {"algorithm": "scaffold_bpe", "vocab_size": 290, "unit": "character", "demolish": "shortest"},
    {"algorithm": "bpe", "vocab_size": 40, "unit": "character", "unknown": "token", "pretokenizer": "none"},
    {"algorithm": "bytes"},
    {"algorithm": "bpe", "vocab_size": 280, "encoder": "dropout"},
]


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_a_loaded_tokenizer_is_the_saved_one(options: dict[str, Any], tmp_path: Path) -> None:
    tok = Tokenizer.train(TEXTS, **options)
    tok.save(tmp_path / "first")
    loaded = Tokenizer.load(tmp_path / "first")
    assert loaded.settings == tok.settings
    assert list(loaded.vocabulary) == list(tok.vocabulary)
    assert loaded.merges == tok.merges
    for text in [*TEXTS, "zebra ≠ 東"]:
        assert loaded.encode(text).tolist() == tok.encode(text).tolist()
    loaded.save(tmp_path / "second")
    for file in sorted((tmp_path / "first").iterdir()):
        assert file.read_bytes() == (tmp_path / "second" / file.name).read_bytes()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    Tokenizer.train(TEXTS, vocab_size=270, special_tokens=["<eos>"]).save(tmp_path / "tok")
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


@pytest.mark.parametrize("unknown", ["byte_fallback", "token"])
def test_a_vocabulary_without_what_unknown_characters_become_is_refused(unknown: str, tmp_path: Path) -> None:
    Tokenizer.train(TEXTS, vocab_size=40, unit="character", unknown="refuse").save(tmp_path / "tok")
    change(tmp_path / "tok" / "settings.json", "unknown", None, unknown)
    with pytest.raises(DataError, match=f"unknown={unknown}, but"):
        Tokenizer.load(tmp_path / "tok")


@pytest.mark.parametrize(
    ("name", "where", "value", "message"),
    [
        ("settings.json", ("format", None), 99, "not a paribus tokenizer"),
        ("settings.json", ("encoder", None), "fastest", "encoder: 'fastest' is unknown"),
        ("settings.json", ("vocab_size", None), 5, "says 5 tokens"),
        ("vocabulary.json", (261, 1), 3, "ids of"),
        ("vocabulary.json", (261, 0), "00", "entries 0 and 260 are the same token"),
        ("vocabulary.json", (261, 0), "0001", "do not make"),
        ("vocabulary.json", (261, 4), 265, "older than its parents"),
        ("vocabulary.json", (6, 0), "", "entry 5 is a unit, but b'' is not one byte"),
        ("merges.json", (0, None), [1, 2, 9_999], "names ranks"),
    ],
)
def test_a_contradiction_is_refused(
    saved: Path, name: str, where: tuple[int | str, int | str | None], value: object, message: str
) -> None:
    change(saved / name, *where, value)
    with pytest.raises(DataError, match=message):
        Tokenizer.load(saved)
