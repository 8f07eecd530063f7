"""Static embeddings made from a tiny encoder, against its states one token at a time."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import BertModel

from paribus.errors import ConfigurationError
from paribus.ordering.embed.distill import distill, main, zipf_weights
from paribus.ordering.embed.static import StaticEmbeddings
from support.embeddings import WORDS, write_encoder

UNUSED = ["[unused0]", *(f"word{number}" for number in range(20))]
KEPT = [number for number, word in enumerate([*WORDS, *UNUSED]) if not word.startswith("[")]


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    return write_encoder(tmp_path / "encoder", [*WORDS, *UNUSED])


def states(encoder: Path) -> np.ndarray:
    model = BertModel.from_pretrained(encoder).eval()
    with torch.no_grad():
        return np.array(
            [model(torch.tensor([[2, token, 3]])).last_hidden_state[0].mean(dim=0).numpy() for token in KEPT]
        )


def test_vectors_are_principal_components_weighted_by_the_rank_of_the_token(encoder: Path, tmp_path: Path) -> None:
    distill(str(encoder), tmp_path / "static", dimensions=3, device="cpu")
    stored = load_file(tmp_path / "static" / "model.safetensors")["embeddings"]
    centred = states(encoder) - states(encoder).mean(axis=0)
    left, singular, _ = np.linalg.svd(centred, full_matrices=False)
    ranks = np.arange(2, len(KEPT) + 2)
    probability = (1 / ranks) / sum(1 / ranks)
    expected = left[:, :3] * singular[:3] * (1e-4 / (1e-4 + probability))[:, None]
    assert stored.dtype == np.float16 and stored.shape == (len(WORDS) + len(UNUSED), 3)
    scale = np.linalg.norm(expected)
    assert np.allclose(
        stored[KEPT] @ stored[KEPT].T.astype(float) / scale**2, expected @ expected.T / scale**2, atol=1e-3
    )
    assert not np.delete(stored, KEPT, axis=0).any()


def test_the_directory_is_read_by_the_static_embedder(encoder: Path, tmp_path: Path) -> None:
    assert main([str(encoder), str(tmp_path / "static"), "--device", "cpu"]) == 0
    static = StaticEmbeddings(tmp_path / "static")
    assert static.vectors.shape == (len(WORDS) + len(UNUSED), 8)
    vectors = static.embed(["red Green", "purple", "[CLS] sky", "word3 sea"])
    assert np.allclose(np.linalg.norm(vectors[[0, 2, 3]], axis=1), 1, atol=1e-6) and not vectors[1].any()
    assert json.loads((tmp_path / "static" / "config.json").read_text())["normalize"] is True


def test_the_files_are_the_same_each_time(encoder: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        distill(str(encoder), tmp_path / name, dimensions=4, device="cpu")
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_weights_rise_with_the_rank() -> None:
    weights = zipf_weights(1000)
    assert (np.diff(weights) > 0).all() and 0 < weights[0] < weights[-1] < 1


def test_what_is_there_is_not_overwritten(encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "static").mkdir()
    with pytest.raises(ConfigurationError, match="exists already"):
        distill(str(encoder), tmp_path / "static")
    assert main([str(encoder), str(tmp_path / "static")]) == 1
    assert "exists already" in capsys.readouterr().err
    assert main([str(tmp_path / "nowhere"), str(tmp_path / "other")]) == 1
    assert "is not a directory" in capsys.readouterr().err
    assert main([str(encoder), str(tmp_path / "other"), "--dimensions", "0"]) == 1
