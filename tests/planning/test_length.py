"""How long a training is taken to be: bytes a token of documents, and the lengths of pairs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paribus.config.groups.model import EncoderDecoderModel
from paribus.config.groups.ordering import PairPacking
from paribus.config.groups.tokenization import BPETokenizer, BytesTokenizer
from paribus.config.groups.training import BudgetConfig, EqualFlopsBudget, EqualStepsBudget, EqualTextBudget
from paribus.modeling.parameters import training_flops
from paribus.pipeline.prepared import PreparedRun
from paribus.planning.length import bytes_by_rule
from paribus.planning.plan import make_plan
from support.plans import TRAINING, planned_run, shown, store_record

MEASURED = {300: 1.39, 1_024: 2.44, 4_096: 3.27, 8_192: 3.63, 32_768: 4.13, 65_536: 4.27}
"""Of English, from docs/benchmarks.md."""


def test_the_rule_is_what_was_measured_and_grows_with_the_vocabulary() -> None:
    assert {size: bytes_by_rule(size) for size in MEASURED} == pytest.approx(MEASURED, rel=0.03)
    grown = [bytes_by_rule(size) for size in range(257, 100_000, 97)]
    assert grown == sorted(grown)
    assert bytes_by_rule(256) == 1.0
    assert bytes_by_rule(10**6) == bytes_by_rule(65_536)


def test_a_budget_in_text_takes_steps_by_the_size_of_the_vocabulary_and_the_plan_says_how(tmp_path: Path) -> None:
    budget, sizes = EqualTextBudget(text=1_000_000), (300, 65_536)
    small, large = (planned_run(tmp_path, tokenizer=BPETokenizer(vocab_size=size), budget=budget) for size in sizes)
    plan = make_plan([small, replace(large, job=replace(large.job, overrides=("large",)))])
    few, many = (run.length.steps for run in reversed(plan.runs))
    assert many / few == pytest.approx(bytes_by_rule(65_536) / bytes_by_rule(300), rel=0.02)
    text = shown(plan)
    assert f"bytes a token: {bytes_by_rule(300):.3g} by the rule for English text and BPE of 300 tokens" in text
    assert f"bytes a token: {bytes_by_rule(65_536):.3g} by the rule" in text


# Pairs

MODEL = EncoderDecoderModel(
    width=32, encoder_layers=2, decoder_layers=3, heads=2, ffn_width=48, context_length=128, positions=128
)
VOCABULARY, BATCH = 257, TRAINING.global_batch
TEN = EqualStepsBudget(steps=10)
FULL = "contexts that packing pads are taken to be full"


def pairs(root: Path, budget: BudgetConfig = TEN, *, corpus: bool = True, **groups: Any) -> PreparedRun:
    """A run of pairs; those of its corpus have 40 bytes of source and 60 of target on average."""
    given = {"model": MODEL, "packing": PairPacking(), "tokenizer": BytesTokenizer(), "budget": budget}
    run = planned_run(root, **given | groups)
    if corpus:
        train = {"documents": 1_000, "bytes": 100_000, "target_bytes": 60_000}
        store_record(run, "corpus", {"train": train})
    return run


def flops(targets: int, sources: int, model: EncoderDecoderModel = MODEL) -> int:
    return training_flops(model, VOCABULARY, targets, source_tokens=sources)


def test_pairs_are_as_long_as_the_mean_of_their_corpus(tmp_path: Path) -> None:
    for budget in (
        EqualStepsBudget(steps=100),
        EqualTextBudget(text=100 * BATCH * 60),
        EqualFlopsBudget(flops=100 * flops(BATCH * 61, BATCH * 41)),
    ):
        plan = make_plan([pairs(tmp_path / type(budget).__name__, budget)])
        length = plan.runs[0].length
        assert (length.steps, length.tokens, length.text_bytes) == (100, 100 * BATCH * 61, 100 * BATCH * 60), budget
        assert length.flops == 100 * flops(BATCH * 61, BATCH * 41), budget
        assert length.epochs == pytest.approx(100 * BATCH / 1_000), budget
        assert FULL not in shown(plan)


def test_once_encoded_pairs_have_their_own_tokens_whatever_is_drawn(tmp_path: Path) -> None:
    run = pairs(tmp_path)
    drawn = {"documents": 4_000, "bytes": 400_000, "tokens": 4 * 50_000, "source_tokens": 4 * 30_000}
    store_record(run, "tokens", drawn)
    length = make_plan([run]).runs[0].length
    assert (length.tokens, length.text_bytes) == (10 * BATCH * 21, 10 * BATCH * 60)
    assert length.flops == 10 * flops(BATCH * 21, BATCH * 31)


def test_a_side_is_cut_at_the_context(tmp_path: Path) -> None:
    model = replace(MODEL, context_length=40)
    length = make_plan([pairs(tmp_path, model=model)]).runs[0].length
    assert (length.tokens, length.text_bytes) == (10 * BATCH * 40, round(10 * BATCH * 60 * 40 / 61))
    assert length.flops == 10 * flops(BATCH * 40, BATCH * 40, model)
