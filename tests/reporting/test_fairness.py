from dataclasses import replace
from pathlib import Path

import pytest

from paribus.errors import ConfigurationError
from paribus.reporting.compare import compare
from paribus.reporting.fairness import FairnessError, differences, proof
from paribus.reporting.runs import FinishedRun
from support.tables import ENVIRONMENT, FACTORS, config_of, record

BPE = {"tokenizer": "bpe", "encoder": "merge_rank", "ordering": "standard"}
SCAFFOLD = {"tokenizer": "scaffold_bpe", "encoder": "merge_rank", "ordering": "in_context"}
ACCURACY = {("continuation", 0): [1, 0, 1, 1], ("continuation", 5): [1, 1, 1, 1]}


@pytest.fixture
def pair(tmp_path: Path) -> list[FinishedRun]:
    return [record(tmp_path, "one", BPE, ACCURACY), record(tmp_path, "two", SCAFFOLD, ACCURACY)]


def paths(runs: list[FinishedRun], factors: tuple[str, ...] = FACTORS) -> list[str]:
    return [difference.path for difference in differences(runs, factors)]


def test_runs_that_differ_in_declared_factors_only_are_equal_otherwise(pair: list[FinishedRun]) -> None:
    assert paths(pair) == []


def test_a_factor_covers_everything_below_it_and_nothing_beside_it(pair: list[FinishedRun]) -> None:
    pair[1] = replace(pair[1], config=config_of(SCAFFOLD, tokenizer__vocab_size=8192))
    assert paths(pair) == []
    assert paths(pair, ("tokenizer.kind", "ordering")) == ["tokenizer.vocab_size"]
    assert paths(pair, ("token", "ordering")) == ["tokenizer.kind", "tokenizer.vocab_size"]


def test_a_field_that_only_one_run_has_is_a_difference(pair: list[FinishedRun]) -> None:
    found = differences(pair, ("tokenizer", "ordering.kind"))
    assert [(item.path, item.values) for item in found] == [
        ("ordering.neighbours", (("nothing", ("one",)), ("10", ("two",))))
    ]


def test_seeds_may_differ(pair: list[FinishedRun]) -> None:
    pair[1] = replace(pair[1], config=config_of(SCAFFOLD, seed=7))
    assert paths(pair) == []


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"model__width": 256}, "model.width"),
        ({"training__betas": [0.9, 0.99]}, "training.betas"),
        ({"corpus__limit": 10}, "corpus.limit"),
    ],
)
def test_any_other_setting_is_refused_by_its_path(pair: list[FinishedRun], changes: dict, path: str) -> None:
    pair[1] = replace(pair[1], config=config_of(SCAFFOLD, **changes))
    with pytest.raises(FairnessError, match=path) as caught:
        compare(pair, FACTORS)
    assert [difference.path for difference in caught.value.differences] == [path]
    assert "in one" in str(caught.value)
    assert "in two" in str(caught.value)


def test_the_refusal_lists_every_difference_at_once(pair: list[FinishedRun]) -> None:
    environment = {**ENVIRONMENT, "torch": "2.12.0", "digest.corpus": "dead" * 12}
    pair[1] = replace(pair[1], config=config_of(SCAFFOLD, model__width=256), environment=environment)
    with pytest.raises(FairnessError) as caught:
        compare(pair, FACTORS)
    found = [difference.path for difference in caught.value.differences]
    assert found == ["environment.digest.corpus", "environment.torch", "model.width"]
    assert "model.width: 128 in one; 256 in two" in str(caught.value)


def test_a_stage_that_only_some_runs_need_is_no_difference(pair: list[FinishedRun]) -> None:
    versions = {"code_version.vocabulary": "3"}
    pair[0] = replace(pair[0], environment={**ENVIRONMENT, **versions})
    pair[1] = replace(pair[1], environment={**ENVIRONMENT, **versions, "code_version.neighbours": "1"})
    assert paths(pair) == []
    pair[1] = replace(pair[1], environment={**ENVIRONMENT, "code_version.vocabulary": "4"})
    assert paths(pair) == ["environment.code_version.vocabulary"]


def with_files(run: FinishedRun, **fingerprints: object) -> FinishedRun:
    return replace(run, config={**run.config, "fingerprints": fingerprints})


def test_files_that_only_some_runs_read_are_no_difference_but_other_files_are(pair: list[FinishedRun]) -> None:
    pair[1] = with_files(pair[1], embedder={"model.safetensors": "aa"})
    assert paths(pair) == []
    pair[0] = with_files(pair[0], embedder={"model.safetensors": "bb"})
    assert paths(pair) == ["fingerprints.embedder.model.safetensors"]
    pair[0] = with_files(pair[0], embedder={"weights.bin": "aa"})
    assert paths(pair) == ["fingerprints.embedder.model.safetensors", "fingerprints.embedder.weights.bin"]


@pytest.mark.parametrize(
    ("factor", "equal"), [("embedder", True), ("embedder.path", True), ("embedder.pooling", False)]
)
def test_a_factor_covers_the_files_it_names(pair: list[FinishedRun], factor: str, equal: bool) -> None:
    for position, digest in enumerate(("aa", "bb")):
        config = {**pair[position].config, "embedder": {"pooling": "mean"}}
        pair[position] = with_files(replace(pair[position], config=config), embedder={"model.safetensors": digest})
    assert (paths(pair, (*FACTORS, factor)) == []) == equal


