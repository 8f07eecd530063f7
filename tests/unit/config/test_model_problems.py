"""Shapes that cannot be, refused before anything runs."""

from dataclasses import replace
from typing import Any

import pytest

from paribus.checks.combinations import impossible
from paribus.config.groups.budget import EqualStepsBudget
from paribus.config.groups.corpus import ParallelCorpus
from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.packing import PairPacking
from paribus.config.groups.tokenization import BPETokenizer
from support.models import ENCODER_DECODER, FAMILIES, GPT_NEOX, LLAMA, NAMED, family
from support.run_config import run_config


def problems(model: Any, **changes: Any) -> dict[str, str]:
    return dict(impossible(run_config(model=replace(model, **changes))))


@pytest.mark.parametrize("model", FAMILIES, ids=family)
def test_heads_that_do_not_divide_the_width_are_refused_with_both(model: Any) -> None:
    assert problems(model, heads=5)["model.heads"] == "5 does not divide model.width=32"


def test_rotary_positions_need_an_even_part_of_each_head() -> None:
    assert "= 1 must be even" in problems(LLAMA, heads=32)["model.heads"]
    message = "model.rotary_fraction=0.25 of model.width / model.heads = 4 is 1; it must be even and at least 2"
    assert problems(GPT_NEOX, heads=8)["model.rotary_fraction"] == message
    assert "model.rotary_fraction" not in problems(GPT_NEOX, heads=8, rotary_fraction=0.5)


def test_a_context_longer_than_the_table_of_positions_is_refused_with_both() -> None:
    message = "25 exceeds the table of model.positions=24"
    assert problems(ENCODER_DECODER, context_length=25)["model.context_length"] == message
    assert "model.context_length" not in problems(ENCODER_DECODER, context_length=24)


def test_a_total_that_cannot_be_matched_is_refused_before_anything_runs() -> None:
    large = run_config(model=replace(LLAMA, match="total"), tokenizer=BPETokenizer(vocab_size=128_000))
    message = dict(impossible(large))["model.match"]
    assert "128,000 tokens have 6,144,000 parameters more than model.reference_vocab_size=32,000" in message
    assert "model.ffn_width=48 have 9,216" in message


def test_pairs_rows_of_pairs_and_an_encoder_decoder_go_together_or_not_at_all() -> None:
    found = problems(ENCODER_DECODER)
    assert "encoder_decoder trains on pairs of source and target; use corpus=parallel" in found["corpus.kind"]
    assert found["packing.kind"] == "concatenate does not go with model.kind=encoder_decoder; use pair"
    assert "continuation scores what follows a text" in found["evaluation.tasks"]
    pairs: dict[str, Any] = {
        "corpus": ParallelCorpus(source=("a.en",), target=("a.de",)),
        "packing": PairPacking(),
        "budget": EqualStepsBudget(steps=10_000),
    }
    translation = run_config(model=ENCODER_DECODER, evaluation=EvaluationConfig(tasks=()), **pairs)
    assert list(impossible(translation)) == []
    decoder = dict(impossible(run_config(model=LLAMA, **pairs)))
    assert decoder.keys() == {"model.kind", "packing.kind"}
    assert "llama trains on documents, and corpus=parallel has pairs" in decoder["model.kind"]


@pytest.mark.parametrize("name", NAMED)
def test_every_named_size_is_possible(name: str) -> None:
    assert (
        set(problems(NAMED[name])) & {"model.heads", "model.match", "model.context_length", "model.rotary_fraction"}
        == set()
    )
