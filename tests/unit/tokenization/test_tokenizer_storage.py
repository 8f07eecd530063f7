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


@pytest.mark.parametrize("name", ["file", "file/below", "/proc/paribus"])
def test_a_place_that_can_be_no_directory_is_refused_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("mine")
    path = tmp_path / name
    with pytest.raises(DataError, match=rf"{path}: no directory can be made there \(.+\); name another"):
        Tokenizer.train(TEXTS, algorithm="bytes").save(path)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_truncated_file_is_refused_by_name(saved: Path) -> None:
    file = saved / "vocabulary.json"
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(DataError, match=r"vocabulary.json: unreadable JSON"):
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
        ("settings.json", ("colour", None), "red", "colour"),
        ("settings.json", ("seed", None), "red", "seed: 'red' is no whole number"),
        ("settings.json", ("seed", None), 1 << 63, "no whole number"),
        ("settings.json", ("dropout", None), None, "encoder.probability: None is no number"),
        ("settings.json", ("whole_pretokens", None), 0, "neither true nor false"),
        ("settings.json", ("special_tokens", None), [1], "must be strings"),
        ("settings.json", ("vocab_size", None), 5, "says 5 tokens"),
        ("vocabulary.json", (261, 1), 3, "ids of"),
        ("vocabulary.json", (261, 0), "00", "entries 0 and 260 are the same token"),
        ("vocabulary.json", (261, 0), "0001", "do not make"),
        ("vocabulary.json", (261, 0), "zz", "malformed"),
        ("vocabulary.json", (261, 4), 265, "older than its parents"),
        ("vocabulary.json", (261, 2), "odd", "malformed"),
        ("vocabulary.json", (6, 0), "", "entry 5 is a unit, but b'' is not one byte"),
        ("vocabulary.json", (261, None), [1, 2], "row 261 has 2 cells"),
        ("vocabulary.json", (0, None), ["bytes"], "does not begin with the row"),
        ("merges.json", (0, None), [1, 2, 9_999], "names ranks"),
        ("merges.json", (0, None), [1, 2], "malformed"),
    ],
)
def test_a_contradiction_is_refused(
    saved: Path, name: str, where: tuple[int | str, int | str | None], value: object, message: str
) -> None:
    change(saved / name, *where, value)
    with pytest.raises(DataError, match=message):
        Tokenizer.load(saved)
