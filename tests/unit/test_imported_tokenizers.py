"""The benchmark of imported tokenizers, on models that are trained here."""

import base64
import importlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from sentencepiece.sentencepiece_model_pb2 import ModelProto

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
TEXTS = [
    "Capitals of  the world\u2028ﬁne, größer 中文",
    " capitals <s> of <extra_id_0> the capital",
    "",
    "worldly\tcap",
]


@pytest.fixture(name="benchmark")
def _benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("imported_tokenizers")


@pytest.fixture(name="model")
def _model() -> ModelProto:
    """A Unigram model with T5's special tokens."""
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["capitals of the world", "the capital is fine", "a world of capitals", "größer"] * 8),
        model_writer=made, vocab_size=45, model_type="unigram", pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    model = ModelProto()
    model.ParseFromString(made.getvalue())
    return model


def as_json(model: ModelProto, path: Path) -> Path:
    """What transformers writes of such a model."""
    later = [f"<extra_id_{number}>" for number in (1, 0)]
    pieces = [[piece.piece, piece.score] for piece in model.pieces] + [[name, 0.0] for name in later]
    characters = base64.b64encode(model.normalizer_spec.precompiled_charsmap).decode()
    whole = {
        "added_tokens": [{"content": name, "special": True} for name in ("<pad>", "</s>", "<unk>", *later)],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [{"type": "Precompiled", "precompiled_charsmap": characters}],
        },
        "model": {"type": "Unigram", "unk_id": 2, "vocab": pieces},
    }
    path.write_text(json.dumps(whole))
    return path


def test_a_model_put_together_is_the_one_it_was_made_of(benchmark: Any, model: ModelProto, tmp_path: Path) -> None:
    (tmp_path / "t5").mkdir()
    path = as_json(model, tmp_path / "t5" / "tokenizer.json")
    made = ModelProto()
    made.ParseFromString(benchmark._put_together(path, tmp_path).read_bytes())
    assert [(piece.piece, piece.score, piece.type) for piece in made.pieces] == [
        (piece.piece, piece.score, piece.type) for piece in model.pieces
    ]
    (name, _, size, texts, ids, differ) = benchmark._row(path, TEXTS)
    own = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
    assert (name, size, texts, differ) == ("t5", str(len(model.pieces)), "4", "0")
    assert ids == str(sum(len(own.encode(text)) for text in TEXTS))


def test_a_text_with_other_ids_is_counted(
    benchmark: Any, model: ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "one.model"
    path.write_bytes(model.SerializeToString())
    monkeypatch.setattr(benchmark, "_library", lambda _: lambda text: [7] * len(text.split()))
    name, *_, differ = benchmark._row(path, TEXTS)
    assert (name, differ) == ("one", "3")  # the empty text has no ids either way
