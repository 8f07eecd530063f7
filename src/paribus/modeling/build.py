"""Build, save and load the model.

Initial weights depend on the seed, the parameter's name and its shape only: two runs whose tokenizers differ start from
the same decoder, and from the same embedding where their vocabularies have one size.
"""

import hashlib
from pathlib import Path
from typing import Any

import torch
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM

from paribus.config.groups.model import ModelConfig
from paribus.errors import ConfigurationError

WHOLE = "1TB"
"""Weights are one file, however large."""


def llama_config(model: ModelConfig, vocab_size: int, eod_id: int | None = None) -> LlamaConfig:
    """The transformers configuration; `eod_id`, the end-of-document token, is where generation stops."""
    if model.width % model.heads:
        raise ConfigurationError(f"model.heads {model.heads} does not divide model.width {model.width}")
    if (model.width // model.heads) % 2:
        raise ConfigurationError(
            f"model.width / model.heads is {model.width // model.heads}; rotary position embedding needs an even number"
        )
    return LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=model.width,
        intermediate_size=model.ffn_width,
        num_hidden_layers=model.layers,
        num_attention_heads=model.heads,
        num_key_value_heads=model.heads,
        max_position_embeddings=model.context_length,
        tie_word_embeddings=model.tied_embeddings,
        initializer_range=model.initializer_range,
        rope_parameters={"rope_type": "default", "rope_theta": model.rope_theta},
        attention_dropout=0.0,
        bos_token_id=None,
        eos_token_id=eod_id,
        pad_token_id=None,
        use_cache=False,
        attn_implementation="sdpa",
    )


def build_model(model: ModelConfig, vocab_size: int, seed: int, *, eod_id: int | None = None) -> Any:
    """A `LlamaForCausalLM` in float32 on the CPU: matrices from N(0, initializer_range²), norms 1, no dropout.

    The global random state is neither read nor changed.
    """
    with torch.random.fork_rng(devices=[]):
        built = LlamaForCausalLM(llama_config(model, vocab_size, eod_id)).float()
    with torch.no_grad():
        for name, parameter in built.named_parameters():
            _initialize(name, parameter, model.initializer_range, seed)
    return built


def _initialize(name: str, parameter: torch.Tensor, deviation: float, seed: int) -> None:
    if parameter.ndim == 1:
        parameter.fill_(1.0)
        return
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)
    parameter.normal_(0.0, deviation, generator=generator)


def save_model(model: Any, directory: Path, weights: dict[str, torch.Tensor] | None = None) -> None:
    """Write `config.json` and `model.safetensors` (float32) of an unwrapped model into `directory`.

    `weights`, if given, are written in place of the model's own.
    """
    model.save_pretrained(directory, state_dict=weights, max_shard_size=WHOLE)


def load_model(directory: Path) -> Any:
    """The `LlamaForCausalLM` saved in `directory`, in float32 on the CPU; only safetensors files are read."""
    return LlamaForCausalLM.from_pretrained(
        directory, dtype=torch.float32, use_safetensors=True, local_files_only=True, attn_implementation="sdpa"
    )
