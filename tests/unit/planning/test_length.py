"""How long a training is taken to be: bytes a token of documents, and the lengths of pairs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paribus.config.groups.corpus import PydocsCorpus
from paribus.config.groups.model import EncoderDecoderModel
from paribus.config.groups.ordering import PairPacking
from paribus.config.groups.tokenization import (
    BPETokenizer,
    BytesTokenizer,
    DropoutEncoder,
    LeftToRightEncoder,
    PatternPretokenizer,
    UnigramTokenizer,
    WordPieceTokenizer,
)
from paribus.config.groups.training import BudgetConfig, EqualFlopsBudget, EqualStepsBudget, EqualTextBudget
from paribus.modeling.parameters import training_flops
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.root import OutputRoot
from paribus.planning.length import bytes_by_rule, estimate_bytes_per_token
from paribus.planning.plan import make_plan
from support.plans import TRAINING, planned_run, shown, store_record

MEASURED = {300: 1.39, 1_024: 2.44, 4_096: 3.27, 8_192: 3.63, 32_768: 4.13, 65_536: 4.27}
"""Of English, from docs/benchmarks.md."""


def of_size(root: Path, size: int, **groups: Any) -> PreparedRun:
    return planned_run(root, **({"tokenizer": BPETokenizer(vocab_size=size)} | groups))


def encoded(run: PreparedRun, size: int, bytes_per_token: float) -> None:
    """The artefacts that say what `run` would have counted."""
    if OutputRoot.of(run.job.config).store.find("vocabulary", run.nodes["vocabulary"].key) is None:
        store_record(run, "vocabulary", {"vocab_size": size})
    result = {"vocab_size": size, "tokens": 1_000, "documents": 10, "bytes": round(1_000 * bytes_per_token)}
    store_record(run, "tokens", result)


def told(root: Path, size: int, **groups: Any) -> tuple[float, str]:
    run = of_size(root, size, **groups)
    found = estimate_bytes_per_token(run.nodes["tokens"], size, OutputRoot.of(run.job.config))
    return found.value, found.source


def test_the_rule_is_what_was_measured_and_grows_with_the_vocabulary() -> None:
    for size, measured in MEASURED.items():
        assert bytes_by_rule(size) == pytest.approx(measured, rel=0.03)
    grown = [bytes_by_rule(size) for size in range(257, 100_000, 97)]
    assert grown == sorted(grown)
    assert bytes_by_rule(256) == 1.0
    assert bytes_by_rule(10**6) == bytes_by_rule(65_536)


def test_without_records_the_rule_is_used_and_named(tmp_path: Path) -> None:
    assert told(tmp_path, 300) == (bytes_by_rule(300), "by the rule for English text and BPE of 300 tokens")
    beyond = (
        "by the rule for English text and BPE of 128,000 tokens, which is that of 65,536, the largest it was fitted on"
    )
    assert told(tmp_path, 128_000) == (bytes_by_rule(65_536), beyond)


def test_a_vocabulary_of_the_same_corpus_says_by_how_much_the_text_differs_from_the_rule(tmp_path: Path) -> None:
    encoded(of_size(tmp_path, 1_024), 1_024, 2.0)
    value, source = told(tmp_path, 8_192)
    assert value == pytest.approx(bytes_by_rule(8_192) * 2.0 / bytes_by_rule(1_024))
    assert source == "from a vocabulary of this corpus here, the nearest of 1,024 tokens, for 8,192"


def test_between_two_vocabularies_the_difference_is_interpolated_in_the_logarithm(tmp_path: Path) -> None:
    for size, share in ((1_024, 0.8), (16_384, 1.2)):
        encoded(of_size(tmp_path, size), size, bytes_by_rule(size) * share)
    for size, share in ((512, 0.8), (1_024, 0.8), (4_096, 1.0), (16_384, 1.2), (65_536, 1.2)):
        value, source = told(tmp_path, size)
        assert value == pytest.approx(bytes_by_rule(size) * share, rel=2e-3)
        assert source.startswith("from 2 vocabularies of this corpus here")


def test_another_corpus_says_nothing(tmp_path: Path) -> None:
    encoded(of_size(tmp_path, 1_024, corpus=PydocsCorpus(limit=1_000)), 1_024, 2.0)
    assert told(tmp_path, 8_192)[0] == bytes_by_rule(8_192)


@pytest.mark.parametrize(
    ("groups", "kind"),
    [
        ({"tokenizer": UnigramTokenizer(vocab_size=1_024)}, "unigram"),
        ({"pretokenizer": PatternPretokenizer(kind="gpt4")}, "bpe"),
        ({"encoder": LeftToRightEncoder()}, "bpe"),
    ],
    ids=["tokenizer", "pretokenizer", "encoder"],
)
def test_another_kind_says_how_far_text_is_from_english(groups: dict[str, Any], kind: str, tmp_path: Path) -> None:
    encoded(of_size(tmp_path, 1_024, **groups), 1_024, 1.2)
    value, source = told(tmp_path, 8_192)
    assert value == pytest.approx(bytes_by_rule(8_192) * 1.2 / bytes_by_rule(1_024))
    assert source == (
        f"from a vocabulary of this corpus here, the nearest of 1,024 tokens of another kind ({kind}), for 8,192"
    )
    encoded(of_size(tmp_path, 512), 512, 2.0)
    assert told(tmp_path, 8_192)[1] == "from a vocabulary of this corpus here, the nearest of 512 tokens, for 8,192"


@pytest.mark.parametrize(
    "groups",
    [
        {"tokenizer": WordPieceTokenizer(vocab_size=1_024)},
        {"tokenizer": BytesTokenizer()},
        {"encoder": DropoutEncoder(probability=0.1)},
    ],
    ids=["wordpiece", "bytes", "dropout"],
)
def test_what_is_far_from_the_rule_on_any_text_says_nothing_of_others(groups: dict[str, Any], tmp_path: Path) -> None:
    encoded(of_size(tmp_path, 1_024, **groups), 1_024, 1.2)
    assert told(tmp_path, 8_192)[0] == bytes_by_rule(8_192)


def test_a_budget_in_text_takes_steps_by_the_size_of_the_vocabulary_and_the_plan_says_how(tmp_path: Path) -> None:
    budget = EqualTextBudget(text=1_000_000)
    small, large = (of_size(tmp_path, size, budget=budget) for size in (300, 65_536))
    plan = make_plan([small, replace(large, job=replace(large.job, overrides=("large",)))])
    few, many = (run.length.steps for run in reversed(plan.runs))
    assert many / few == pytest.approx(bytes_by_rule(65_536) / bytes_by_rule(300), rel=0.02)
    text = shown(plan)
    assert f"bytes a token: {bytes_by_rule(300):.3g} by the rule for English text and BPE of 300 tokens" in text
    assert f"bytes a token: {bytes_by_rule(65_536):.3g} by the rule" in text


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
