"""What runs may differ in to stand in one table, and how a refusal and `--why` name the rest."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from paribus.errors import ConfigurationError
from paribus.reporting.compare import compare
from paribus.reporting.fairness import FairnessError, differences
from paribus.reporting.runs import FinishedRun
from support.tables import ENVIRONMENT, FACTORS, config_of, record, with_texts

BPE = {"tokenizer": "bpe", "encoder": "merge_rank", "ordering": "standard"}
SCAFFOLD = {"tokenizer": "scaffold_bpe", "encoder": "merge_rank", "ordering": "in_context"}
ACCURACY = {("continuation", 0): [1, 0, 1, 1], ("continuation", 5): [1, 1, 1, 1]}


@pytest.fixture
def pair(tmp_path: Path) -> list[FinishedRun]:
    return [record(tmp_path, "one", BPE, ACCURACY), record(tmp_path, "two", SCAFFOLD, ACCURACY)]


def paths(runs: Sequence[FinishedRun], factors: tuple[str, ...] = FACTORS) -> list[str]:
    return [difference.path for difference in differences(runs, factors)]


def refused_paths(runs: Sequence[FinishedRun], factors: tuple[str, ...] = FACTORS) -> tuple[list[str], str]:
    with pytest.raises(FairnessError) as error:
        compare(runs, factors)
    return [difference.path for difference in error.value.differences], str(error.value)


def test_factors_cover_everything_below_them_and_nothing_beside_them(pair: list[FinishedRun]) -> None:
    assert paths(pair) == []
    pair[1] = replace(pair[1], config=config_of(SCAFFOLD, seed=7, tokenizer__vocab_size=8192))
    assert paths(pair) == []  # seeds may differ, too
    assert paths(pair, ("tokenizer.kind", "ordering")) == ["tokenizer.vocab_size"]
    assert paths(pair, ("token", "ordering")) == ["tokenizer.kind", "tokenizer.vocab_size"]


def test_a_field_that_only_one_run_has_is_a_difference(pair: list[FinishedRun]) -> None:
    (difference,) = differences(pair, ("tokenizer", "ordering.kind"))
    assert difference.path == "ordering.neighbours"
    assert difference.values == (("nothing", ("one",)), ("10", ("two",)))


def test_the_refusal_lists_every_other_setting_and_environment_by_path(pair: list[FinishedRun]) -> None:
    environment = {**ENVIRONMENT, "torch": "2.12.0", "digest.corpus": "dead" * 12}
    config = config_of(SCAFFOLD, model__width=256, training__betas=[0.9, 0.99], corpus__limit=10)
    pair[1] = replace(pair[1], config=config, environment=environment)
    refused, message = refused_paths(pair)
    assert refused == [
        "corpus.limit", "environment.digest.corpus", "environment.torch", "model.width", "training.betas",
    ]  # fmt: skip
    assert "model.width: 128 in one; 256 in two" in message


def test_stages_and_files_that_only_some_runs_need_are_no_difference_and_others_are(pair: list[FinishedRun]) -> None:
    one, two = pair
    without_device = {key: value for key, value in ENVIRONMENT.items() if key != "device"}
    version = {"code_version.vocabulary": "3"}

    def environments(first: dict[str, str], second: dict[str, str]) -> list[str]:
        return paths([replace(one, environment=ENVIRONMENT | first), replace(two, environment=ENVIRONMENT | second)])

    assert environments(version, version | {"code_version.neighbours": "1"}) == []
    assert environments(version, {"code_version.vocabulary": "4"}) == ["environment.code_version.vocabulary"]
    assert paths([one, replace(two, environment=without_device)]) == ["environment.device"]

    two = with_files(two, embedder={"model.safetensors": "aa"})
    for files, expected in (
        ({}, []),
        ({"model.safetensors": "bb"}, ["model.safetensors"]),
        ({"weights.bin": "aa"}, ["model.safetensors", "weights.bin"]),
    ):
        others = [with_files(one, embedder=files) if files else one, two]
        assert paths(others) == [f"fingerprints.embedder.{name}" for name in expected]


def with_files(run: FinishedRun, **fingerprints: Any) -> FinishedRun:
    return replace(run, config={**run.config, "fingerprints": fingerprints})


def test_a_factor_covers_the_files_it_names(pair: list[FinishedRun]) -> None:
    runs = [
        with_files(
            replace(run, config={**run.config, "embedder": {"pooling": "mean"}}), embedder={"model.safetensors": digest}
        )
        for run, digest in zip(pair, ("aa", "bb"), strict=True)
    ]
    covered = {factor: paths(runs, (*FACTORS, factor)) == [] for factor in ("embedder", "embedder.path")}
    assert covered == {"embedder": True, "embedder.path": True}
    assert paths(runs, (*FACTORS, "embedder.pooling")) == ["fingerprints.embedder.model.safetensors"]


def test_different_items_documents_texts_and_checkpoints_are_refused(tmp_path: Path) -> None:
    def refused(name: str, first: dict[str, Any], second: dict[str, Any]) -> tuple[list[str], str]:
        pair = (("one", BPE, first), ("two", SCAFFOLD, second))
        return refused_paths([
            record(tmp_path / name, run, labels, **({"accuracy": ACCURACY} | scores)) for run, labels, scores in pair
        ])  # fmt: skip

    longer = {key: [*values, 0] for key, values in ACCURACY.items()}
    _, message = refused("items", {}, {"accuracy": longer})
    assert "scores.continuation.0_shot: 4 lines" in message and "in one; 5 lines" in message
    runs = [record(tmp_path / "hashes", name, labels, ACCURACY) for name, labels in (("one", BPE), ("two", SCAFFOLD))]
    assert runs[1].scores is not None
    items = pd.read_parquet(runs[1].scores / "items.parquet")
    items.assign(doc_hash=items["doc_hash"] + "x").to_parquet(runs[1].scores / "items.parquet")
    assert refused_paths(runs)[0] == ["scores.continuation.0_shot", "scores.continuation.5_shot"]
    heldout, _ = refused("heldout", {"heldout": [(10, 5)], "checkpoints": 2}, {"heldout": [(10, 6)]})
    assert heldout == ["scores.checkpoints", "scores.heldout"]
    books = [(10.0, 4)] * 3
    runs = [record(tmp_path / "texts", name, labels, {}) for name, labels in (("one", BPE), ("two", SCAFFOLD))]
    assert refused_paths([with_texts(runs[0], books=books), with_texts(runs[1], books=books[:2])])[0] == [
        "scores.texts.books"
    ]


def checkpoints(run: FinishedRun, number: int, scored: int, averaged: int = 1, **factors: int) -> FinishedRun:
    """The run with so many checkpoints, of which the last are scored and averaged."""
    config = dict(run.config) | {"evaluation": {"last_checkpoints": scored, "average_checkpoints": averaged}}
    config["training"] = {**run.config["training"], "checkpoints": number}
    labels = {name.replace("__", "."): str(value) for name, value in factors.items()}
    return replace(run, config=config, factors={**run.factors, **labels})


def test_several_last_checkpoints_are_compared_only_at_equal_shares_of_the_budgets(pair: list[FinishedRun]) -> None:
    one, two = pair
    factors = (*FACTORS, "training.checkpoints")
    for scored, averaged in ((2, 1), (1, 2)):
        apart = [checkpoints(run, n, scored, averaged, training__checkpoints=n) for run, n in ((one, 4), (two, 5))]
        refused, message = refused_paths(apart, factors)
        assert refused == ["training.checkpoints"] and "stand at other shares of their budgets" in message
        assert len(compare([checkpoints(run, 4, scored, averaged) for run in pair], FACTORS).rows) == 2
    last = [checkpoints(run, n, 1, training__checkpoints=n) for run, n in ((one, 4), (two, 5))]
    assert len(compare(last, factors).rows) == 2


def test_one_label_for_two_configurations_is_refused(tmp_path: Path) -> None:
    config = config_of(BPE, seed=1, tokenizer__vocab_size=8192)
    runs = [record(tmp_path, "one", BPE, ACCURACY), record(tmp_path, "two", BPE, ACCURACY, seed=1, config=config)]
    with pytest.raises(FairnessError, match=r"same labels .*\n  tokenizer.vocab_size: 4096 in one; 8192 in two"):
        compare(runs, FACTORS)


def test_a_seed_twice_a_run_without_a_label_and_no_runs_are_refused(tmp_path: Path) -> None:
    one, twice = (record(tmp_path, name, BPE, ACCURACY) for name in ("one", "two"))
    unlabelled = record(tmp_path, "three", {"tokenizer": "bpe"}, ACCURACY)
    for runs, message in (
        ([one, twice], "with seed 0 was given twice: runs one, two"),
        ([unlabelled], "run three has no label for the declared factor encoder, ordering"),
        ([], "paribus status"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            compare(runs, FACTORS)
