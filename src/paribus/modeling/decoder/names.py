"""Which tensors of transformers' classes stand where in a `Decoder`."""

from collections.abc import Iterator
from typing import NamedTuple

import torch

from paribus.modeling.decoder.architecture import Architecture


class Place(NamedTuple):
    """A tensor as transformers has it."""

    name: str
    """In a model of transformers, by which its initial numbers are drawn."""
    stored: str
    """In its files."""
    parameter: str
    """Of the `Decoder`."""
    rows: slice
    """Of that parameter's first dimension."""


def places(architecture: Architecture) -> Iterator[Place]:
    """All tensors of an architecture, each once; those of a parameter follow each other in the order of its rows."""
    yield from _llama(architecture) if architecture.kind == "llama" else _gpt_neox(architecture)


def _llama(architecture: Architecture) -> Iterator[Place]:
    width, inner = architecture.width, architecture.ffn_width
    fused = {
        "attention_norm": (("input_layernorm", None),),
        "qkv": (("self_attn.q_proj", width), ("self_attn.k_proj", width), ("self_attn.v_proj", width)),
        "attention_output": (("self_attn.o_proj", None),),
        "mlp_norm": (("post_attention_layernorm", None),),
        "gate_up": (("mlp.gate_proj", inner), ("mlp.up_proj", inner)),
        "down": (("mlp.down_proj", None),),
    }
    yield _same("model.embed_tokens.weight", "embedding.weight")
    for layer in range(architecture.layers):
        for ours, theirs in fused.items():
            start = 0
            for name, rows in theirs:
                stop = None if rows is None else start + rows
                full = f"model.layers.{layer}.{name}.weight"
                yield Place(full, full, f"layers.{layer}.{ours}.weight", slice(start, stop))
                start += rows or 0
    yield _same("model.norm.weight", "norm.weight")
    if not architecture.tied_embeddings:
        yield _same("lm_head.weight", "output.weight")


def _gpt_neox(architecture: Architecture) -> Iterator[Place]:
    modules = {
        "attention_norm": "input_layernorm",
        "qkv": "attention.query_key_value",
        "attention_output": "attention.dense",
        "mlp_norm": "post_attention_layernorm",
        "up": "mlp.dense_h_to_4h",
        "down": "mlp.dense_4h_to_h",
    }
    yield _same("gpt_neox.embed_in.weight", "embedding.weight")
    for layer in range(architecture.layers):
        for ours, theirs in modules.items():
            for part in ("weight", "bias"):
                yield _same(f"gpt_neox.layers.{layer}.{theirs}.{part}", f"layers.{layer}.{ours}.{part}")
    for part in ("weight", "bias"):
        yield _same(f"gpt_neox.final_layer_norm.{part}", f"norm.{part}")
    if not architecture.tied_embeddings:
        yield Place("lm_head.weight", "embed_out.weight", "output.weight", slice(None))


def _same(theirs: str, ours: str) -> Place:
    return Place(theirs, theirs, ours, slice(None))


def huggingface_tensors(architecture: Architecture, parameters: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Views of `parameters`, by the names that the files of transformers have."""
    return {place.stored: parameters[place.parameter][place.rows] for place in places(architecture)}


def huggingface_rows(architecture: Architecture) -> dict[str, tuple[str, int]]:
    """Parameter and first row in it of each tensor in the files of transformers."""
    return {place.stored: (place.parameter, place.rows.start or 0) for place in places(architecture)}
