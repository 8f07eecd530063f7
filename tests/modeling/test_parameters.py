"""Sizes computed without building a model."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import MarianMTModel

from paribus.config.groups.model import EncoderDecoderModel, ModelConfig
from paribus.errors import ConfigurationError
from paribus.modeling import decoder
from paribus.modeling.architecture import architecture_of
from paribus.modeling.decoder import Decoder
from paribus.modeling.marian import marian_config
from paribus.modeling.models import build_model, save_model
from paribus.modeling.parameters import (
    checkpoint_bytes,
    embedding_parameters,
    flops_per_token,
    non_embedding_parameters,
    parameter_count,
    resolve_model,
    source_flops_per_token,
    training_flops,
)
from support.models import ENCODER_DECODER, FAMILIES, GPT_NEOX, LLAMA, NAMED, family

TIED = replace(LLAMA, tied_embeddings=True)


def on_meta(model: Any, vocab_size: int) -> Any:
    """The model without memory for its weights."""
    resolved = resolve_model(model, vocab_size)
    with torch.device("meta"):
        if isinstance(resolved, EncoderDecoderModel):
            return MarianMTModel(marian_config(replace(resolved, positions=model.context_length), vocab_size, 0))
        return Decoder(architecture_of(resolved, vocab_size, 0))


def trained(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def test_sizes_of_papers_have_their_parameters() -> None:
    papers = {
        ("468m", 32_000): 468_239_360,
        ("1.2b", 32_000): 1_204_881_408,
        ("6.7b", 32_000): 6_738_415_616,
        ("pythia_410m", 50_304): 405_334_016,
        ("pythia_1b", 50_304): 1_011_781_632,
        ("wmt_big", 32_768): 209_911_808,
    }
    assert {key: parameter_count(NAMED[key[0]], key[1]) for key in papers} == papers
    without_embeddings = [non_embedding_parameters(NAMED[name], 50_304) for name in ("pythia_410m", "pythia_1b")]
    assert without_embeddings == [302_311_424, 805_736_448], "as Pythia's paper gives them"


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("vocab_size", [500, 128_000])
def test_every_named_size_has_the_parameters_that_pytorch_counts(name: str, vocab_size: int) -> None:
    model, built = NAMED[name], on_meta(NAMED[name], vocab_size)
    assert parameter_count(model, vocab_size) == trained(built)
    rows = {id(p): p.numel() for p in built.parameters() if p.shape[0] == vocab_size}
    assert embedding_parameters(model, vocab_size) == sum(rows.values())
    parts = embedding_parameters(model, vocab_size) + non_embedding_parameters(model, vocab_size)
    assert parts == parameter_count(model, vocab_size)


@pytest.mark.parametrize("model", [*FAMILIES, TIED, replace(GPT_NEOX, tied_embeddings=True)], ids=family)
@pytest.mark.parametrize("vocab_size", [64, 97])
def test_parameters_and_bytes_are_those_of_the_built_model(model: ModelConfig, vocab_size: int, tmp_path: Path) -> None:
    built = build_model(model, vocab_size, 0, eos_id=0)
    assert parameter_count(model, vocab_size) == trained(built)
    save_model(built, tmp_path)
    stored = (tmp_path / "model.safetensors").read_bytes()
    assert len(stored) == 8 + int.from_bytes(stored[:8], "little") + checkpoint_bytes(model, vocab_size)


def test_flops_are_counted_by_the_stated_formula() -> None:
    matrices = 2 * (4 * 32 * 32 + 3 * 32 * 48 + 2 * 32) + 32 + 100 * 32
    assert flops_per_token(LLAMA, 100) == 6 * matrices + 12 * 2 * 32 * 16
    assert flops_per_token(TIED, 100) == flops_per_token(LLAMA, 100)
    assert training_flops(LLAMA, 100, 7) == 7 * flops_per_token(LLAMA, 100)
    assert source_flops_per_token(LLAMA, 100) == 0
    pairs = 7 * flops_per_token(ENCODER_DECODER, 100) + 5 * source_flops_per_token(ENCODER_DECODER, 100)
    assert training_flops(ENCODER_DECODER, 100, 7, source_tokens=5) == pairs


def eager(model: ModelConfig, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A built model whose attention is written as matrix products, which PyTorch counts."""
    built = build_model(model, 100, 0, eos_id=0)
    if isinstance(model, EncoderDecoderModel):
        built.set_attn_implementation("eager")
    monkeypatch.setattr(decoder, "attend", as_products)
    return built


