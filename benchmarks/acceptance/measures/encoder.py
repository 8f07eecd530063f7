"""Vectors of documents by an encoder of random weights, beside those of the CPU."""

import time
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

from acceptance.given import ROOT, Answer, Given
from paribus.config.groups.ordering import TransformersEmbedder
from paribus.ordering.embedding_model import EmbeddingModel

LIMIT = 1e-4


def measure(given: Given) -> Answer:
    """Documents a second, and how far the vectors of both devices are apart."""
    directory, words = given.work / "encoder", (ROOT / "README.md").read_text(encoding="utf-8").lower().split()
    _write(directory, sorted(set(words)), given)
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(words, random.integers(20, 400))) for _ in range(8 if given.tiny else 512)]
    few, answer = texts[: 8 if given.tiny else 32], Answer()
    encoder = EmbeddingModel(directory, TransformersEmbedder(path=str(directory), device=given.device, max_tokens=126))
    here = EmbeddingModel(directory, TransformersEmbedder(path=str(directory), device="cpu", max_tokens=126))
    differs = float(np.abs(encoder.embed(few) - here.embed(few)).max())
    began = time.perf_counter()
    encoder.embed(texts)
    answer.numbers = {"documents/s": len(texts) / (time.perf_counter() - began), "vectors differ by": differs}
    answer.expect(differs <= LIMIT, f"vectors differ by {differs:.2g}")
    return answer


def _write(path: Path, words: list[str], given: Given) -> None:
    torch.manual_seed(0)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    width = 32 if given.tiny else 768
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=width,
        num_hidden_layers=2 if given.tiny else 12,
        num_attention_heads=width // 16,
        intermediate_size=4 * width,
        max_position_embeddings=128,
    )
    BertModel(config).save_pretrained(path)
    (path / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    BertTokenizerFast(vocab=str(path / "vocab.txt")).save_pretrained(path)
