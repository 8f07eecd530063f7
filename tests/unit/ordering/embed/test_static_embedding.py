"""Static token embeddings against means taken one token at a time."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from paribus.errors import DataError, NumericalError
from paribus.ordering.embed.static import StaticEmbeddings

WORDS = ["[UNK]", "red", "green", "blue", "sky", "sea", "[CLS]"]
TEXTS = ["red green red", "", "sky", "purple", "purple blue sea", "green " * 90]


def write_static(path: Path, tensors: dict[str, np.ndarray]) -> Path:
    """A directory as Model2Vec writes it; its tokenizer cuts, pads and adds a token, as an encoder's may."""
    path.mkdir()
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 6)])
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(pad_id=5, pad_token="sea")
    tokenizer.save(str(path / "tokenizer.json"))
    save_file(tensors, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps({"normalize": True}))
    return path


def vectors(rows: int = len(WORDS)) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(rows, 6)).astype(np.float32)


def one_token_at_a_time(tensors: dict[str, np.ndarray], text: str, limit: int | None = None) -> np.ndarray:
    ids = [WORDS.index(word) for word in text.split() if word in WORDS][:limit]
    rows = []
    for token in ids:
        row = tensors["embeddings"][tensors["mapping"][token] if "mapping" in tensors else token].astype(float)
        rows.append(row * float(tensors["weights"][token]) if "weights" in tensors else row)
    mean = np.mean(rows, axis=0) if rows else np.zeros(6)
    return mean / (np.linalg.norm(mean) or 1)


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"weights": np.linspace(0.1, 2, 7)},
        {"embeddings": vectors(3), "mapping": np.array([0, 1, 2, 0, 1, 2, 0]), "weights": np.linspace(1, 2, 7)},
        {"embeddings": vectors().astype(np.float16)},
    ],
)
def test_a_document_is_the_mean_of_the_vectors_of_its_known_tokens(tmp_path: Path, extra: dict[str, Any]) -> None:
    tensors = {"embeddings": vectors()} | extra
    embeddings = StaticEmbeddings(write_static(tmp_path / "static", tensors)).embed(TEXTS)
    assert embeddings.dtype == np.float32
    assert np.allclose(embeddings, [one_token_at_a_time(tensors, text) for text in TEXTS], atol=1e-6)
    assert not embeddings[[1, 3]].any()


def test_no_more_than_the_first_known_tokens_count_where_they_are_limited(tmp_path: Path) -> None:
    tensors = {"embeddings": vectors()}
    embeddings = StaticEmbeddings(write_static(tmp_path / "static", tensors), max_tokens=2)
    texts = ["purple red green sea", "sea"]
    assert [ids.tolist() for ids in embeddings.ids(texts)] == [[1, 2], [5]]
    assert np.allclose(embeddings.embed(texts), [one_token_at_a_time(tensors, text, 2) for text in texts], atol=1e-6)


def test_the_unknown_token_of_a_unigram_tokenizer_does_not_count(tmp_path: Path) -> None:
    path = write_static(tmp_path / "static", {"embeddings": vectors(3)})
    Tokenizer(models.Unigram([("<unk>", 0.0), ("a", -1.0), ("b", -2.0)], unk_id=0)).save(str(path / "tokenizer.json"))
    static = StaticEmbeddings(path)
    assert [ids.tolist() for ids in static.ids(["abxa", "xyz"])] == [[1, 2, 1], []]
    assert not static.embed(["xyz"]).any()


def test_a_document_longer_than_what_is_summed_at_once_is_averaged_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    static = StaticEmbeddings(write_static(tmp_path / "static", {"embeddings": vectors()}))
    whole = static.embed(["red green sky " * 30])
    monkeypatch.setattr("paribus.ordering.embed.static.TOKENS_AT_ONCE", 7)
    assert np.allclose(static.embed(["red green sky " * 30]), whole, atol=1e-7)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"embedding.weight": vectors()}, r"has no tensor `embeddings` but embedding\.weight"),
        ({"embeddings": vectors(6)}, r"`embeddings` \(6, 6\) .* 7 tokens"),
        ({"embeddings": vectors(3), "mapping": np.array([0, 1, 3, 0, 1, 2, 0])}, "do not cover the 7 tokens"),
        ({"embeddings": vectors(3), "mapping": np.array([0, 1])}, "with 2 rows mapped do not cover the 7 tokens"),
        ({"embeddings": vectors()[0]}, r"`embeddings` \(6,\)"),
        ({"embeddings": vectors(), "weights": np.ones(5)}, "`weights` has 5 values for 7 tokens"),
    ],
)
def test_tensors_that_do_not_fit_are_refused_by_name(
    tmp_path: Path, tensors: dict[str, np.ndarray], message: str
) -> None:
    with pytest.raises(DataError, match=rf"model\.safetensors: .*{message}"):
        StaticEmbeddings(write_static(tmp_path / "static", tensors))


def test_vectors_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    broken = vectors()
    broken[3, 1] = np.inf
    with pytest.raises(NumericalError, match=r"model\.safetensors have vectors that are not finite"):
        StaticEmbeddings(write_static(tmp_path / "static", {"embeddings": broken}))


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_missing_or_broken_file_is_refused_by_name(tmp_path: Path, name: str) -> None:
    path = write_static(tmp_path / "static", {"embeddings": vectors()})
    (path / name).write_bytes((path / name).read_bytes()[:20])
    with pytest.raises(DataError, match=rf"{name}: no readable"):
        StaticEmbeddings(path)
    (path / name).unlink()
    with pytest.raises(DataError, match=rf"{name}: no readable"):
        StaticEmbeddings(path)
