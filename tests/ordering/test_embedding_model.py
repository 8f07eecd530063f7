"""A tiny local encoder, made here, against its own hidden states one chunk at a time."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
import torch
from transformers import BertModel

from paribus.errors import OutOfMemoryError
from paribus.ordering import embedding_model as encoder_module
from paribus.ordering.embedding_model import EmbeddingModel, EncoderModel
from support.embeddings import WORDS, encoder_config, write_encoder

TEXTS = ["red green", "", "blue sky sea red green blue sky", "sea sea", "sky " * 40]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_encoder(tmp_path / "encoder")


def one_chunk_at_a_time(directory: Path, text: str, max_tokens: int, max_chunks: int) -> np.ndarray:
    model = BertModel.from_pretrained(directory).eval()
    words = [WORDS.index(word) for word in text.split()]
    chunks = [words[start : start + max_tokens] for start in range(0, max(len(words), 1), max_tokens)][:max_chunks]
    with torch.no_grad():
        means = [model(torch.tensor([[2, *chunk, 3]])).last_hidden_state[0].mean(dim=0).numpy() for chunk in chunks]
    mean = np.mean(means, axis=0)
    return mean / np.linalg.norm(mean)


def test_a_document_is_the_mean_over_chunks_of_the_mean_over_tokens(directory: Path) -> None:
    expected = [one_chunk_at_a_time(directory, text, 3, 4) if text else np.zeros(8) for text in TEXTS]
    for batch_tokens in (1, 15, 1000):
        config = encoder_config(directory, max_tokens=3, max_chunks=4, batch_tokens=batch_tokens)
        embeddings = EmbeddingModel(directory, config).embed(TEXTS)
        assert embeddings.dtype == np.float32
        assert np.allclose(embeddings, expected, atol=1e-5)


@pytest.mark.parametrize("side", ["right", "left"])
def test_texts_are_cut_as_transformers_cuts_them(directory: Path, side: str) -> None:
    about = json.loads((directory / "tokenizer_config.json").read_text())
    (directory / "tokenizer_config.json").write_text(json.dumps(about | {"truncation_side": side}))
    encoder = EmbeddingModel(directory, encoder_config(directory, max_tokens=3, max_chunks=4))
    texts = [*TEXTS, "red sea sky green blue " * 9]
    rows = encoder.tokenizer(texts, truncation=True, max_length=5, return_overflowing_tokens=True)
    expected: dict[int, list[list[int]]] = {}
    for owner, ids in zip(rows["overflow_to_sample_mapping"], rows["input_ids"], strict=True):
        if len(ids) > 2:
            expected.setdefault(owner, []).append(ids)
    owners, chunks = encoder._chunks(texts)
    cut = [(owner, chunk) for owner, ids in expected.items() for chunk in ids[:4]]
    assert list(zip(owners, chunks, strict=True)) == cut


def test_a_batch_that_does_not_fit_is_halved(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = encoder_config(directory, max_tokens=3, batch_tokens=40)
    expected, whole = EmbeddingModel(directory, config).embed(TEXTS), EncoderModel._batch

    def short_of_memory(self: EncoderModel, batch: list[list[int]]) -> np.ndarray:
        if len(batch) > rows:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(self, batch)

    monkeypatch.setattr(EncoderModel, "_batch", short_of_memory)
    for limit in (1, 2):
        rows = limit
        assert np.allclose(EmbeddingModel(directory, config).embed(TEXTS), expected, atol=1e-6)
    rows = 0
    with pytest.raises(OutOfMemoryError, match=r"an encoder ran out of memory .* a smaller embedder\.max_tokens"):
        EmbeddingModel(directory, config).embed(TEXTS)


def test_threads_take_turns_at_the_devices(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, cpu = encoder_config(directory, max_tokens=3), torch.device("cpu")
    expected = EmbeddingModel(directory, config).embed(TEXTS)
    monkeypatch.setattr(encoder_module, "_devices", lambda device: [cpu, cpu])
    encoder, pooled = EmbeddingModel(directory, config), EncoderModel.pooled
    inside, at_once, both = list[int](), list[int](), Barrier(2, timeout=20)

    def counted(self: EncoderModel, *arguments: object) -> np.ndarray:
        inside.append(1)
        both.wait()
        at_once.append(len(inside))
        both.wait()
        inside.pop()
        return pooled(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(EncoderModel, "pooled", counted)
    with ThreadPoolExecutor(6) as pool:
        for embeddings in pool.map(encoder.embed, [TEXTS] * 12):
            assert np.array_equal(embeddings, expected)
    assert set(at_once) == {2}, "as many at once as there are devices"


def test_all_gpus_are_taken_unless_one_is_named(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    encoder = EmbeddingModel(directory, encoder_config(directory))
    assert encoder.threads == 0
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    every = ["cuda:0", "cuda:1", "cuda:2"]
    for name, devices in {"auto": every, "cuda": every, "cuda:1": ["cuda:1"], "cpu": ["cpu"]}.items():
        assert [str(device) for device in encoder_module._devices(name)] == devices
    encoder._devices = encoder_module._devices("auto")
    assert encoder.threads == 9


def test_code_in_the_directory_is_never_run(directory: Path) -> None:
    config = json.loads((directory / "config.json").read_text())
    config["auto_map"] = {"AutoModel": "evil.Evil"}
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "evil.py").write_text(f"open({str(directory / 'ran')!r}, 'w')\nclass Evil: pass\n")
    EmbeddingModel(directory, encoder_config(directory)).embed(TEXTS)
    assert not (directory / "ran").exists()
