"""A tiny local encoder, made here, against its own hidden states one chunk at a time."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertModel

from paribus.errors import ConfigurationError, DataError, NumericalError
from paribus.ordering.embed.encoder import DocumentEncoder
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


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_a_document_is_the_mean_over_chunks_of_the_mean_over_tokens(directory: Path, batch_size: int) -> None:
    config = encoder_config(directory, max_tokens=3, max_chunks=4, batch_size=batch_size)
    embeddings = DocumentEncoder(directory, config).embed(TEXTS)
    expected = [one_chunk_at_a_time(directory, text, 3, 4) if text else np.zeros(8) for text in TEXTS]
    assert embeddings.dtype == np.float32
    assert np.allclose(embeddings, expected, atol=1e-5)


def test_cls_takes_the_state_of_the_first_token(directory: Path) -> None:
    embeddings = DocumentEncoder(directory, encoder_config(directory, pooling="cls")).embed(["red sea"])
    ids = torch.tensor([[2, WORDS.index("red"), WORDS.index("sea"), 3]])
    with torch.no_grad():
        state = BertModel.from_pretrained(directory).eval()(ids).last_hidden_state[0, 0].numpy()
    assert np.allclose(embeddings, state / np.linalg.norm(state), atol=1e-5)


def test_documents_without_a_token_are_rows_of_zeros(directory: Path) -> None:
    embeddings = DocumentEncoder(directory, encoder_config(directory)).embed(["", "  \n", "red"])
    assert not embeddings[:2].any() and np.linalg.norm(embeddings[2]) == pytest.approx(1, abs=1e-6)


def test_the_number_of_threads_does_not_change_a_bit_and_is_left_alone(directory: Path) -> None:
    encoder, results = DocumentEncoder(directory, encoder_config(directory)), []
    before = torch.get_num_threads()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        results.append(encoder.embed(TEXTS * 50))
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    assert np.array_equal(*results)


def test_a_directory_without_an_encoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no config\.json"):
        DocumentEncoder(tmp_path, encoder_config(tmp_path))


def test_chunks_longer_than_the_encoder_reads_are_refused(directory: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"`embedder.max_tokens` = 15 .* 16 positions .* 14 or less"):
        DocumentEncoder(directory, encoder_config(directory, max_tokens=15))


def test_weights_that_are_not_finite_are_reported(directory: Path) -> None:
    model = BertModel.from_pretrained(directory)
    torch.nn.init.constant_(model.encoder.layer[1].output.dense.weight, float("nan"))
    model.save_pretrained(directory)
    with pytest.raises(NumericalError, match=rf"The encoder in {directory} gives vectors that are not finite"):
        DocumentEncoder(directory, encoder_config(directory)).embed(TEXTS)


def test_code_in_the_directory_is_never_run(directory: Path) -> None:
    config = json.loads((directory / "config.json").read_text())
    config["auto_map"] = {"AutoModel": "evil.Evil"}
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "evil.py").write_text(f"open({str(directory / 'ran')!r}, 'w')\nclass Evil: pass\n")
    DocumentEncoder(directory, encoder_config(directory)).embed(TEXTS)
    assert not (directory / "ran").exists()
