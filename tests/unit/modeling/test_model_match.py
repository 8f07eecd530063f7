"""Models of different vocabulary sizes with equal parameters."""

from dataclasses import replace
from typing import Any

import pytest

from paribus.errors import ConfigurationError
from paribus.modeling.models import build_model
from paribus.modeling.parameters import flops_per_token, non_embedding_parameters, parameter_count, resolve_model
from support.models import FAMILIES, NAMED, family

PAPERS = (32_000, 64_000, 128_000)


@pytest.mark.parametrize("name", ["468m", "pythia_410m", "wmt_base"])
def test_non_embedding_parameters_are_equal_whatever_the_vocabulary(name: str) -> None:
    model = NAMED[name]
    assert len({non_embedding_parameters(model, size) for size in PAPERS}) == 1
    assert len({parameter_count(model, size) for size in PAPERS}) == 3


@pytest.mark.parametrize("name", ["468m", "1.2b", "6.7b", "pythia_410m", "pythia_1b", "wmt_big"])
def test_totals_are_equal_to_the_nearest_multiple_of_8_of_the_feed_forward_width(name: str) -> None:
    model: Any = replace(NAMED[name], match="total")
    target = parameter_count(NAMED[name], 32_000)
    assert parameter_count(model, 32_000) == target
    for size in PAPERS[1:]:
        found = resolve_model(model, size)
        assert found.ffn_width % 8 == 0
        off = [abs(parameter_count(replace(found, ffn_width=found.ffn_width + by), size) - target) for by in (-8, 0, 8)]
        assert off[1] == min(off)
        assert off[1] / target < 0.001
        assert replace(found, ffn_width=model.ffn_width, match="total") == model


@pytest.mark.parametrize("model", FAMILIES, ids=family)
@pytest.mark.parametrize("vocab_size", [8, 64, 120])
def test_a_built_model_its_counts_and_its_flops_have_one_shape(model: Any, vocab_size: int) -> None:
    matched = replace(model, match="total", reference_vocab_size=64)
    resolved = resolve_model(matched, vocab_size)
    assert (resolved.ffn_width == 48) == (vocab_size == 64)
    built = build_model(matched, vocab_size, 0, eos_id=0)
    assert parameter_count(matched, vocab_size) == sum(p.numel() for p in built.parameters() if p.requires_grad)
    assert parameter_count(matched, vocab_size) == parameter_count(resolved, vocab_size)
    assert flops_per_token(matched, vocab_size) == flops_per_token(resolved, vocab_size)


@pytest.mark.parametrize("model", FAMILIES, ids=family)
def test_a_vocabulary_too_large_for_the_total_is_refused_with_its_values(model: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=r"model\.match: total cannot be kept, since 9,000 tokens have [\d,]+ "
    ):
        resolve_model(replace(model, match="total", reference_vocab_size=64), 9_000)
