"""Whether the group `model` describes a checkpoint, judged by its config.json alone.

What the group says and what would change the number of parameters must agree. What it does not say, such as the epsilon
of a norm, is the checkpoint's own and stays so.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paribus.config.groups.model import ModelConfig
from paribus.modeling.architecture import rope_theta
from paribus.training.start.files import read_config
from paribus.training.start.locate import CONFIG

_NAMES = {
    "width": "hidden_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "ffn_width": "intermediate_size",
}
_FIXED: dict[str, dict[str, Any]] = {
    "llama": {"attention_bias": False, "mlp_bias": False, "hidden_act": "silu", "attention_dropout": 0},
    "gpt_neox": {"attention_bias": True, "hidden_act": "gelu", "attention_dropout": 0, "hidden_dropout": 0},
}
"""Of each family that can be continued, what config.json may say besides; what it leaves out has these values."""


def disagreements(model: ModelConfig, directory: Path, *, longer_context: bool) -> Iterator[tuple[str, str]]:
    """(config path, both values and what would be right) of everything in which the two are not one model."""
    stored, file = read_config(directory), directory / CONFIG
    family = stored.get("model_type")
    if family not in _FIXED:
        yield "start", f"{file} is of model_type {family!r}; one of {', '.join(_FIXED)} can be continued"
        return
    if family != model.kind:
        yield "model.kind", f"{model.kind}, but {family} in {file}; they must agree"
        return
    for name, theirs in _described(stored).items():
        if (ours := getattr(model, name)) != theirs:
            yield f"model.{name}", f"{ours}, but {theirs} in {file}; they must agree"
    yield from _context(model.context_length, stored, file, longer_context)
    yield from _unknown(stored, family, file)


def _described(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the group `model` as config.json has them."""
    named = {name: stored.get(theirs) for name, theirs in _NAMES.items()}
    named |= {"tied_embeddings": bool(stored.get("tie_word_embeddings", False)), "rope_theta": rope_theta(stored)}
    if stored["model_type"] == "gpt_neox":
        rope = stored.get("rope_parameters") or {}
        named["rotary_fraction"] = rope.get("partial_rotary_factor", stored.get("rotary_pct", 0.25))
        named["parallel_residual"] = stored.get("use_parallel_residual", True)
    return named


def _context(length: int, stored: Mapping[str, Any], file: Path, longer_context: bool) -> Iterator[tuple[str, str]]:
    seen = stored.get("max_position_embeddings")
    if not isinstance(seen, int) or (length > seen and not longer_context):
        message = f"{length} is longer than the {seen} of {file}, whose positions beyond were never trained"
        yield "model.context_length", f"{message}; take {seen} or less, or say start.longer_context=true"


def _unknown(stored: Mapping[str, Any], family: str, file: Path) -> Iterator[tuple[str, str]]:
    """What changes the model and no field of the group can say."""
    heads = stored.get("num_attention_heads") or 1
    rope = stored.get("rope_parameters") or stored.get("rope_scaling") or {}
    fixed = _FIXED[family] | {"num_key_value_heads": heads, "head_dim": (stored.get("hidden_size") or 0) // heads}
    found = {name: stored[name] for name in fixed if stored.get(name) is not None}
    expected = {name: fixed[name] for name in found} | {"rope_type": "default"}
    found["rope_type"] = rope.get("rope_type", rope.get("type", "default"))
    for name, value in found.items():
        if value != expected[name]:
            yield "start", f"{file} has {name}={value!r}; only {expected[name]!r} can be continued"
