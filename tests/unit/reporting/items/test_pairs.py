"""Two rows on the same items: the counts are those of McNemar's table, and their difference is that of the report."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.contingency_tables import mcnemar

from paribus.config.groups.experiment import default_table
from paribus.reporting.items.pairs import pairs_of
from paribus.reporting.items.scored import all_scored
from paribus.reporting.table.comparison import Comparison, compare
from support.tables import record

ITEMS = 60
ARMS = ("bpe", "scaffold_bpe")


def drawn(seed: int, share: float, shots: Sequence[int] = (0,)) -> dict[tuple[str, int], Any]:
    generator = np.random.default_rng(seed)
    return {("boolq", number): generator.random(ITEMS) < share for number in shots}


def table(
    root: Path, seeds: Mapping[str, Sequence[int]], *, shots: Sequence[int] = (0,), checkpoints: int = 1, **more: Any
) -> Comparison:
    runs = []
    for place, (arm, own) in enumerate(seeds.items()):
        for seed in own:
            number = 100 * place + 10 * seed
            later = [drawn(number + step, 0.4 + 0.2 * place, shots) for step in range(1, checkpoints)]
            generator = np.random.default_rng(number)
            heldout = [(float(700 + 50 * generator.random() - 20 * place), 300 + item) for item in range(ITEMS)]
            scores = {"checkpoints": checkpoints, "later": later, "heldout": heldout, **more}
            accuracy = drawn(number, 0.4 + 0.2 * place, shots)
            runs.append(record(root, f"{arm}{seed}", {"tokenizer": arm}, accuracy, seed=seed, **scores))
    return compare(runs, ["tokenizer"])


@pytest.mark.parametrize(
    "seeds",
    [([0], [0]), ([0, 1, 2], [0, 1, 2]), ([0, 1, 2], [1, 2, 3]), ([0], [0, 1]), ([0, 1], [2, 3])],
    ids=["one", "three", "two in common", "one in common", "none in common"],
)
@pytest.mark.parametrize(("shots", "checkpoints"), [((0,), 1), ((0, 5), 2)])
def test_only_b_less_only_a_is_the_difference_of_the_report(
    seeds: tuple[list[int], list[int]], shots: tuple[int, ...], checkpoints: int, tmp_path: Path
) -> None:
    comparison = table(tmp_path, dict(zip(ARMS, seeds, strict=True)), shots=shots, checkpoints=checkpoints)
    (pair,) = pairs_of(all_scored(comparison)["boolq"], comparison)
    cell = comparison.rows[1].cells["boolq/mean"]
    assert cell.difference is not None
    assert (pair.better_row - pair.better_baseline) / pair.answers == pytest.approx(cell.difference, abs=1e-12)
    assert pair.difference == pytest.approx(cell.difference, abs=1e-12)
    assert pair.both is not None and pair.neither is not None
    assert pair.both + pair.better_row + pair.better_baseline + pair.neither == pair.answers
    assert (pair.both + pair.better_row) / pair.answers == pytest.approx(pair.value_row)
    if seeds[0] == seeds[1]:
        assert pair.answers == ITEMS * len(seeds[0]) * len(shots) * checkpoints
        assert pair.value_row == pytest.approx(cell.value)
        assert pair.value_baseline == pytest.approx(comparison.rows[0].cells["boolq/mean"].value)


def test_of_one_run_a_row_the_counts_are_those_of_the_test_of_the_report(tmp_path: Path) -> None:
    comparison = table(tmp_path, {"bpe": [0], "scaffold_bpe": [0]})
    (pair,) = pairs_of(all_scored(comparison)["boolq"], comparison)
    test = comparison.rows[1].cells["boolq/mean"].test
    assert test is not None and test.test == "McNemar"
    counts = [[pair.both, pair.better_row], [pair.better_baseline, pair.neither]]
    few = pair.better_row + pair.better_baseline < 25
    assert mcnemar(counts, exact=few, correction=False).pvalue == pytest.approx(test.p_value)


@pytest.mark.parametrize("checkpoints", [1, 3])
def test_documents_count_where_either_row_has_fewer_bits(checkpoints: int, tmp_path: Path) -> None:
    comparison = table(tmp_path, {"bpe": [0, 1], "scaffold_bpe": [0, 1]}, checkpoints=checkpoints)
    (pair,) = pairs_of(all_scored(comparison)["heldout"], comparison)
    bits = [
        np.mean([comparison.scores[f"{arm}{seed}"].heldout.bits.mean(axis=0) for seed in (0, 1)], axis=0)
        for arm in ARMS
    ]
    assert (pair.better_row, pair.better_baseline) == (int(np.sum(bits[1] < bits[0])), int(np.sum(bits[0] < bits[1])))
    assert pair.better_row > 0 and pair.better_baseline > 0 and pair.both is None and pair.neither is None
    assert pair.answers == ITEMS
    cell = comparison.rows[1].cells["bits_per_byte"]
    assert (pair.difference, pair.value_row) == (pytest.approx(cell.difference), pytest.approx(cell.value))


def test_a_score_that_is_neither_right_nor_wrong_counts_by_what_is_better(tmp_path: Path) -> None:
    runs = [
        record(tmp_path, arm, {"tokenizer": arm}, {("squad", 0): values}, metric="f1")
        for arm, values in zip(ARMS, ([0.5] * 30 + [0.2] * 10, [0.5] * 20 + [0.9] * 10 + [0.1] * 10), strict=True)
    ]
    comparison = compare(runs, ["tokenizer"])
    scored = all_scored(comparison)["squad"]
    (pair,) = pairs_of(scored, comparison)
    assert (scored.kind, scored.metric) == ("score", "f1")
    assert (pair.better_row, pair.better_baseline, pair.equal, pair.both) == (10, 10, 20, None)


def test_scores_that_seeds_have_in_another_order_are_equal(tmp_path: Path) -> None:
    order = {"bpe": (0.1, 0.2, 0.3), "scaffold_bpe": (0.3, 0.2, 0.1)}
    runs = [
        record(tmp_path, f"{arm}{seed}", {"tokenizer": arm}, {("squad", 0): [value] * 40}, metric="f1", seed=seed)
        for arm, values in order.items()
        for seed, value in enumerate(values)
    ]
    comparison = compare(runs, ["tokenizer"])
    (pair,) = pairs_of(all_scored(comparison)["squad"], comparison)
    assert (pair.better_row, pair.better_baseline, pair.equal) == (0, 0, 40)


def test_a_score_that_happens_to_be_0_or_1_is_no_answer_that_is_right_or_wrong(tmp_path: Path) -> None:
    runs = [
        record(tmp_path, arm, {"tokenizer": arm}, {("qmsum", 0): [0.0] * 40}, metric="rouge_geometric_mean")
        for arm in ARMS
    ]
    assert all_scored(compare(runs, ["tokenizer"]))["qmsum"].kind == "score"


def test_less_is_better_of_bits(tmp_path: Path) -> None:
    runs = [
        record(tmp_path, arm, {"tokenizer": arm}, {("lambada_openai", 0): [bits] * 40}, metric="target_bits")
        for arm, bits in zip(ARMS, (3.5, 2.5), strict=True)
    ]
    comparison = compare(runs, ["tokenizer"])
    (pair,) = pairs_of(all_scored(comparison)["lambada_openai"], comparison)
    assert (pair.better_row, pair.better_baseline) == (40, 0)


def test_a_row_without_runs_is_in_no_pair(tmp_path: Path) -> None:
    comparison = table(tmp_path, {"bpe": [0], "scaffold_bpe": [0]})
    rows = (replace(comparison.rows[0], runs=()), comparison.rows[1])
    assert pairs_of(all_scored(comparison)["boolq"], replace(comparison, rows=rows)) == []


def test_a_run_that_lacks_a_number_of_shots_is_left_out_as_in_the_table(tmp_path: Path) -> None:
    runs = []
    for place, arm in enumerate(ARMS):
        for seed in (0, 1, 2):
            shots = (0,) if (place, seed) == (1, 2) else (0, 5)
            accuracy = drawn(10 * place + seed, 0.5, shots)
            runs.append(record(tmp_path, f"{arm}{seed}", {"tokenizer": arm}, accuracy, seed=seed))
    comparison = compare(runs, ["tokenizer"])
    (pair,) = pairs_of(all_scored(comparison)["boolq"], comparison)
    assert pair.answers == ITEMS * 2 * 2
    assert pair.difference == pytest.approx(comparison.rows[1].cells["boolq/mean"].difference)


def test_each_task_is_looked_at_by_the_one_metric_that_a_table_names_it_by(tmp_path: Path) -> None:
    runs = []
    for arm in ARMS:
        run = record(tmp_path, arm, {"tokenizer": arm}, {("pku", 0): [0.5] * 40}, metric="word_precision")
        assert run.scores is not None
        path = run.scores / "items.parquet"
        precision = pd.read_parquet(path)
        parts = [precision, precision.assign(metric="word_f1"), precision.assign(task="boolq", metric="acc", value=1.0)]
        parts.append(precision.assign(task="boolq", metric="acc_norm", value=0.0))
        pd.concat(parts, ignore_index=True).to_parquet(path)
        runs.append(run)
    for metrics, expected in ((None, "acc"), ({"boolq": "acc_norm"}, "acc_norm")):
        block = replace(default_table(), metrics=metrics, columns=("pku",), groups={"boolq": ["boolq", "boolq"]})
        found = all_scored(compare(runs, ["tokenizer"], table=block))
        assert {name: one.metric for name, one in found.items()} == {"boolq": expected, "pku": "word_f1"}
    for columns, expected in ((("boolq:acc_norm",), "acc_norm"), (("boolq:acc_norm", "boolq"), "acc")):
        found = all_scored(compare(runs, ["tokenizer"], table=replace(default_table(), columns=columns)))
        assert {name: one.metric for name, one in found.items()} == {"boolq": expected, "pku": "word_f1"}
