"""Seeded weights, and Hugging Face directories."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

from paribus.config.groups.model import ModelConfig
from paribus.modeling.decoder import Decoder
from paribus.modeling.models import build_model, load_model, save_model
from support.models import ENCODER_DECODER, FAMILIES, GPT_NEOX, LLAMA, family

each_family = pytest.mark.parametrize("model", FAMILIES, ids=family)
VOCABULARY = ("embedding.weight", "output.weight", "model.shared.weight")


def weights(model: ModelConfig, vocab_size: int, seed: int) -> dict[str, torch.Tensor]:
    return dict(build_model(model, vocab_size, seed, eos_id=0).named_parameters())


def logits(model: Any) -> torch.Tensor:
    tokens = torch.arange(16).unsqueeze(0)
    model.eval()
    with torch.no_grad():
        if isinstance(model, Decoder):
            return model.logits(tokens)
        target = {"decoder_input_ids": tokens.flip(1)} if model.config.is_encoder_decoder else {}
        outputs: torch.Tensor = model(input_ids=tokens, **target).logits
    return outputs


@each_family
def test_initial_weights_depend_on_the_seed_and_not_on_global_randomness(model: ModelConfig) -> None:
    torch.manual_seed(1)
    first = weights(model, 64, 5)
    state = torch.get_rng_state()
    second = weights(model, 64, 5)
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(first[name], second[name]) for name in first)
    other, drawn = weights(model, 64, 6), [name for name in first if first[name].ndim == 2 and "position" not in name]
    assert len(drawn) > 8
    assert not any(torch.equal(first[name], other[name]) for name in drawn)


@each_family
def test_layers_depend_neither_on_the_size_nor_on_the_tokens_of_the_vocabulary(model: ModelConfig) -> None:
    plain, larger = weights(model, 64, 5), weights(model, 90, 5)
    named = dict(build_model(model, 64, 5, eos_id=0, tokens=[bytes([i]) for i in range(64)]).named_parameters())
    assert plain.keys() == larger.keys() == named.keys()
    for name, weight in plain.items():
        alike = name not in VOCABULARY
        assert torch.equal(weight, named[name]) == (weight.shape == larger[name].shape) == alike
        assert not alike or torch.equal(weight, larger[name])


def vocabulary_matrices(model: ModelConfig, tokens: Sequence[bytes], seed: int = 5) -> dict[str, torch.Tensor]:
    built = build_model(model, len(tokens), seed, eos_id=0, tokens=tokens)
    matrices = {name: weight for name, weight in built.named_parameters() if name in VOCABULARY}
    assert matrices
    return matrices


@each_family
def test_rows_of_the_vocabulary_are_those_of_their_tokens_wherever_the_ids_lie(model: ModelConfig) -> None:
    tokens = [f"token {number}".encode() for number in range(64)]
    reordered = [b"another", *reversed(tokens), b"one more"]
    first, second, again = (vocabulary_matrices(model, each) for each in (tokens, reordered, tokens))
    other = vocabulary_matrices(model, tokens, seed=6)
    for name, matrix in first.items():
        assert torch.equal(matrix, again[name])
        assert all(torch.equal(matrix[tokens.index(token)], second[name][reordered.index(token)]) for token in tokens)
        drawn = torch.cat([matrix, second[name][:1], second[name][-1:], other[name]])
        assert len(torch.unique(drawn, dim=0)) == 64 + 2 + 64
    rows = [matrix for name, matrix in first.items() if matrix.shape[0] == 64]
    assert len(torch.unique(torch.cat(rows), dim=0)) == 64 * len(rows)


@each_family
def test_rows_drawn_by_tokens_are_as_far_spread_as_a_whole_matrix(model: ModelConfig) -> None:
    by_token = vocabulary_matrices(model, [str(number).encode() for number in range(4000)])
    whole = weights(model, 4000, 5)
    for name, matrix in by_token.items():
        assert matrix.std().item() == pytest.approx(whole[name].std().item(), rel=0.02)
        assert abs(matrix.mean().item()) < 0.01 * matrix.std().item()
        products = matrix @ matrix.T / matrix.shape[1] / matrix.var()
        off = products[~torch.eye(len(matrix), dtype=torch.bool)]
        assert off.std().item() == pytest.approx(matrix.shape[1] ** -0.5, rel=0.05)


@pytest.mark.parametrize("model", [LLAMA, GPT_NEOX, replace(ENCODER_DECODER, initialization="normal")], ids=family)
def test_matrices_are_normal_norms_are_one_and_biases_zero(model: ModelConfig) -> None:
    for name, parameter in weights(model, 512, 0).items():
        if parameter.ndim == 1:
            assert torch.equal(parameter, torch.full_like(parameter, 0.0 if "bias" in name else 1.0))
        elif "position" not in name:
            assert parameter.std().item() == pytest.approx(0.02, rel=0.1)
            assert abs(parameter.mean().item()) < 0.002


@pytest.mark.parametrize(
    ("initialization", "matrix", "residual"),
    [("depth_scaled", 0.02, 0.02 / math.sqrt(8)), ("small_init", math.sqrt(2 / (5 * 64)), 2 / (4 * math.sqrt(64)))],
)
@pytest.mark.parametrize("model", [LLAMA, GPT_NEOX], ids=family)
def test_matrices_that_write_to_the_residual_stream_may_be_drawn_by_depth(
    model: Any, initialization: str, matrix: float, residual: float
) -> None:
    outputs = ("attention_output.weight", "down.weight")
    drawn = weights(replace(model, width=64, layers=4, initialization=initialization), 512, 0)
    deviations = {name: parameter.std().item() for name, parameter in drawn.items() if parameter.ndim == 2}
    assert sum(name.endswith(outputs) for name in deviations) == 8
    for name, deviation in deviations.items():
        assert deviation == pytest.approx(residual if name.endswith(outputs) else matrix, rel=0.1), name


def test_encoder_decoder_starts_as_fairseq_starts_it_with_the_positions_of_vaswani() -> None:
    drawn = weights(ENCODER_DECODER, 512, 0)
    assert drawn["model.shared.weight"].std().item() == pytest.approx(32**-0.5, rel=0.05)
    for name, bound in {
        "encoder.layers.0.fc1": math.sqrt(6 / (32 + 48)),
        "decoder.layers.2.encoder_attn.q_proj": math.sqrt(6 / (32 + 3 * 32)),
        "decoder.layers.2.self_attn.out_proj": math.sqrt(6 / (32 + 32)),
    }.items():
        assert 0.97 * bound < drawn[f"model.{name}.weight"].abs().max().item() <= bound
    table = drawn["model.encoder.embed_positions.weight"]
    assert not table.requires_grad
    angles = torch.arange(24)[:, None] / 10_000 ** (torch.arange(16) / 16)
    torch.testing.assert_close(table, torch.nn.Parameter(torch.cat([angles.sin(), angles.cos()], dim=1), False))


@each_family
def test_saved_model_comes_back_bit_for_bit_here_and_in_transformers(model: ModelConfig, tmp_path: Path) -> None:
    built = build_model(model, 64, 3, eos_id=63)
    save_model(built, tmp_path)
    loaded = load_model(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["eos_token_id"] == 63
    assert torch.equal(logits(built), logits(loaded))
    auto = AutoModelForCausalLM if isinstance(built, Decoder) else AutoModelForSeq2SeqLM
    torch.testing.assert_close(logits(built), logits(auto.from_pretrained(tmp_path)), rtol=0, atol=1e-6)
