"""Numbers, intervals and tests of the cells of a table, and which of them are judged."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from paribus.config.groups.evaluation import TableConfig, default_table
from paribus.errors import ConfigurationError
from paribus.reporting.columns import Cell
from paribus.reporting.compare import Comparison, compare
from paribus.reporting.runs import FinishedRun, load_scores
from paribus.reporting.significance import crossed_test, judged_together, pooled_variance
from paribus.reporting.table import layouts
from paribus.reporting.verdict import summary
from support.tables import FACTORS, notes, record

BPE = {"tokenizer": "bpe", "encoder": "merge_rank", "ordering": "standard"}
LBPE = BPE | {"encoder": "longest_first"}
ICLM = BPE | {"ordering": "in_context"}
ZERO, FIVE = [1, 0, 1, 1, 0, 0] * 5, [1, 1, 1, 1, 0, 1] * 5


def inference(cell: Cell) -> tuple[object, ...]:
    """All that says something of models other than those that were scored."""
    return (cell.half_width, cell.interval, cell.p_value, cell.p_adjusted, cell.detectable, cell.best)


NO_INFERENCE = (None,) * 5 + (False,)


def arms(
    root: Path,
    *,
    labels: Sequence[Mapping[str, str]] = (BPE, LBPE),
    seeds: Sequence[Sequence[int]] = ((0, 1, 2),) * 3,
    tasks: Mapping[str, int] = MappingProxyType({"boolq": 100}),
    documents: int = 0,
) -> list[FinishedRun]:
    """Rows with these seeds each, a row better than the one before by each task, of so many items, and by bits."""
    generator = np.random.default_rng(4)
    sizes = generator.integers(200, 400, documents)
    return [
        record(
            root,
            f"{place}{seed}",
            row,
            {(task, 0): generator.random(items) < 0.3 + 0.2 * place for task, items in tasks.items()},
            seed=seed,
            heldout=list(zip(sizes * generator.normal(2.0 - 0.5 * place, 0.1, documents), sizes, strict=True)),
        )
        for place, row in enumerate(labels)
        for seed in seeds[place]
    ]


def test_an_accuracy_is_the_mean_over_items_and_its_error_the_standard_error(tmp_path: Path) -> None:
    run = record(tmp_path, "one", BPE, {("continuation", 0): ZERO, ("continuation", 5): FIVE})
    cells = compare([run], FACTORS).rows[0].cells
    both = (np.array(ZERO) + np.array(FIVE)) / 2
    assert cells["continuation/0_shot"].value == pytest.approx(np.mean(ZERO))
    assert cells["continuation/5_shot"].error == pytest.approx(stats.sem(FIVE))
    assert cells["continuation/mean"].value == pytest.approx((np.mean(ZERO) + np.mean(FIVE)) / 2)
    assert cells["continuation/mean"].error == pytest.approx(stats.sem(both))
    assert (cells["continuation/mean"].items, cells["continuation/mean"].half_width) == (30, None)


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


def test_one_seed_is_tested_over_items_and_judges_no_model(tmp_path: Path) -> None:
    runs = [
        record(tmp_path, "one", BPE, {("continuation", 0): ZERO * 4, ("boolq", 0): ZERO * 4}),
        record(tmp_path, "two", LBPE, {("continuation", 0): FIVE * 4, ("boolq", 0): ZERO * 4}),
    ]
    first, second = compare(runs, FACTORS).rows
    assert all(cell.test is None for cell in first.cells.values())
    cell = second.cells["continuation/mean"]
    assert cell.test is not None
    expected = mcnemar([[60, 0], [40, 20]], exact=False, correction=False)
    assert cell.test.p_value == pytest.approx(expected.pvalue, rel=1e-6, abs=0)
    assert cell.difference == cell.test.difference == pytest.approx(2 / 6)
    for row in (first, second):
        for key in ("continuation/mean", "boolq/mean", "average"):
            assert inference(row.cells[key])[1:] == NO_INFERENCE[1:], key


def test_scores_without_a_model_are_judged_with_one_seed(tmp_path: Path) -> None:
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


def test_several_seeds_are_tested_over_seeds_and_items_and_adjusted_over_the_table(tmp_path: Path) -> None:
    comparison = compare(arms(tmp_path, labels=(BPE, LBPE, ICLM)), FACTORS)
    assert [len(row.runs) for row in comparison.rows] == [3, 3, 3]
    block = ("boolq", 0, "acc")
    values = np.stack(
        [[load_scores(run.scores).blocks[block].values[0] for run in row.runs] for row in comparison.rows]
    )
    means = values.mean(axis=2)
    cells = [row.cells["boolq/mean"] for row in comparison.rows]
    assert [cell.value for cell in cells] == pytest.approx(means.mean(axis=1).tolist())
    assert [cell.seed_spread for cell in cells] == pytest.approx(np.std(means, axis=1, ddof=1).tolist())
    pooled = pooled_variance(means)
    assert pooled is not None
    expected = [crossed_test((values[row] - values[0]).astype(float), 1.0, pooled.times(2)) for row in (1, 2)]
    assert [cell.p_value for cell in cells[1:]] == [test.p_value for test in expected]
    measures = len(comparison.primary)
    assert measures == sum(column.scored for column in comparison.columns)
    weights = [{row: 1.0, 0: -1.0} for row in (1, 2)]
    assert [(cell.crossed, cell.p_adjusted) for cell in cells[1:]] == judged_together(expected, weights, measures)
    (best,) = (cell.value for cell in cells if cell.best)
    assert best == max(cell.value for cell in cells)


def test_rows_of_high_and_low_seed_variance_do_not_affect_each_other(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    levels = {"standard": (0.40, 0.41, 0.40), "a": (0.52, 0.53, 0.53), "wild": (0.2, 0.7, 0.4), "b": (0.4, 0.41, 0.41)}
    ease = generator.random(400)
    runs = [
        record(tmp_path, f"{name}{seed}", BPE | {"ordering": name}, {("boolq", 0): ease < level}, seed=seed)
        for name, row in levels.items()
        for seed, level in enumerate(row)
    ]

    def p_value(name: str, *rows: str) -> float:
        comparison = compare([run for run in runs if run.factors["ordering"] in ("standard", name, *rows)], FACTORS)
        p_value = next(row for row in comparison.rows if row.labels[2] == name).cells["boolq/mean"].p_value
        assert p_value is not None
        return p_value

    assert p_value("a", "b") < 0.05 and p_value("a", "b", "wild") == pytest.approx(p_value("a", "b"))
    assert p_value("wild") > 0.1 and p_value("wild", "a", "b") == pytest.approx(p_value("wild"), rel=1e-6)


def test_nan_stays_nan_is_never_best_and_is_not_tested(tmp_path: Path) -> None:
    training = {"tokens": 5, "final_loss": np.nan}
    runs = [
        record(tmp_path, "one", BPE, {("boolq", 0): ZERO}),
        record(tmp_path, "two", ICLM, {("boolq", 0): [np.nan, *FIVE[1:]]}, training=training),
    ]
    first, second = (row.cells for row in compare(runs, FACTORS).rows)
    cell = second["boolq/mean"]
    assert np.isnan(cell.value) and np.isnan(second["final_loss"].value)
    assert (cell.best, cell.test, cell.half_width, first["boolq/mean"].best) == (False, None, None, False)


def test_loss_per_token_is_shown_only_where_all_runs_have_the_same_tokens(tmp_path: Path) -> None:
    bpe, lbpe, iclm = (
        record(tmp_path, str(place), labels, {("boolq", 0): ZERO}) for place, labels in enumerate((BPE, LBPE, ICLM))
    )
    assert "final_loss" in {column.key for column in compare([bpe, iclm], FACTORS).columns}
    assert "final_loss" not in {column.key for column in compare([bpe, lbpe, iclm], FACTORS).columns}
    with pytest.raises(ConfigurationError, match="final_loss is per token, and these runs have different tokens"):
        compare([bpe, lbpe, iclm], FACTORS, (), replace(default_table(), columns=("final_loss",)))


# What decides the question, and what is too little to decide it


def two_tasks(root: Path, items: int = 40) -> list[FinishedRun]:
    return arms(root, tasks={"boolq": items, "piqa": items}, documents=items)


def judged(comparison: Comparison) -> set[str]:
    return {key for row in comparison.rows for key, cell in row.cells.items() if cell.p_adjusted is not None}


@pytest.mark.parametrize(
    ("table", "primary"),
    [
        (TableConfig(), {"bits_per_byte"}),
        (TableConfig(columns=("boolq", "piqa", "average")), {"average"}),
        (TableConfig(columns=("boolq", "piqa")), {"boolq/mean", "piqa/mean"}),
        (TableConfig(primary=("boolq", "bits_per_byte")), {"boolq/mean", "bits_per_byte"}),
    ],
)
def test_only_the_primary_measures_are_judged(tmp_path: Path, table: TableConfig, primary: set[str]) -> None:
    comparison = compare(two_tasks(tmp_path), FACTORS, table=table)
    assert judged(comparison) == comparison.primary == primary
    cells = comparison.rows[1].cells
    for key in primary:
        assert cells[key].p_adjusted == min(1.0, len(primary) * (cells[key].p_value or 0.0))
    scored = {column.key for column in comparison.columns if column.scored}
    assert comparison.exploratory == (scored != primary)
    assert all(cells[key].p_value is not None for key in scored - primary)  # as it is, without a mark
    (layout, *_) = layouts(comparison, tmp_path)
    assert {column.key for column in layout.columns if column.label.endswith("†")} == scored - primary
    entries = zip(layout.columns, layout.lines[1].entries, strict=True)
    assert {column.key for column, entry in entries if entry.mark} <= primary


def test_fewer_than_thirty_items_allow_no_inference(tmp_path: Path) -> None:
    few = compare(two_tasks(tmp_path / "few", items=29), FACTORS)
    for row in few.rows:
        for column in filter(lambda column: column.scored, few.columns):
            cell = row.cells[column.key]
            assert cell.value is not None
            assert (*inference(cell), cell.test, cell.crossed) == (*NO_INFERENCE, None, None)
    text = " ".join(notes(few))
    assert "No interval, test or bold number below 30 items (of a mean, in its smallest task)" in text
    assert "boolq 0-shot (29), piqa 0-shot (29), All tasks mean (29), Held-out text bits / byte (29)." in text
    assert "Bold" not in text and "±" not in text
    enough = compare(two_tasks(tmp_path / "enough", items=30), FACTORS)
    assert "below 30 items" not in " ".join(notes(enough))
    assert enough.rows[1].cells["boolq/mean"].p_value is not None
    assert [row.cells["bits_per_byte"].best for row in enough.rows] == [False, True]  # the lower


@pytest.mark.parametrize("theirs", [(3, 4, 5), (2, 3, 4)])
def test_rows_that_share_too_few_seeds_are_not_judged(tmp_path: Path, theirs: tuple[int, ...]) -> None:
    comparison = compare(arms(tmp_path, seeds=[(0, 1, 2), theirs]), FACTORS)
    cells = [row.cells["boolq/mean"] for row in comparison.rows]
    assert not any(cell.best or cell.p_adjusted is not None for cell in cells)
    assert ": a judgement takes 3 seeds an arm that another has too." in " ".join(summary(comparison).lines)


def test_a_run_without_one_number_of_shots_has_no_mean_over_the_others(tmp_path: Path) -> None:
    runs = [
        record(tmp_path, "one", BPE, {("boolq", 0): ZERO, ("boolq", 5): FIVE}),
        record(tmp_path, "two", LBPE, {("boolq", 5): FIVE}),
    ]
    assert compare(runs, FACTORS).rows[1].cells["boolq/mean"].value is None
