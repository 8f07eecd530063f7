"""The encoder-decoder as transformers' Marian classes. Imports transformers: import this module late."""

from pathlib import Path
from typing import Any

import torch
from transformers.models.marian.configuration_marian import MarianConfig
from transformers.models.marian.modeling_marian import MarianMTModel

from paribus.config.groups.model import EncoderDecoderModel

WHOLE = "1TB"
"""Weights are one file, however large."""
VOCABULARY = ("model.shared.weight",)
"""The matrix with a row for each token."""


def build(model: EncoderDecoderModel, vocab_size: int, eos_id: int | None) -> Any:
    """A model in float32 on the CPU with arbitrary weights; the global random state stays as it is.

    `eos_id`, the end-of-document token, is where generation stops and, as in fairseq, what targets begin with, so it
    cannot do without (ValueError).
    """
    with torch.random.fork_rng(devices=[]):
        return MarianMTModel(marian_config(model, vocab_size, eos_id)).float()


def save(model: Any, directory: Path, weights: dict[str, torch.Tensor] | None) -> None:
    """Write `config.json` and `model.safetensors`; `weights`, if given, in place of the model's own."""
    model.save_pretrained(directory, state_dict=weights, max_shard_size=WHOLE)


def load(directory: Path) -> Any:
    """The model saved in `directory`, in float32 on the CPU."""
    return MarianMTModel.from_pretrained(
        directory, dtype=torch.float32, use_safetensors=True, local_files_only=True, attn_implementation="sdpa"
    )


def marian_config(model: EncoderDecoderModel, vocab_size: int, eos_id: int | None) -> MarianConfig:
    """The configuration of transformers with `vocab_size` tokens."""
    if eos_id is None:
        raise ValueError("an encoder-decoder needs eos_id, the token its targets begin with")
    return MarianConfig(
        vocab_size=vocab_size,
        d_model=model.width,
        encoder_layers=model.encoder_layers,
        decoder_layers=model.decoder_layers,
        encoder_attention_heads=model.heads,
        decoder_attention_heads=model.heads,
        encoder_ffn_dim=model.ffn_width,
        decoder_ffn_dim=model.ffn_width,
        max_position_embeddings=model.positions,
        activation_function=model.activation,
        dropout=model.dropout,
        attention_dropout=model.attention_dropout,
        init_std=model.initializer_range,
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        decoder_start_token_id=eos_id,
        eos_token_id=eos_id,
        forced_eos_token_id=None,
        # A padding token's embedding would not be trained, and the end-of-document token's must be.
        pad_token_id=None,
        use_cache=False,
        attn_implementation="sdpa",
    )