def as_products(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: object) -> torch.Tensor:
    """Attention without a mask, (rows, length, heads, width of a head)."""
    queries, keys, values = (heads.transpose(1, 2) for heads in (queries, keys, values))
    return ((queries @ keys.mT).softmax(-1) @ values).transpose(1, 2)


def counted(computed: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        computed()
    return counter.get_total_flops()


@pytest.mark.parametrize("model", FAMILIES, ids=family)
def test_a_third_of_the_flops_is_what_pytorch_counts_forward_and_two_for_each_norm_and_bias(
    model: ModelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTorch counts matrix products; the formula takes norms and biases for products."""
    built, length = eager(model, monkeypatch), model.context_length
    ids = torch.zeros(1, length, dtype=torch.long)
    pair = {"input_ids": ids, "decoder_input_ids": ids}
    flops = counted(lambda: built(**pair) if isinstance(model, EncoderDecoderModel) else built.logits(ids))
    vectors = sum(parameter.numel() for parameter in built.parameters() if parameter.ndim == 1)
    formula = flops_per_token(model, 100) + source_flops_per_token(model, 100)
    assert flops == pytest.approx(length * (formula / 3 - 2 * vectors), rel=1e-3)


# Models of different vocabulary sizes with equal parameters.

PAPERS = (32_000, 64_000, 128_000)


@pytest.mark.parametrize("name", ["468m", "1.2b", "6.7b", "pythia_410m", "pythia_1b", "wmt_big"])
def test_totals_are_equal_to_the_nearest_multiple_of_8_of_the_feed_forward_width(name: str) -> None:
    model: Any = replace(NAMED[name], match="total")
    target = parameter_count(NAMED[name], 32_000)
    assert parameter_count(model, 32_000) == target
    for size in PAPERS[1:]:
        resolved = resolve_model(model, size)
        assert resolved.ffn_width % 8 == 0
        errors = [
            abs(parameter_count(replace(resolved, ffn_width=resolved.ffn_width + by), size) - target)
            for by in (-8, 0, 8)
        ]
        assert errors[1] == min(errors)
        assert errors[1] / target < 0.001
        assert replace(resolved, ffn_width=model.ffn_width, match="total") == model


@pytest.mark.parametrize("model", FAMILIES, ids=family)
@pytest.mark.parametrize("vocab_size", [8, 64, 120])
def test_built_model_its_counts_and_its_flops_have_one_shape(model: Any, vocab_size: int) -> None:
    matched = replace(model, match="total", reference_vocab_size=64)
    resolved = resolve_model(matched, vocab_size)
    assert (resolved.ffn_width == 48) == (vocab_size == 64)
    built = build_model(matched, vocab_size, 0, eos_id=0)
    assert parameter_count(matched, vocab_size) == sum(p.numel() for p in built.parameters() if p.requires_grad)
    assert parameter_count(matched, vocab_size) == parameter_count(resolved, vocab_size)
    assert flops_per_token(matched, vocab_size) == flops_per_token(resolved, vocab_size)


@pytest.mark.parametrize("model", FAMILIES, ids=family)
def test_vocabulary_too_large_for_the_total_is_refused_with_its_values(model: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=r"model\.match: total cannot be kept, since 9,000 tokens have [\d,]+ "
    ):
        resolve_model(replace(model, match="total", reference_vocab_size=64), 9_000)
