"""A tiny local encoder, made here, against its own hidden states one chunk at a time."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

from paribus.config.groups.ordering import InContextOrdering, StandardOrdering, TfidfEmbedder, TransformersEmbedder
from paribus.errors import ConfigurationError, DataError, NumericalError
from paribus.ordering.embed.encoder import MeanPoolingEncoder, embed_resumably
from paribus.ordering.fingerprint import fingerprint

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "red", "green", "blue", "sky", "sea"]
TEXTS = ["red green", "", "blue sky sea red green blue sky", "sea sea", "sky " * 40]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "encoder"
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
    )
    BertModel(config).save_pretrained(path)
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    BertTokenizerFast(vocab=str(tmp_path / "vocab.txt")).save_pretrained(path)
    return path


def one_chunk_at_a_time(directory: Path, text: str, max_tokens: int, max_chunks: int) -> np.ndarray:
    model = BertModel.from_pretrained(directory).eval()
    words = [WORDS.index(word) for word in text.split()]
    chunks = [words[start : start + max_tokens] for start in range(0, max(len(words), 1), max_tokens)][:max_chunks]
    with torch.no_grad():
        means = [model(torch.tensor([[2, *chunk, 3]])).last_hidden_state[0].mean(dim=0).numpy() for chunk in chunks]
    mean = np.mean(means, axis=0)
    return mean / np.linalg.norm(mean)


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_a_document_is_the_mean_over_chunks_of_the_mean_over_tokens(directory: Path, batch_size: int) -> None:
    config = TransformersEmbedder(path=str(directory), max_tokens=3, max_chunks=4, batch_size=batch_size, device="cpu")
    embeddings = MeanPoolingEncoder(config).embed(TEXTS)
    assert embeddings.dtype == np.float32
    assert np.allclose(embeddings, [one_chunk_at_a_time(directory, text, 3, 4) for text in TEXTS], atol=1e-5)


def test_blocks_done_before_a_kill_are_not_computed_again(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paribus.ordering.embed.encoder.DOCUMENTS_A_BLOCK", 2)
    config = TransformersEmbedder(path=str(directory), max_tokens=8, device="cpu")
    blocks = embed_resumably(iter(TEXTS), len(TEXTS), config, tmp_path)
    next(blocks)
    blocks.close()
    marked = np.full((2, 8), 7, dtype=np.float32)
    np.save(tmp_path / "embeddings_000000000000.npy", marked)
    (tmp_path / "embeddings_000000000002.partial").write_bytes(b"half")
    embeddings = np.concatenate(list(embed_resumably(iter(TEXTS), len(TEXTS), config, tmp_path)))
    assert np.array_equal(embeddings[:2], marked)
    assert np.allclose(embeddings[2:], MeanPoolingEncoder(config).embed(TEXTS[2:]), atol=1e-6)


def test_a_missing_directory_is_refused_by_its_config_path(tmp_path: Path) -> None:
    config = TransformersEmbedder(path=str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=r"`ordering\.embedder\.path` = .*nowhere is not a directory"):
        MeanPoolingEncoder(config)
    with pytest.raises(DataError, match=r"has no config\.json"):
        MeanPoolingEncoder(TransformersEmbedder(path=str(tmp_path)))


def test_chunks_longer_than_the_encoder_reads_are_refused(directory: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"max_tokens` = 15 .* 16 positions .* 14 or less"):
        MeanPoolingEncoder(TransformersEmbedder(path=str(directory), max_tokens=15, device="cpu"))


def test_weights_that_are_not_finite_are_reported(directory: Path) -> None:
    model = BertModel.from_pretrained(directory)
    torch.nn.init.constant_(model.encoder.layer[1].output.dense.weight, float("nan"))
    model.save_pretrained(directory)
    with pytest.raises(NumericalError, match="not finite"):
        MeanPoolingEncoder(TransformersEmbedder(path=str(directory), max_tokens=8, device="cpu")).embed(TEXTS)


def test_code_in_the_directory_is_never_run(directory: Path) -> None:
    config = json.loads((directory / "config.json").read_text())
    config["auto_map"] = {"AutoModel": "evil.Evil"}
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "evil.py").write_text(f"open({str(directory / 'ran')!r}, 'w')\nclass Evil: pass\n")
    MeanPoolingEncoder(TransformersEmbedder(path=str(directory), max_tokens=8, device="cpu")).embed(TEXTS)
    assert not (directory / "ran").exists()


def test_the_fingerprint_is_the_contents_of_the_files_and_not_where_they_are(directory: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    before = fingerprint(in_context(directory), cache)
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(before)
    moved = directory.rename(tmp_path / "elsewhere")
    (moved / "README.md").write_text("read by nobody")
    assert fingerprint(in_context(moved), cache) == before
    (moved / "tokenizer_config.json").write_text("{}")
    after = fingerprint(in_context(moved), cache)
    assert [name for name in after if after[name] != before[name]] == ["tokenizer_config.json"]


def test_orders_without_an_encoder_have_no_fingerprint(tmp_path: Path) -> None:
    assert fingerprint(StandardOrdering(), tmp_path) == {}
    assert fingerprint(InContextOrdering(embedder=TfidfEmbedder()), tmp_path) == {}


def in_context(directory: Path) -> InContextOrdering:
    return InContextOrdering(embedder=TransformersEmbedder(path=str(directory)))
