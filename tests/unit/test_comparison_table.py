from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from paribus.config.groups.experiment import default_table
from paribus.errors import ConfigurationError, DataError
from paribus.reporting.comparison import compare
from paribus.reporting.frame import MissingRun, frame
from paribus.reporting.score_lines import Remembered
from paribus.reporting.scores import load
from reporting_support import FACTORS, demo_runs, record, write_scores

BPE = {"tokenizer": "bpe", "encoder": "merge_rank", "ordering": "standard"}
LBPE = {"tokenizer": "bpe", "encoder": "longest_first", "ordering": "standard"}
ICLM = {"tokenizer": "bpe", "encoder": "merge_rank", "ordering": "in_context"}
ZERO, FIVE = [1, 0, 1, 1, 0, 0], [1, 1, 1, 1, 0, 1]
BETTER = [1, 1, 1, 1, 0, 1]


def test_an_accuracy_is_the_mean_over_items_and_its_error_the_standard_error(tmp_path: Path) -> None:
    run = record(tmp_path, "one", BPE, {("continuation", 0): ZERO, ("continuation", 5): FIVE})
    cells = compare([run], FACTORS).rows[0].cells
    both = (np.array(ZERO) + np.array(FIVE)) / 2
    assert cells["continuation/0_shot"].value == pytest.approx(np.mean(ZERO))
    assert cells["continuation/5_shot"].spread == pytest.approx(stats.sem(FIVE))
    assert cells["continuation/mean"].value == pytest.approx((np.mean(ZERO) + np.mean(FIVE)) / 2)
    assert cells["continuation/mean"].spread == pytest.approx(stats.sem(both))
    assert (cells["continuation/mean"].items, cells["continuation/mean"].over) == (6, "items")


def test_checkpoints_are_averaged_item_by_item(tmp_path: Path) -> None:
    directory = write_scores(tmp_path / "scores", {("continuation", 0): ZERO}, heldout=[(8, 4)], checkpoints=3)
    scores = load(directory)
    assert scores.checkpoints == 3
    block = scores.blocks["continuation", 0, "acc"]
    assert block.items == tuple(f"continuation-{item:04d}" for item in range(len(ZERO)))
    assert block.values.tolist() == [ZERO] * 3
    assert (scores.heldout.documents, scores.heldout.bytes.tolist()) == (("doc-000",), [4])
    assert scores.heldout.bits.tolist() == [[8]] * 3


def test_the_average_over_tasks_weighs_tasks_equally_and_keeps_the_stratified_error(tmp_path: Path) -> None:
    large, small = [1, 0, 1, 0, 1, 1, 0, 1], [0, 0, 1]
    run = record(tmp_path, "one", BPE, {("boolq", 0): large, ("piqa", 0): small})
    cell = compare([run], FACTORS).rows[0].cells["average"]
    assert cell.value == pytest.approx((np.mean(large) + np.mean(small)) / 2)
    variances = [np.var(values) / len(values) for values in (large, small)]
    assert cell.spread == pytest.approx(np.sqrt(sum(variances)) / 2 * np.sqrt(11 / 10))


