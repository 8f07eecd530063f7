"""Vectors of documents by an encoder of random weights, and the nearest of many, beside those of the CPU."""

import time

import numpy as np
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

from acceptance.given import ROOT, Answer, Given
from paribus.config.groups.ordering import TransformersEmbedder
from paribus.ordering.arrays import unit_rows
from paribus.ordering.embedding_model import EmbeddingModel
from paribus.ordering.nearest import rank_all
from paribus.ordering.nearest_gpu import DeviceShard

LIMIT = 1e-4
"""Of a component of a vector."""
COUNT, COMPARED = 50, 48
"""Neighbours of a document, and documents at both ends of a block whose lists are compared."""


def encoder(given: Given) -> Answer:
    """Documents a second, and how far the vectors of both devices are apart."""
    path, words = given.work / "encoder", (ROOT / "README.md").read_text(encoding="utf-8").lower().split()
    width, layers, documents, compared = (32, 2, 8, 8) if given.tiny else (768, 12, 512, 32)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(set(words))]
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 16,
        intermediate_size=4 * width,
        max_position_embeddings=128,
    )
    BertModel(config).save_pretrained(path)
    (path / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    BertTokenizerFast(vocab=str(path / "vocab.txt")).save_pretrained(path)
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(words, random.integers(20, 400))) for _ in range(documents)]
    there, here = (
        EmbeddingModel(path, TransformersEmbedder(path=str(path), device=device, max_tokens=126))
        for device in (given.device, "cpu")
    )
    differs = float(np.abs(there.embed(texts[:compared]) - here.embed(texts[:compared])).max())
    began = time.perf_counter()
    there.embed(texts)
    answer = Answer({"documents/s": documents / (time.perf_counter() - began), "vectors differ by": differs})
    answer.expect(differs <= LIMIT, f"vectors differ by {differs:.2g}")
    return answer


def neighbours(given: Given) -> Answer:
    """Pairs of vectors that are compared in a second, blocks of documents a second, and what differs.

    Lists of the CPU are those of every row compared in double precision.
    """
    rows, dimensions, block, rounds = (3_000, 48, 256, 1) if given.tiny else (1_000_000, 768, 2_048, 20)
    random = np.random.default_rng(0)
    topics = random.standard_normal((rows // 100, dimensions), dtype=np.float32)
    base = topics[random.integers(0, len(topics), rows)] + random.standard_normal((rows, dimensions), dtype=np.float32)
    base = unit_rows(base)
    # Many copies of one document: more than there are candidates.
    base[10:400] = base[9]
    shard, own = DeviceShard(base, [given.torch_device]), np.arange(block)
    ids, cosines = shard.nearest(base[:block], own, COUNT)
    began = time.perf_counter()
    for _ in range(rounds):
        shard.nearest(base[-block:], np.arange(rows - block, rows), COUNT)
    seconds = (time.perf_counter() - began) / rounds
    answer = Answer({"pairs/s": block * rows / seconds, "blocks/s": 1 / seconds})
    if not given.tiny:
        answer.numbers["peak GB"] = torch.cuda.max_memory_allocated(given.torch_device) / 1e9
    some = np.r_[:COMPARED, block - COMPARED : block]
    expected = rank_all(base[some], base, own[some], COUNT)
    differs = int((ids[some] != expected[0]).sum() + (cosines[some] != expected[1]).sum())
    answer.numbers["entries that differ"] = differs
    answer.expect(differs == 0, f"{differs} entries of lists differ from those of the CPU")
    return answer
