"""How long a training on pairs is taken to be: by full rows without a corpus, else by the mean pair."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paribus.config.groups.budget import BudgetConfig, EqualFlopsBudget, EqualStepsBudget, EqualTextBudget
from paribus.config.groups.model import EncoderDecoderModel
from paribus.config.groups.packing import PairPacking
from paribus.config.groups.tokenization import BytesTokenizer
from paribus.modeling.counts import training_flops
from paribus.pipeline.prepared_run import PreparedRun
from paribus.planning.plan import make_plan
from support.plans import TRAINING, planned_run, shown, store_record

MODEL = EncoderDecoderModel(
    width=32, encoder_layers=2, decoder_layers=3, heads=2, ffn_width=48, context_length=128, positions=128
)
VOCABULARY, BATCH = 257, TRAINING.global_batch
CORPUS = {"train": {"documents": 1_000, "bytes": 100_000, "target_bytes": 60_000}}
FULL, MEAN = "rows of packing=pair are taken to be full", "pairs are taken to be as long as those of the corpus"


def pairs(root: Path, budget: BudgetConfig, **groups: Any) -> PreparedRun:
    given = {"model": MODEL, "packing": PairPacking(), "tokenizer": BytesTokenizer(), "budget": budget}
    return planned_run(root, **given | groups)


def flops(targets: int, sources: int, model: EncoderDecoderModel = MODEL) -> int:
    return training_flops(model, VOCABULARY, targets, source_tokens=sources)


def test_without_a_corpus_rows_are_taken_to_be_full(tmp_path: Path) -> None:
    plan = make_plan([pairs(tmp_path, EqualStepsBudget(steps=10))])
    assert plan.runs[0].length.tokens == 10 * BATCH * 128
    assert plan.runs[0].length.flops == 10 * flops(BATCH * 128, BATCH * 128)
    assert FULL in shown(plan) and MEAN not in shown(plan)


@pytest.mark.parametrize(
    "budget",
    [
        EqualStepsBudget(steps=100),
        EqualTextBudget(text=100 * BATCH * 60),
        EqualFlopsBudget(flops=100 * flops(BATCH * 61, BATCH * 41)),
    ],
)
def test_pairs_are_as_long_as_the_mean_of_their_corpus(tmp_path: Path, budget: BudgetConfig) -> None:
    run = pairs(tmp_path, budget)
    store_record(run, "corpus", CORPUS)
    plan = make_plan([run])
    length = plan.runs[0].length
    assert (length.steps, length.tokens, length.text_bytes) == (100, 100 * BATCH * 61, 100 * BATCH * 60)
    assert length.flops == 100 * flops(BATCH * 61, BATCH * 41)
    assert length.epochs == pytest.approx(100 * BATCH / 1_000)
    assert MEAN in shown(plan) and FULL not in shown(plan)


def test_once_encoded_pairs_have_their_own_tokens_whatever_is_drawn(tmp_path: Path) -> None:
    run = pairs(tmp_path, EqualStepsBudget(steps=10))
    store_record(run, "corpus", CORPUS)
    drawn = {"documents": 4_000, "bytes": 400_000, "tokens": 4 * 50_000, "source_tokens": 4 * 30_000}
    store_record(run, "tokens", drawn)
    length = make_plan([run]).runs[0].length
    assert (length.tokens, length.text_bytes) == (10 * BATCH * 21, 10 * BATCH * 60)
    assert length.flops == 10 * flops(BATCH * 21, BATCH * 31)


def test_a_side_is_cut_at_the_context(tmp_path: Path) -> None:
    model = replace(MODEL, context_length=40)
    run = pairs(tmp_path, EqualStepsBudget(steps=10), model=model)
    store_record(run, "corpus", CORPUS)
    length = make_plan([run]).runs[0].length
    assert length.tokens == 10 * BATCH * 40
    assert length.text_bytes == round(10 * BATCH * 60 * 40 / 61)
    assert length.flops == 10 * flops(BATCH * 40, BATCH * 40, model)


def test_a_batch_in_bytes_is_of_targets(tmp_path: Path) -> None:
    training = replace(TRAINING, global_batch=0, batch_bytes=6_000)
    run = pairs(tmp_path, EqualStepsBudget(steps=10), training=training)
    store_record(run, "corpus", CORPUS)
    plan = make_plan([run])
    assert plan.runs[0].global_batch == 100
    assert plan.runs[0].length.text_bytes == 10 * 6_000
