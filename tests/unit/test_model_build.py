"""Seeded weights, and Hugging Face directories."""

from pathlib import Path

import pytest
import torch

from paribus.config.groups.model import ModelConfig
from paribus.errors import ConfigurationError
from paribus.modeling.build import build_model, load_model, save_model

MODEL = ModelConfig(width=32, layers=2, heads=2, ffn_width=48, context_length=16)


def weights(vocab_size: int, seed: int) -> dict[str, torch.Tensor]:
    return dict(build_model(MODEL, vocab_size, seed).named_parameters())


def test_initial_weights_depend_on_the_seed_and_not_on_global_randomness() -> None:
    torch.manual_seed(1)
    first = weights(64, 5)
    state = torch.get_rng_state()
    second = weights(64, 5)
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(first[name], second[name]) for name in first)
    other = weights(64, 6)
    assert not any(torch.equal(first[name], other[name]) for name in first if first[name].ndim == 2)


def test_another_vocabulary_size_leaves_the_decoder_as_it_is() -> None:
    small, large = weights(64, 5), weights(90, 5)
    for name in small:
        same = small[name].shape == large[name].shape
        assert same == ("embed_tokens" not in name and "lm_head" not in name)
        assert not same or torch.equal(small[name], large[name])


def test_matrices_are_normal_and_norms_are_one() -> None:
    for parameter in weights(512, 0).values():
        if parameter.ndim == 1:
            assert torch.equal(parameter, torch.ones_like(parameter))
        else:
            assert parameter.std().item() == pytest.approx(0.02, rel=0.1)
            assert abs(parameter.mean().item()) < 0.002


def test_a_saved_model_comes_back_bit_for_bit(tmp_path: Path) -> None:
    model = build_model(MODEL, 64, 3, eod_id=63)
    save_model(model, tmp_path)
    loaded = load_model(tmp_path)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".json", ".safetensors"]
    assert loaded.config.eos_token_id == 63
    tokens = torch.arange(16).unsqueeze(0)
    with torch.no_grad():
        assert torch.equal(model.eval()(tokens).logits, loaded.eval()(tokens).logits)


def test_heads_that_do_not_divide_the_width_are_refused_by_path() -> None:
    with pytest.raises(ConfigurationError, match=r"model\.heads 3 does not divide model\.width 32"):
        build_model(ModelConfig(width=32, layers=1, heads=3, ffn_width=48), 64, 0)
