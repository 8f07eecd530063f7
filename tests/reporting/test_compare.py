from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from paribus.config.groups.evaluation import TableConfig, default_table
from paribus.errors import ConfigurationError, DataError
from paribus.reporting.compare import Comparison, compare
from paribus.reporting.runs import FinishedRun, MissingRun, Remembered, load_scores
from paribus.reporting.significance import crossed_test, judged_together, pooled_variance
from paribus.reporting.table import layouts
from paribus.reporting.verdict import summary
from support.tables import FACTORS, demo_runs, notes, record, write_scores

BPE = {"tokenizer": "bpe", "encoder": "merge_rank", "ordering": "standard"}
LBPE = {"tokenizer": "bpe", "encoder": "longest_first", "ordering": "standard"}
ICLM = {"tokenizer": "bpe", "encoder": "merge_rank", "ordering": "in_context"}
ZERO, FIVE = [1, 0, 1, 1, 0, 0] * 5, [1, 1, 1, 1, 0, 1] * 5
BETTER = [1, 1, 1, 1, 0, 1] * 5


def test_an_accuracy_is_the_mean_over_items_and_its_error_the_standard_error(tmp_path: Path) -> None:
    run = record(tmp_path, "one", BPE, {("continuation", 0): ZERO, ("continuation", 5): FIVE})
    cells = compare([run], FACTORS).rows[0].cells
    both = (np.array(ZERO) + np.array(FIVE)) / 2
    assert cells["continuation/0_shot"].value == pytest.approx(np.mean(ZERO))
    assert cells["continuation/5_shot"].error == pytest.approx(stats.sem(FIVE))
    assert cells["continuation/mean"].value == pytest.approx((np.mean(ZERO) + np.mean(FIVE)) / 2)
    assert cells["continuation/mean"].error == pytest.approx(stats.sem(both))
    assert (cells["continuation/mean"].items, cells["continuation/mean"].half_width) == (30, None)


def test_checkpoints_are_averaged_item_by_item(tmp_path: Path) -> None:
    directory = write_scores(tmp_path / "scores", {("continuation", 0): ZERO}, heldout=[(8, 4)], checkpoints=3)
    scores = load_scores(directory)
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
    assert cell.error == pytest.approx(np.sqrt(sum(variances)) / 2 * np.sqrt(11 / 10))