def test_bits_per_byte_is_total_bits_over_total_bytes_with_the_ratio_s_error(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    sizes = generator.integers(50, 2_000, 400)
    bits = sizes * generator.normal(2.0, 0.1, 400)
    run = record(tmp_path, "one", BPE, {}, heldout=list(zip(bits, sizes, strict=True)))
    cell = compare([run], FACTORS).rows[0].cells["bits_per_byte"]
    assert cell.value == pytest.approx(bits.sum() / sizes.sum())
    draws = [generator.integers(0, 400, 400) for _ in range(2_000)]
    bootstrap = np.std([bits[draw].sum() / sizes[draw].sum() for draw in draws])
    assert cell.spread == pytest.approx(bootstrap, rel=0.1)


def test_each_cell_is_tested_against_the_first_row_and_adjusted_over_the_table(tmp_path: Path) -> None:
    runs = [
        record(tmp_path, "one", BPE, {("continuation", 0): ZERO * 20, ("boolq", 0): ZERO * 20}),
        record(tmp_path, "two", LBPE, {("continuation", 0): BETTER * 20, ("boolq", 0): ZERO * 20}),
    ]
    comparison = compare(runs, FACTORS)
    first, second = comparison.rows
    assert all(cell.test is None for cell in first.cells.values())
    expected = mcnemar([[60, 0], [40, 20]], exact=False, correction=False)
    cell = second.cells["continuation/mean"]
    assert cell.test is not None
    assert cell.test.p_value == pytest.approx(expected.pvalue, rel=1e-6, abs=0)
    assert cell.test.difference == pytest.approx(2 / 6)
    average = second.cells["average"]
    assert average.test is not None
    assert average.test.p_value < cell.test.p_value
    assert average.p_holm == pytest.approx(3 * average.test.p_value, rel=1e-9, abs=0)
    assert cell.p_holm == pytest.approx(2 * cell.test.p_value, rel=1e-9, abs=0)
    assert second.cells["boolq/mean"].p_holm == 1
    assert (cell.best, first.cells["continuation/mean"].best) == (True, False)
    assert first.cells["boolq/mean"].best is second.cells["boolq/mean"].best is True


def test_several_seeds_show_their_spread_and_are_tested_seed_by_seed_too(tmp_path: Path) -> None:
    items = np.random.default_rng(0).random((2, 3, 300)) < np.array([[0.4], [0.5], [0.6]])
    runs = [
        record(tmp_path, f"{index}{seed}", labels, {("continuation", 0): items[index, seed]}, seed=seed)
        for index, labels in enumerate((BPE, LBPE))
        for seed in range(3)
    ]
    comparison = compare(runs, FACTORS)
    assert [len(row.runs) for row in comparison.rows] == [3, 3]
    cell, means = comparison.rows[1].cells["continuation/mean"], items.mean(axis=2)
    assert cell.value == pytest.approx(means[1].mean())
    assert (cell.spread, cell.over) == (pytest.approx(np.std(means[1], ddof=1)), "seeds")
    assert cell.test is not None
    assert cell.seeds_test is not None
    assert cell.test.p_value == pytest.approx(stats.ttest_rel(items[1].mean(axis=0), items[0].mean(axis=0)).pvalue)
    assert cell.seeds_test.p_value == pytest.approx(stats.ttest_rel(means[1], means[0]).pvalue)
    assert cell.p_holm == pytest.approx(max(cell.test.p_value, cell.seeds_test.p_value))


def test_rows_stand_in_the_order_of_their_labels_first_appearance(tmp_path: Path) -> None:
    runs = demo_runs(tmp_path, items=5, curves=False)
    shuffled = [runs[0], runs[7], runs[3], runs[2], runs[1], runs[6], runs[5], runs[4]]
    rows = compare(shuffled, FACTORS).rows
    assert [row.labels[0] for row in rows] == ["bpe"] * 4 + ["scaffold_bpe"] * 4
    assert rows[0].labels == ("bpe", "merge_rank", "standard")


def test_a_missing_run_is_a_row_without_numbers(tmp_path: Path) -> None:
    run = record(tmp_path, "one", BPE, {("continuation", 0): ZERO})
    rows = compare([run], FACTORS, [MissingRun(LBPE, "interrupted"), MissingRun(BPE, "seed 1: failed")]).rows
    assert [row.missing for row in rows] == [("seed 1: failed",), ("interrupted",)]
    assert all(cell.value is None for cell in rows[1].cells.values())


def test_a_run_that_was_not_evaluated_keeps_its_training_numbers(tmp_path: Path) -> None:
    runs = [record(tmp_path, "one", BPE, {("boolq", 0): ZERO}), record(tmp_path, "two", ICLM, {})]
    comparison = compare([runs[0], replace(runs[1], scores=None)], FACTORS)
    cells = comparison.rows[1].cells
    assert (cells["boolq/mean"].value, cells["tokens"].value, cells["final_loss"].value) == (None, 1_000_000, 4.0)


def test_nan_stays_nan_is_never_best_and_is_not_tested(tmp_path: Path) -> None:
    runs = [
        record(tmp_path, "one", BPE, {("boolq", 0): ZERO}),
        record(
            tmp_path, "two", ICLM, {("boolq", 0): [np.nan, *BETTER[1:]]}, training={"tokens": 5, "final_loss": np.nan}
        ),
    ]
    first, second = compare(runs, FACTORS).rows
    cell = second.cells["boolq/mean"]
    assert cell.value is not None
    assert np.isnan(cell.value)
    assert (cell.best, cell.test, cell.spread) == (False, None, None)
    assert np.isnan(second.cells["final_loss"].value or 0)
    assert first.cells["boolq/mean"].best is False


def test_the_frame_has_one_line_an_item_with_the_factors_of_its_run(tmp_path: Path) -> None:
    runs = demo_runs(tmp_path, items=4, curves=False)
    table = frame(runs)
    assert list(table.columns[:5]) == ["run_id", *FACTORS, "seed"]
    assert len(table) == 8 * 2 * 4
    assert frame([replace(runs[0], scores=None)]).empty


@pytest.mark.parametrize("name", ["items.parquet", "heldout.parquet"])
def test_a_missing_scores_file_is_named(tmp_path: Path, name: str) -> None:
    directory = write_scores(tmp_path / "scores", {("boolq", 0): ZERO})
    (directory / name).unlink()
    with pytest.raises(DataError, match=f"{name} is missing"):
        load(directory)


def test_a_repeated_item_is_refused(tmp_path: Path) -> None:
    import pandas as pd

    directory = write_scores(tmp_path / "scores", {("boolq", 0): ZERO})
    table = pd.read_parquet(directory / "items.parquet")
    pd.concat([table, table.head(1)]).to_parquet(directory / "items.parquet")
    with pytest.raises(DataError, match="1 repeated lines, the first at checkpoint 0, task boolq, shots 0"):
        load(directory)


def test_checkpoints_scored_on_different_items_are_refused(tmp_path: Path) -> None:
    import pandas as pd

    directory = write_scores(tmp_path / "scores", {("boolq", 0): ZERO}, checkpoints=2)
    pd.read_parquet(directory / "items.parquet").iloc[1:].to_parquet(directory / "items.parquet")
    with pytest.raises(DataError, match="not scored on the same lines"):
        load(directory)


def test_a_scores_table_without_a_column_is_refused(tmp_path: Path) -> None:
    import pandas as pd

    directory = write_scores(tmp_path / "scores", {("boolq", 0): ZERO})
    pd.read_parquet(directory / "items.parquet").drop(columns="doc_hash").to_parquet(directory / "items.parquet")
    with pytest.raises(DataError, match="lacks the columns doc_hash"):
        load(directory)


def test_runs_scored_on_the_same_lines_share_them_whatever_their_steps_and_values(tmp_path: Path) -> None:
    runs = demo_runs(tmp_path, curves=False, items=40)
    directory = tmp_path / "artifacts" / runs[1].run_id
    for path in (directory / "items.parquet", directory / "heldout.parquet"):
        lines = pd.read_parquet(path)
        lines.assign(checkpoint=lines["checkpoint"] + 500).to_parquet(path)
    changed = tmp_path / "artifacts" / runs[2].run_id / "items.parquet"
    pd.read_parquet(changed).replace({"item": {"continuation-0003": "other"}}).to_parquet(changed)
    remembered = Remembered()
    first, second, third = (load(tmp_path / "artifacts" / run.run_id, remembered=remembered) for run in runs[:3])
    key = ("continuation", 0, "acc")
    assert second.blocks[key].items is first.blocks[key].items
    assert second.content == first.content and third.content != first.content
    assert "other" in third.blocks[key].items
    for shared, run in zip((first, second, third), runs, strict=False):
        alone = load(tmp_path / "artifacts" / run.run_id)
        assert (shared.blocks[key].values == alone.blocks[key].values).all()
        assert (shared.heldout.bits == alone.heldout.bits).all()
        assert shared.content == alone.content


def test_loss_per_token_is_shown_only_where_all_runs_have_the_same_tokens(tmp_path: Path) -> None:
    runs = [
        record(tmp_path, str(place), labels, {("boolq", 0): ZERO}) for place, labels in enumerate((BPE, LBPE, ICLM))
    ]
    table = replace(default_table(), columns=("final_loss",))
    assert "final_loss" in {column.key for column in compare([runs[0], runs[2]], FACTORS).columns}
    assert "final_loss" not in {column.key for column in compare(runs, FACTORS).columns}
    with pytest.raises(ConfigurationError, match="final_loss is per token, and these runs have different tokens"):
        compare(runs, FACTORS, (), table)
