"""Tiny encoders, and contexts, kills and reads of the stages `embeddings` and `duplicates`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

from paribus.config.groups.model import LlamaModel
from paribus.config.groups.ordering import TransformersEmbedder
from paribus.corpus.artifact import CorpusPart
from paribus.ordering.arrays import save_array
from paribus.stage import StageContext
from support.run_config import run_config
from support.stages import context_at

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "red", "green", "blue", "sky", "sea"]
MODEL = LlamaModel(width=8, layers=1, heads=1, ffn_width=8)


def write_encoder(path: Path) -> Path:
    """A BERT of random weights with 8 dimensions and 16 positions, whose tokens are `WORDS`."""
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
    (path / "vocab.txt").write_text("\n".join(WORDS))
    BertTokenizerFast(vocab=str(path / "vocab.txt")).save_pretrained(path)
    return path


def encoder_config(path: Path | str, **fields: Any) -> TransformersEmbedder:
    """An encoder on the CPU with chunks of 8 tokens, unless `fields` say otherwise."""
    return TransformersEmbedder(**({"path": str(path), "max_tokens": 8, "device": "cpu"} | fields))


def embedding_context(root: Path, groups: dict[str, Any], *, workers: int = 1, **inputs: Path) -> StageContext:
    """A context that writes to `root`/output and keeps its work in `root`/work."""
    config = run_config(**({"model": MODEL} | groups))
    return context_at(root / "output", root / "work", config, inputs, workers=workers)


def dying_after(arrays: int) -> Callable[[Path, np.ndarray], None]:
    """Saves some arrays, then dies as a killed process does: what was written stays, nothing else happens."""
    saved: list[Path] = []

    def save(path: Path, array: np.ndarray) -> None:
        if len(saved) == arrays:
            raise KeyboardInterrupt
        saved.append(path)
        save_array(path, array)

    return save


def read_parts(monkeypatch: pytest.MonkeyPatch) -> list[CorpusPart]:
    """Parts whose texts are read from now on."""
    read: list[CorpusPart] = []
    texts = CorpusPart.texts

    def counted(part: CorpusPart) -> list[str]:
        read.append(part)
        return texts(part)

    monkeypatch.setattr(CorpusPart, "texts", counted)
    return read
