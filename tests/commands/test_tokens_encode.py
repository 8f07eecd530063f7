"""`paribus tokens encode TOKENIZER`: ids, tokens or statistics of standard input."""

import io
import json
import sys
from pathlib import Path

import pytest

from paribus.commands.tokens_encode import encode_command
from paribus.tokenization import Tokenizer


class Input(io.TextIOWrapper):
    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content), encoding="utf-8")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    Tokenizer.train(["the cat sat on the mat"] * 3, vocab_size=264).save(tmp_path / "tokenizer")
    return tmp_path / "tokenizer"


def run(monkeypatch: pytest.MonkeyPatch, content: bytes, *argv: str) -> int:
    monkeypatch.setattr(sys, "stdin", Input(content))
    return encode_command(list(argv))


def test_ids_tokens_and_statistics_are_written(
    saved: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, b"the cat\n", str(saved)) == 0
    expected = Tokenizer.load(saved).encode("the cat\n").tolist()
    assert capsys.readouterr().out == " ".join(map(str, expected)) + "\n"
    artefact = saved.parent
    assert run(monkeypatch, "é\n".encode(), str(artefact), "output=tokens", "encoder=longest_first") == 0
    assert capsys.readouterr().out == '\\xc3\n\\xa9\n"\\n"\n'
    run(monkeypatch, b"the cat", str(saved), "output=statistics")
    assert json.loads(capsys.readouterr().out)["bytes"] == 7


def test_every_setting_of_an_encoder_is_an_option(
    saved: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tok = Tokenizer.load(saved)
    options = ["encoder=dropout", "probability=0.5", "seed=3"]
    run(monkeypatch, b"the cat sat on the mat", str(saved), *options)
    expected = tok.with_encoder("dropout", dropout=0.5, seed=3).encode("the cat sat on the mat")
    assert capsys.readouterr().out.split() == [str(identity) for identity in expected]


def test_a_hugging_face_directory_is_read_as_it_is(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Tokenizer.load(saved).to_huggingface().save_pretrained(tmp_path / "exported")
    assert run(monkeypatch, b"the mat", str(tmp_path / "exported"), "encoder=longest_first") == 0
    expected = Tokenizer.load(saved).with_encoder("longest_first").encode("the mat")
    assert capsys.readouterr().out.split() == [str(identity) for identity in expected]
