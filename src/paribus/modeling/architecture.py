"""Architecture of a decoder, read from the group `model` or a `config.json` and written to one; files of its weights.

`paribus plan` uses this, so nothing heavy may be imported here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from paribus.config.groups.model import DecoderModel
from paribus.errors import DataError
from paribus.store.files import read_object

Kind = Literal["llama", "gpt_neox"]
KINDS: tuple[Kind, ...] = ("llama", "gpt_neox")


@dataclass(frozen=True)
class Architecture:
    """Shape and constants of a decoder."""

    kind: Kind
    vocab_size: int
    width: int
    ffn_width: int
    layers: int
    heads: int
    context_length: int
    norm_epsilon: float
    rope_theta: float = 10_000.0
    rotary_fraction: float = 1.0
    """Share of each head that is rotated, the first part of it."""
    parallel_residual: bool = False
    tied_embeddings: bool = False
    initializer_range: float = 0.02
    eos_id: int | None = None
    """The end-of-document token, where transformers stops to generate."""

    @property
    def head_width(self) -> int:
        """Components of a head."""
        return self.width // self.heads

    @property
    def rotated(self) -> int:
        """Components of each head that carry a rotary position, rounded down as transformers does."""
        return int(self.head_width * self.rotary_fraction)


def architecture_of(model: DecoderModel, vocab_size: int, eos_id: int | None) -> Architecture:
    """Architecture of the group `model` as written, with `vocab_size` tokens."""
    values = {field.name: getattr(model, field.name) for field in fields(Architecture) if hasattr(model, field.name)}
    epsilon = 1e-6 if model.kind == "llama" else 1e-5
    return Architecture(vocab_size=vocab_size, norm_epsilon=epsilon, eos_id=eos_id, **values)


STORED_NAMES = {
    "vocab_size": "vocab_size",
    "width": "hidden_size",
    "ffn_width": "intermediate_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "context_length": "max_position_embeddings",
}
"""Field of `Architecture` -> its key in `config.json`, of fields that have no default there."""


def read_architecture(stored: Mapping[str, Any]) -> Architecture:
    """Architecture of a `config.json` of transformers 4 or 5; KeyError for a field that it lacks."""
    kind: Kind = stored["model_type"]
    return Architecture(
        kind,
        norm_epsilon=stored.get("rms_norm_eps", 1e-6) if kind == "llama" else stored.get("layer_norm_eps", 1e-5),
        initializer_range=stored.get("initializer_range", 0.02),
        eos_id=stored.get("eos_token_id"),
        **{name: stored[key] for name, key in STORED_NAMES.items()},
        **optional_fields(stored),
    )


def optional_fields(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of an architecture that change what is computed and that a `config.json` may leave out.

    `rope_parameters` go before the older keys, GPT-NeoX's own `rotary_emb_base` before `rope_theta`.
    """
    neox, rope = stored.get("model_type") == "gpt_neox", stored.get("rope_parameters") or {}
    bases = [stored[name] for name in ("rotary_emb_base", "rope_theta")[not neox :] if name in stored]
    values = {
        "tied_embeddings": bool(stored.get("tie_word_embeddings", False)),
        "rope_theta": float(rope.get("rope_theta", (*bases, 10_000.0)[0])),
    }
    if neox:
        values["rotary_fraction"] = rope.get("partial_rotary_factor", stored.get("rotary_pct", 0.25))
        values["parallel_residual"] = stored.get("use_parallel_residual", True)
    return values


def config_json(architecture: Architecture) -> dict[str, Any]:
    """Contents of the `config.json` from which transformers builds the same model, with weights in float32."""
    rope: dict[str, Any] = {"rope_theta": architecture.rope_theta, "rope_type": "default"}
    common = {key: getattr(architecture, name) for name, key in STORED_NAMES.items()} | {
        "attention_dropout": 0.0,
        "bos_token_id": None,
        "dtype": "float32",
        "eos_token_id": architecture.eos_id,
        "initializer_range": architecture.initializer_range,
        "model_type": architecture.kind,
        "pad_token_id": None,
        "rope_parameters": rope,
        "tie_word_embeddings": architecture.tied_embeddings,
        "use_cache": False,
    }
    if architecture.kind == "llama":
        return common | {
            "architectures": ["LlamaForCausalLM"],
            "attention_bias": False,
            "head_dim": architecture.head_width,
            "hidden_act": "silu",
            "mlp_bias": False,
            "num_key_value_heads": architecture.heads,
            "rms_norm_eps": architecture.norm_epsilon,
        }
    return common | {
        "architectures": ["GPTNeoXForCausalLM"],
        "attention_bias": True,
        "hidden_act": "gelu",
        "hidden_dropout": 0.0,
        "layer_norm_eps": architecture.norm_epsilon,
        "rope_parameters": rope | {"partial_rotary_factor": architecture.rotary_fraction},
        "use_parallel_residual": architecture.parallel_residual,
    }


CONFIG = "config.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


def weight_files(directory: Path) -> list[Path]:
    """The safetensors files, sharded or not. DataError where there are none or one is missing."""
    if (directory / WEIGHTS).is_file():
        return [directory / WEIGHTS]
    if not (directory / INDEX).is_file():
        raise DataError(
            f"{directory}: no {WEIGHTS}; weights of other formats are not read, so save them as safetensors"
        )
    shards = read_object(directory / INDEX).get("weight_map", {})
    files = [directory / name for name in sorted(set(shards.values()))]
    missing = [path.name for path in files if not path.is_file()]
    if missing or not files:
        raise DataError(f"{directory / INDEX} names files that are not there: {', '.join(missing) or 'none at all'}")
    return files