def test_bits_per_byte_is_total_bits_over_total_bytes_with_the_ratio_s_error(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    sizes = generator.integers(50, 2_000, 400)
    bits = sizes * generator.normal(2.0, 0.1, 400)
    run = record(tmp_path, "one", BPE, {}, heldout=list(zip(bits, sizes, strict=True)))
    cell = compare([run], FACTORS).rows[0].cells["bits_per_byte"]
    assert cell.value == pytest.approx(bits.sum() / sizes.sum())
    draws = [generator.integers(0, 400, 400) for _ in range(2_000)]
    bootstrap = np.std([bits[draw].sum() / sizes[draw].sum() for draw in draws])
    assert cell.error == pytest.approx(bootstrap, rel=0.1)


def test_one_seed_judges_no_model(tmp_path: Path) -> None:
    runs = [
        record(tmp_path, "one", BPE, {("continuation", 0): ZERO * 4, ("boolq", 0): ZERO * 4}),
        record(tmp_path, "two", LBPE, {("continuation", 0): BETTER * 4, ("boolq", 0): ZERO * 4}),
    ]
    first, second = compare(runs, FACTORS).rows
    assert all(cell.test is None for cell in first.cells.values())
    expected = mcnemar([[60, 0], [40, 20]], exact=False, correction=False)
    cell = second.cells["continuation/mean"]
    assert cell.test is not None
    assert cell.test.p_value == pytest.approx(expected.pvalue, rel=1e-6, abs=0)
    assert cell.difference == cell.test.difference == pytest.approx(2 / 6)
    for row in (first, second):
        for key in ("continuation/mean", "boolq/mean", "average"):
            found = row.cells[key]
            assert (found.p_value, found.p_adjusted, found.detectable, found.interval, found.best) == (None,) * 4 + (
                False,
            )


def test_two_seeds_have_a_difference_and_nothing_more(tmp_path: Path) -> None:
    runs = seeds_of(tmp_path, 2)
    comparison = compare(runs, FACTORS)
    cell = comparison.rows[1].cells["continuation/mean"]
    assert cell.crossed is not None
    assert cell.difference == cell.crossed.difference
    assert (cell.half_width, cell.interval, cell.p_value, cell.p_adjusted, cell.detectable) == (None,) * 5
    assert not any(row.cells["continuation/mean"].best for row in comparison.rows)


def test_scores_that_no_training_has_part_in_are_judged_with_one_seed(tmp_path: Path) -> None:
    runs = [
        record(tmp_path, name, labels, {("gold", 0): values}, metric="word_f1")
        for name, labels, values in (("one", BPE, [0.2, 0.5, 0.4] * 20), ("two", LBPE, [0.6, 0.7, 0.9] * 20))
    ]
    comparison = compare(runs, FACTORS)
    (column,) = (column for column in comparison.columns if column.scored)
    cell = comparison.rows[1].cells[column.key]
    assert cell.test is not None
    assert cell.p_value == cell.p_adjusted == pytest.approx(cell.test.p_value)
    assert cell.interval == pytest.approx((cell.test.low, cell.test.high))
    assert cell.best
    assert layouts(comparison, tmp_path)[0].note == "±: half the 95 % interval over items alone"
    assert "seed cannot say" not in " ".join(notes(comparison))


def seeds_of(root: Path, seeds: int, labels: Sequence[Mapping[str, str]] = (BPE, LBPE)) -> list[FinishedRun]:
    generator = np.random.default_rng(0)
    items = generator.random((len(labels), seeds, 300)) < 0.4 + 0.1 * generator.random((len(labels), seeds, 1))
    return [
        record(root, f"{index}{seed}", row, {("continuation", 0): items[index, seed]}, seed=seed)
        for index, row in enumerate(labels)
        for seed in range(seeds)
    ]


def test_several_seeds_are_tested_over_seeds_and_items_and_adjusted_over_the_table(tmp_path: Path) -> None:
    labels = (BPE, LBPE, ICLM)
    runs = seeds_of(tmp_path, 3, labels)
    comparison = compare(runs, FACTORS)
    assert [len(row.runs) for row in comparison.rows] == [3, 3, 3]
    key = "continuation/mean"
    scored = [column.key for column in comparison.columns if column.scored]
    block = ("continuation", 0, "acc")
    values = np.stack(
        [[load_scores(run.scores).blocks[block].values[0] for run in row.runs] for row in comparison.rows]
    )
    means = values.mean(axis=2)
    cells = [row.cells[key] for row in comparison.rows]
    assert [cell.value for cell in cells] == pytest.approx(means.mean(axis=1).tolist())
    assert [cell.seed_spread for cell in cells] == pytest.approx(np.std(means, axis=1, ddof=1).tolist())
    pooled = pooled_variance(means)
    assert pooled is not None
    expected = [crossed_test((values[row] - values[0]).astype(float), 1.0, pooled.times(2)) for row in (1, 2)]
    assert [cell.p_value for cell in cells[1:]] == [test.p_value for test in expected]
    measures = len(comparison.primary)
    assert measures == len(scored)
    weights = [{row: 1.0, 0: -1.0} for row in (1, 2)]
    assert [(cell.crossed, cell.p_adjusted) for cell in cells[1:]] == judged_together(expected, weights, measures)
    assert sum(cell.best for cell in cells) == 1


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
    assert (cell.best, cell.test, cell.half_width) == (False, None, None)
    assert np.isnan(second.cells["final_loss"].value or 0)
    assert first.cells["boolq/mean"].best is False


def test_scores_that_cannot_be_right_are_refused(tmp_path: Path) -> None:
    def damaged(name: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> str:
        directory = write_scores(tmp_path / name, {("boolq", 0): ZERO}, checkpoints=2)
        path = directory / "items.parquet"
        change(pd.read_parquet(path)).to_parquet(path)
        with pytest.raises(DataError) as refused:
            load_scores(directory)
        return str(refused.value)

    twice = damaged("twice", lambda items: pd.concat([items, items.head(1)]))
    assert "1 repeated lines, the first at checkpoint 0, task boolq, shots 0" in twice
    assert "not scored on the same lines" in damaged("unlike", lambda items: items.iloc[1:])
    assert "lacks the columns doc_hash" in damaged("narrow", lambda items: items.drop(columns="doc_hash"))
    (write_scores(tmp_path / "gone", {("boolq", 0): ZERO}) / "heldout.parquet").unlink()
    with pytest.raises(DataError, match=r"heldout\.parquet is missing"):
        load_scores(tmp_path / "gone")


def test_runs_scored_on_the_same_lines_share_them_whatever_their_steps_and_values(tmp_path: Path) -> None:
    runs = demo_runs(tmp_path, curves=False, items=40)
    directory = tmp_path / "artifacts" / runs[1].run_id
    for path in (directory / "items.parquet", directory / "heldout.parquet"):
        lines = pd.read_parquet(path)
        lines.assign(checkpoint=lines["checkpoint"] + 500).to_parquet(path)
    changed = tmp_path / "artifacts" / runs[2].run_id / "items.parquet"
    pd.read_parquet(changed).replace({"item": {"continuation-0003": "other"}}).to_parquet(changed)
    remembered = Remembered()
    first, second, third = (load_scores(tmp_path / "artifacts" / run.run_id, remembered=remembered) for run in runs[:3])
    key = ("continuation", 0, "acc")
    assert second.blocks[key].items is first.blocks[key].items
    assert second.content == first.content and third.content != first.content
    assert "other" in third.blocks[key].items
    for shared, run in zip((first, second, third), runs, strict=False):
        alone = load_scores(tmp_path / "artifacts" / run.run_id)
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


def two_measures(root: Path, items: int = 40) -> list[FinishedRun]:
    """Two rows of three seeds, the second better by two tasks and by bits per byte."""
    generator = np.random.default_rng(4)
    sizes = generator.integers(200, 400, items)
    return [
        record(
            root,
            f"{index}{seed}",
            labels,
            {(task, 0): generator.random(items) < 0.3 + 0.4 * index for task in ("boolq", "piqa")},
            seed=seed,
            heldout=list(zip(sizes * generator.normal(2.0 - 0.5 * index, 0.1, items), sizes, strict=True)),
        )
        for index, labels in enumerate((BPE, LBPE))
        for seed in range(3)
    ]


def judged(comparison: Comparison) -> set[str]:
    return {key for row in comparison.rows for key, cell in row.cells.items() if cell.p_adjusted is not None}


@pytest.mark.parametrize(
    ("table", "family"),
    [
        (TableConfig(), {"bits_per_byte"}),
        (TableConfig(columns=("boolq", "piqa", "average")), {"average"}),
        (TableConfig(columns=("boolq", "piqa")), {"boolq/mean", "piqa/mean"}),
        (TableConfig(primary=("boolq", "bits_per_byte")), {"boolq/mean", "bits_per_byte"}),
    ],
)
def test_only_the_primary_measures_are_judged(tmp_path: Path, table: TableConfig, family: set[str]) -> None:
    comparison = compare(two_measures(tmp_path), FACTORS, table=table)
    assert judged(comparison) == comparison.primary == family
    cells = comparison.rows[1].cells
    for key in family:
        assert cells[key].p_adjusted == min(1.0, len(family) * (cells[key].p_value or 0.0))
    scored = {column.key for column in comparison.columns if column.scored}
    assert comparison.exploratory == (scored != family)
    for key in scored - family:
        assert cells[key].p_value is not None  # as it is, without a mark
    (layout, *_) = layouts(comparison, tmp_path)
    marked = {column.key for column in layout.columns if column.label.endswith("†")}
    assert marked == scored - family
    assert {
        column.key for column, entry in zip(layout.columns, layout.lines[1].entries, strict=True) if entry.mark
    } <= family


@pytest.mark.parametrize(("name", "told"), [("bits_per_bytes", "bits_per_byte"), ("tokens", "bits_per_byte")])
def test_a_primary_measure_that_the_table_lacks_is_refused(tmp_path: Path, name: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"experiment\.table\.\w+: .*{told}"):
        compare(two_measures(tmp_path), FACTORS, table=TableConfig(primary=(name,)))


def test_fewer_than_thirty_items_allow_no_inference(tmp_path: Path) -> None:
    few = compare(two_measures(tmp_path / "few", items=29), FACTORS)
    for row in few.rows:
        for column in few.columns:
            cell = row.cells[column.key]
            if column.scored:
                assert cell.value is not None
                found = (
                    cell.half_width,
                    cell.test,
                    cell.crossed,
                    cell.p_value,
                    cell.p_adjusted,
                    cell.detectable,
                    cell.interval,
                )
                assert found == (None,) * 7
                assert not cell.best
    told = " ".join(notes(few))
    assert "No interval, test or bold number below 30 items (of a mean, in its smallest task)" in told
    assert "boolq 0-shot (29), piqa 0-shot (29), All tasks mean (29), Held-out text bits / byte (29)." in told
    assert "Bold" not in told
    assert "±" not in told
    enough = compare(two_measures(tmp_path / "enough", items=30), FACTORS)
    assert "Fewer than 30" not in " ".join(notes(enough))
    assert enough.rows[1].cells["boolq/mean"].p_value is not None
    assert any(row.cells["bits_per_byte"].best for row in enough.rows)


def of_tasks(root: Path, sizes: Mapping[str, int], seeds: Sequence[Sequence[int]]) -> Comparison:
    """Two rows, the second better by every task, with the seeds of each."""
    generator = np.random.default_rng(6)
    runs = [
        record(
            root,
            f"{index}{seed}",
            labels,
            {(task, 0): generator.random(size) < 0.3 + 0.4 * index for task, size in sizes.items()},
            seed=seed,
        )
        for index, labels in enumerate((BPE, LBPE))
        for seed in seeds[index]
    ]
    return compare(runs, FACTORS)


def test_a_mean_over_tasks_is_judged_by_its_smallest(tmp_path: Path) -> None:
    comparison = of_tasks(tmp_path, {"boolq": 300, "piqa": 5}, [range(3)] * 2)
    cell = comparison.rows[1].cells["average"]
    assert (cell.items, cell.fewest, cell.p_value, cell.half_width, cell.best) == (305, 5, None, None, False)
    assert comparison.rows[1].cells["boolq/mean"].p_value is not None
    told = " ".join(notes(comparison))
    assert "All tasks mean (5)" in told
    assert "† Exploratory" in told


@pytest.mark.parametrize("theirs", [(3, 4, 5), (2, 3, 4)])
def test_rows_that_share_too_few_seeds_are_not_judged_and_it_is_said(tmp_path: Path, theirs: tuple[int, ...]) -> None:
    comparison = of_tasks(tmp_path, {"boolq": 100}, [(0, 1, 2), theirs])
    cells = [row.cells["boolq/mean"] for row in comparison.rows]
    assert [cell.over for cell in cells] == ["seeds", "seeds"]
    assert not any(cell.best or cell.p_adjusted is not None for cell in cells)
    assert ": a judgement takes 3 seeds an arm that another has too." in " ".join(summary(comparison).lines)
    assert "Bold" not in " ".join(notes(comparison))


def test_runs_without_scores_are_missing_seeds(tmp_path: Path) -> None:
    runs = seeds_of(tmp_path, 3)
    runs[4] = replace(runs[4], scores=None)
    comparison = compare(runs, FACTORS)
    assert all(row.cells["continuation/mean"].p_adjusted is None for row in comparison.rows)
    (layout, *_) = layouts(comparison, tmp_path)
    assert "Some rows have fewer than three seeds" in layout.note


def test_an_arm_that_seeds_throw_about_hides_no_difference_of_the_others(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    levels = np.array([[0.40, 0.41, 0.40], [0.52, 0.53, 0.53], [0.2, 0.7, 0.4], [0.40, 0.41, 0.41], [0.41, 0.40, 0.41]])
    names = [dict(BPE) | {"ordering": name} for name in ("standard", "a", "wild", "b", "c")]
    ease = generator.random(400)
    runs = [
        record(tmp_path, f"{row}{seed}", names[row], {("boolq", 0): ease < levels[row, seed]}, seed=seed)
        for row in range(5)
        for seed in range(3)
    ]
    key = "boolq/mean"
    with_it = compare(runs, FACTORS).rows[1].cells[key]
    without = compare([run for run in runs if run.factors["ordering"] != "wild"], FACTORS).rows[1].cells[key]
    assert with_it.p_value == pytest.approx(without.p_value)
    assert without.p_value is not None
    assert without.p_value < 0.05


def test_a_primary_measure_that_nobody_scored_yet_is_no_error(tmp_path: Path) -> None:
    unscored = [replace(run, scores=None) for run in seeds_of(tmp_path, 1)]
    for name in ("average", "bits_per_byte", "arc_easy"):
        comparison = compare(unscored, FACTORS, table=TableConfig(primary=(name,)))
        assert judged(comparison) == set()
    comparison = compare(seeds_of(tmp_path / "more", 3), FACTORS, table=TableConfig(primary=("bits_per_byte",)))
    (message,) = summary(comparison).lines
    assert message == "Nothing can be said of which row is better: the table has no column that decides it."


def cut_runs(root: Path, *cut: Sequence[str], labels: Sequence[Mapping[str, str]] = (BPE, LBPE)) -> list[FinishedRun]:
    """Rows whose prompts of the named items were cut at 5 shots; of 40 items ten are right in one row only."""
    right = [[1] * 40, [0] * 10 + [1] * 30]
    return [
        record(
            root,
            str(number),
            row,
            {("boolq", 0): right[number], ("boolq", 5): right[number]},
            statistics={"heldout": {}, "tasks": {"boolq": {"truncated_items": {"0": [], "5": list(items)}}}},
        )
        for number, (row, items) in enumerate(zip(labels, cut, strict=True))
    ]


def test_items_whose_prompt_some_run_cut_are_left_out_for_all_at_all_shots(tmp_path: Path) -> None:
    first, second = [f"boolq-{item:04d}" for item in range(5)], [f"boolq-{item:04d}" for item in range(3, 8)]
    comparison = compare(cut_runs(tmp_path, first, second), FACTORS)
    for key in ("boolq/0_shot", "boolq/5_shot", "boolq/mean"):
        cells = [row.cells[key] for row in comparison.rows]
        assert [(cell.items, cell.value) for cell in cells] == [(32, 1.0), (32, 30 / 32)]
        assert cells[1].error == pytest.approx(stats.sem([0] * 2 + [1] * 30))
        assert cells[1].test is not None
        assert cells[1].test.items == 32
    told = " ".join(notes(comparison))
    assert "boolq: 8 of 40 items are left out in all rows, since their prompt does not fit" in told


@pytest.mark.parametrize("cut", [11, 40])
def test_where_too_few_prompts_fit_all_are_scored_and_it_is_said(tmp_path: Path, cut: int) -> None:
    comparison = compare(cut_runs(tmp_path, [f"boolq-{item:04d}" for item in range(cut)], []), FACTORS)
    assert [row.cells["boolq/5_shot"].items for row in comparison.rows] == [40, 40]
    # Nothing was cut where there are no examples, so that may be judged.
    fewest = [comparison.rows[1].cells[f"boolq/{column}"].fewest for column in ("0_shot", "5_shot", "mean")]
    assert fewest == [40, 40 - cut, 40 - cut]
    assert f"boolq: of 40 items {cut} at 5 shots have a prompt that does not fit the context of some run" in " ".join(
        notes(comparison)
    )


def test_prompts_that_all_runs_cut_alike_stay(tmp_path: Path) -> None:
    items = [f"boolq-{item:04d}" for item in range(5)]
    runs = cut_runs(tmp_path, items, items, labels=(BPE, ICLM))
    comparison = compare(runs, FACTORS)
    assert [row.cells["boolq/5_shot"].items for row in comparison.rows] == [40, 40]


def test_the_same_items_cut_at_another_place_are_left_out(tmp_path: Path) -> None:
    items = [f"boolq-{item:04d}" for item in range(5)]
    runs = [
        replace(
            run,
            config={**run.config, "model": {"context_length": length}},
            factors={**run.factors, "model.context_length": str(length)},
        )
        for run, length in zip(cut_runs(tmp_path, items, items, labels=(BPE, ICLM)), (64, 128), strict=True)
    ]
    comparison = compare(runs, (*FACTORS, "model.context_length"))
    assert [row.cells["boolq/5_shot"].items for row in comparison.rows] == [35, 35]
