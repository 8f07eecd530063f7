"""Sizes computed without building a model."""

import subprocess
import sys
from pathlib import Path

import pytest

from paribus.config.groups.model import ModelConfig
from paribus.modeling.build import build_model, save_model
from paribus.modeling.counts import checkpoint_bytes, flops_per_token, parameter_count, training_flops


def shape(**changes: object) -> ModelConfig:
    values = {"width": 32, "layers": 2, "heads": 2, "ffn_width": 48, "context_length": 16} | changes
    return ModelConfig(**values)


@pytest.mark.parametrize(
    ("width", "layers", "heads", "ffn_width", "parameters"),
    [
        (1024, 24, 16, 4_096, 468_239_360),
        (2048, 16, 8, 8_192, 1_204_881_408),
        (4096, 32, 32, 11_008, 6_738_415_616),
    ],
)
def test_the_papers_sizes_have_their_parameters(
    width: int, layers: int, heads: int, ffn_width: int, parameters: int
) -> None:
    model = shape(width=width, layers=layers, heads=heads, ffn_width=ffn_width)
    assert parameter_count(model, 32_000) == parameters


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("vocab_size", [64, 97])
def test_parameters_and_bytes_are_those_of_the_built_model(tied: bool, vocab_size: int, tmp_path: Path) -> None:
    model = shape(tied_embeddings=tied)
    built = build_model(model, vocab_size, 0)
    assert parameter_count(model, vocab_size) == sum(parameter.numel() for parameter in built.parameters())
    save_model(built, tmp_path)
    header_bytes = (tmp_path / "model.safetensors").stat().st_size - checkpoint_bytes(model, vocab_size)
    assert 0 < header_bytes < 10_000


def test_flops_are_counted_by_the_stated_formula() -> None:
    matrices = 2 * (4 * 32 * 32 + 3 * 32 * 48 + 2 * 32) + 32 + 100 * 32
    assert flops_per_token(shape(), 100) == 6 * matrices + 12 * 2 * 32 * 16
    assert flops_per_token(shape(tied_embeddings=True), 100) == flops_per_token(shape(), 100)
    assert training_flops(shape(), 100, 7) == 7 * flops_per_token(shape(), 100)


def test_counting_imports_nothing_heavy() -> None:
    heavy = {"torch", "transformers", "numpy"}
    code = f"import sys, paribus.modeling.counts; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