def test_an_environment_entry_that_one_run_lacks_is_a_difference(pair: list[FinishedRun]) -> None:
    pair[1] = replace(pair[1], environment={key: value for key, value in ENVIRONMENT.items() if key != "device"})
    assert paths(pair) == ["environment.device"]


def test_different_items_of_a_task_are_refused(tmp_path: Path) -> None:
    longer = {key: [*values, 0] for key, values in ACCURACY.items()}
    runs = [record(tmp_path, "one", BPE, ACCURACY), record(tmp_path, "two", SCAFFOLD, longer)]
    with pytest.raises(FairnessError, match=r"scores\.continuation\.0_shot: 4 lines .* in one; 5 lines"):
        compare(runs, FACTORS)


def test_different_held_out_documents_and_checkpoints_are_refused(tmp_path: Path) -> None:
    runs = [
        record(tmp_path, "one", BPE, ACCURACY, heldout=[(10, 5)], checkpoints=2),
        record(tmp_path, "two", SCAFFOLD, ACCURACY, heldout=[(10, 6)]),
    ]
    with pytest.raises(FairnessError) as caught:
        compare(runs, FACTORS)
    assert [difference.path for difference in caught.value.differences] == ["scores.checkpoints", "scores.heldout"]


def shares(run: FinishedRun, checkpoints: int, scored: int, averaged: int = 1) -> FinishedRun:
    config = dict(run.config) | {"evaluation": {"last_checkpoints": scored, "average_checkpoints": averaged}}
    return replace(run, config=config | {"training": {**run.config["training"], "checkpoints": checkpoints}})


def test_means_over_the_last_shares_of_budgets_are_compared_where_the_shares_are_as_long(
    pair: list[FinishedRun],
) -> None:
    factors = (*FACTORS, "training.checkpoints")
    labelled = [
        replace(run, factors={**run.factors, "training.checkpoints": str(number)})
        for run, number in zip(pair, (4, 5), strict=True)
    ]
    one, several = ([shares(run, 4 + place, scored) for place, run in enumerate(labelled)] for scored in (1, 2))
    assert len(compare(one, factors).rows) == 2
    with pytest.raises(FairnessError, match="stand at other shares of their budgets") as error:
        compare(several, factors)
    assert [difference.path for difference in error.value.differences] == ["training.checkpoints"]
    with pytest.raises(FairnessError, match="stand at other shares of their budgets"):
        compare([shares(run, 4 + place, 1, averaged=2) for place, run in enumerate(labelled)], factors)
    assert len(compare([shares(run, 4, 2) for run in pair], FACTORS).rows) == 2
    assert len(compare([shares(run, 4, 1, averaged=2) for run in pair], FACTORS).rows) == 2


def test_how_many_checkpoints_are_averaged_may_be_a_factor_and_differs_else(pair: list[FinishedRun]) -> None:
    averaged = [shares(run, 4, 1, averaged=1 + place) for place, run in enumerate(pair)]
    with pytest.raises(FairnessError) as error:
        compare(averaged, FACTORS)
    assert [difference.path for difference in error.value.differences] == ["evaluation.average_checkpoints"]
    labelled = [
        replace(run, factors={**run.factors, "evaluation.average_checkpoints": str(1 + place)})
        for place, run in enumerate(averaged)
    ]
    assert len(compare(labelled, (*FACTORS, "evaluation.average_checkpoints")).rows) == 2


def test_one_label_for_two_configurations_is_refused(tmp_path: Path) -> None:
    config = config_of(BPE, seed=1, tokenizer__vocab_size=8192)
    runs = [record(tmp_path, "one", BPE, ACCURACY), record(tmp_path, "two", BPE, ACCURACY, seed=1, config=config)]
    with pytest.raises(FairnessError, match=r"same labels .*\n  tokenizer.vocab_size: 4096 in one; 8192 in two"):
        compare(runs, FACTORS)


def test_the_same_seed_twice_is_refused(tmp_path: Path) -> None:
    runs = [record(tmp_path, "one", BPE, ACCURACY), record(tmp_path, "two", BPE, ACCURACY)]
    with pytest.raises(ConfigurationError, match="with seed 0 was given twice: runs one, two"):
        compare(runs, FACTORS)


def test_a_run_without_a_label_is_refused_by_name(tmp_path: Path) -> None:
    runs = [record(tmp_path, "one", {"tokenizer": "bpe"}, ACCURACY)]
    with pytest.raises(ConfigurationError, match="run one has no label for the declared factor encoder, ordering"):
        compare(runs, FACTORS)


def test_no_runs_is_an_error_that_says_where_to_look() -> None:
    with pytest.raises(ConfigurationError, match="paribus status"):
        compare([], FACTORS)


def test_the_proof_counts_what_was_equal(pair: list[FinishedRun]) -> None:
    found = proof(pair, FACTORS)
    # corpus.kind, corpus.limit, model.width, model.layers, training.learning_rate, training.betas
    assert (found.runs, found.settings, found.environment) == (2, 6, 3)
    assert found.data == (("corpus", "c0ffee" * 8),)
    assert found.tokens == "1.0M tokens in every run"
    assert found.text == "3.3 MiB of text in every run"
    changed = [replace(run, config={**run.config, "model": {"width": 64, "layers": 4}}) for run in pair]
    assert proof(changed, FACTORS).digest != found.digest
    assert proof(list(reversed(pair)), FACTORS).digest == found.digest
