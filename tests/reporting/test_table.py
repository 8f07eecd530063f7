"""Columns and rows of a table: the block experiment.table, sets of texts, captions, and what a terminal shows."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from paribus.config.groups.evaluation import TableConfig, default_table
from paribus.errors import ConfigurationError
from paribus.reporting.compare import Comparison, compare
from paribus.reporting.runs import FinishedRun, MissingRun
from paribus.reporting.table import change, layouts, quantity
from support.tables import notes, record, with_texts

BOTH = ("encoder", "ordering")
COMBINATIONS = [(encoder, ordering) for encoder in ("merge_rank", "longest_first") for ordering in ("standard", "nn")]
Build = Callable[..., Comparison]


def table_of(**fields: Any) -> TableConfig:
    return replace(default_table(), **fields)


def items(place: int, seed: int) -> list[float]:
    return (np.random.default_rng([place, seed]).random(60) < 0.4 + 0.1 * place).astype(float).tolist()


def runs_of(root: Path, seeds: tuple[int, ...] = (0,), checkpoints: int = 1) -> list[FinishedRun]:
    """Two tasks at two shot counts, with other answers at each checkpoint."""

    def scores(place: int, seed: int, step: int) -> dict[tuple[str, int], list[float]]:
        return {(task, shots): items(place, seed + 10 * step) for task in ("boolq", "piqa") for shots in (0, 5)}

    return [
        record(
            root,
            f"{place}-{seed}",
            dict(zip(BOTH, labels, strict=True)),
            scores(place, seed, 0),
            seed=seed,
            later=[scores(place, seed, step) for step in range(1, checkpoints)],
            heldout=[(2.0 * size, size) for size in range(50, 60)],
        )
        for place, labels in enumerate(COMBINATIONS)
        for seed in seeds
    ]


@pytest.fixture(name="build", scope="module")
def _build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    runs = runs_of(tmp_path_factory.mktemp("runs"))
    return lambda **fields: compare(runs, BOTH, (), table_of(**fields))


@pytest.fixture(name="three_seeds", scope="module")
def _three_seeds(tmp_path_factory: pytest.TempPathFactory) -> list[FinishedRun]:
    return runs_of(tmp_path_factory.mktemp("runs"), seeds=(0, 1, 2), checkpoints=2)


def keys(comparison: Comparison) -> list[str]:
    return [column.key for column in comparison.columns]


def test_the_columns_are_those_that_are_named_in_their_order(build: Build) -> None:
    named = ("bits_per_byte", "piqa/5_shot", "Both", "tokens", "boolq_x")
    comparison = build(columns=named, groups={"Both": ["boolq", "piqa"]}, shots="mean")
    assert keys(comparison) == [*named[:4], "boolq_x/mean"]
    cells = comparison.rows[0].cells
    parts = [build().rows[0].cells[f"{task}/mean"].value for task in ("boolq", "piqa")]
    assert cells["Both"].value == pytest.approx(np.mean(parts))
    assert cells["boolq_x/mean"].value is None  # a task that no run is scored on, as openbookqa_bn beside openbookqa


def test_each_row_is_compared_with_the_baseline_of_its_other_labels(build: Build) -> None:
    comparison = build(baseline={"encoder": "merge_rank"})
    assert [row.baseline for row in comparison.rows] == [None, None, 0, 1]
    cells = [row.cells["boolq/0_shot"] for row in comparison.rows]
    assert cells[3].test is not None
    assert cells[3].test.difference == pytest.approx((cells[3].value or 0) - (cells[1].value or 0))


def test_a_block_that_names_what_is_not_there_is_refused(build: Build) -> None:
    for fields, message in (
        ({"rows": ("encodr",)}, "experiment.table.rows: factor 'encodr' is unknown; did you mean 'encoder'"),
        ({"baseline": {"encoder": "bpe"}}, "experiment.table.baseline: no row has encoder: bpe"),
        ({"baseline": {"encoder": "bpe"}}, "compare with the first row: experiment.table.baseline=null"),
        ({"metrics": {"boolq": "f1"}}, "metric 'f1' is unknown"),
        ({"columns": ("Empty",), "groups": {"Empty": []}}, "experiment.table.groups.Empty is empty"),
        ({"columns": ("boolq/five",)}, "no task/N_shot"),
    ):
        with pytest.raises(ConfigurationError) as error:
            build(**fields)
        assert message in str(error.value)


def test_cells_have_the_spread_over_seeds_and_over_checkpoints(three_seeds: list[FinishedRun]) -> None:
    cell = compare(three_seeds, BOTH).rows[1].cells["boolq/0_shot"]
    means = np.array([[np.mean(items(1, seed + 10 * step)) for step in range(2)] for seed in range(3)])
    assert cell.value == pytest.approx(means.mean())
    assert (cell.seed_spread, cell.over) == (pytest.approx(means.mean(axis=1).std(ddof=1)), "seeds")
    assert cell.checkpoint_spread == pytest.approx(np.sqrt(means.var(axis=1, ddof=1).mean()))
    assert (cell.seeds, cell.checkpoints, cell.items) == (3, 2, 60)


def test_the_plain_t_test_is_over_seeds_and_checkpoints(three_seeds: list[FinishedRun]) -> None:
    comparison = compare(three_seeds, BOTH, (), table_of(plain_t_test=True))
    ours, theirs = ([np.mean(items(p, seed + 10 * step)) for seed in range(3) for step in (0, 1)] for p in (1, 0))
    expected = stats.ttest_ind(ours, theirs).pvalue
    assert comparison.rows[1].cells["boolq/0_shot"].plain_p == pytest.approx(expected)
    assert any("6 numbers a row" in note for note in notes(comparison))


def test_scores_that_disappeared_leave_a_gap_and_the_rest_stands(tmp_path: Path) -> None:
    runs = runs_of(tmp_path)
    assert runs[1].scores is not None and runs[2].scores is not None
    (runs[1].scores / "items.parquet").unlink()
    (runs[2].scores / "heldout.parquet").write_bytes(b"PAR1 torn")
    missing = [
        MissingRun({"encoder": "dropout", "ordering": "nn"}, "still running"),
        MissingRun(runs[0].factors, "seed 1: failed"),
    ]
    comparison = compare(runs, BOTH, missing)
    gaps = [row.cells["boolq/0_shot"].value is None for row in comparison.rows]
    assert gaps == [False, True, True, False, True]
    assert comparison.rows[0].missing == ("seed 1: failed",)
    assert "items.parquet is missing" in comparison.rows[1].missing[0]
    assert "is no readable Parquet file" in comparison.rows[2].missing[0]
    assert comparison.rows[1].cells["tokens"].value == 1_000_000
    assert any("— dropout, nn: still running" in note for note in notes(comparison))


# Metrics


def add_metric(run: FinishedRun, task: str, metric: str, values: Sequence[float]) -> None:
    """Scores of a task by another metric, beside what the run has."""
    assert run.scores is not None
    path = run.scores / "items.parquet"
    lines = [
        {"checkpoint": 0, "task": task, "shots": 0, "item": f"{task}-{place:04d}", "doc_hash": f"h{place}",
         "metric": metric, "value": float(value)}
        for place, value in enumerate(values)
    ]  # fmt: skip
    pd.concat([pd.read_parquet(path), pd.DataFrame(lines)], ignore_index=True).to_parquet(path)


def test_the_average_is_over_the_tasks_of_one_family_of_metrics_and_the_notes_say_which(tmp_path: Path) -> None:
    run = record(tmp_path, "one", {"encoder": "merge_rank"}, {("boolq", 0): [1, 0], ("piqa", 0): [1, 1]})
    add_metric(run, "triviaqa", "exact_match", [0, 1, 0, 0])
    comparison = compare([run], ("encoder",))
    assert comparison.rows[0].cells["average"].value == pytest.approx(0.75)
    text = " ".join(notes(comparison))
    assert "All tasks (accuracy): the mean of boolq, piqa by accuracy" in text
    assert "not in it: triviaqa (exact match)." in text
    assert "Accuracy, exact match in %" in text
    chosen = compare([run], ("encoder",), (), table_of(groups={"All": ["boolq", "triviaqa"]}))
    assert chosen.rows[0].cells["All"].value == pytest.approx((0.5 + 0.25) / 2)
    assert "All: the mean of boolq, triviaqa by accuracy and exact match" in " ".join(notes(chosen))


def test_a_perplexity_is_two_to_the_mean_bits_and_is_tested_in_bits(tmp_path: Path) -> None:
    bits = {name: np.random.default_rng(place).gamma(2, 3 + place, 30) for place, name in enumerate(("a", "b"))}
    runs = [record(tmp_path, name, {"encoder": name}, {("lambada_openai", 0): [1, 0]}) for name in bits]
    for run in runs:
        add_metric(run, "lambada_openai", "target_bits", bits[run.run_id])
    comparison = compare(runs, ("encoder",), (), table_of(metrics={"lambada_openai": "perplexity"}))
    (column, *_) = comparison.columns
    assert (column.kind, column.better, column.group) == ("perplexity", "lower", "lambada_openai (perplexity)")
    first, second = (row.cells[column.key] for row in comparison.rows)
    assert first.value == pytest.approx(2 ** bits["a"].mean())
    assert first.error == pytest.approx(first.value * np.log(2) * stats.sem(bits["a"]))
    assert second.test.difference == pytest.approx(bits["b"].mean() - bits["a"].mean())
    assert second.test.p_value == pytest.approx(stats.ttest_rel(bits["a"], bits["b"]).pvalue)
    assert change(second.test.difference, column).endswith(" bits")
    assert any("Perplexity is 2 to the mean bits" in note for note in notes(comparison))


def test_a_segmented_corpus_has_three_columns_in_per_cent_and_no_mean_with_accuracies(tmp_path: Path) -> None:
    """The values of its items are no shares of one."""
    run = record(tmp_path, "one", {"encoder": "merge_rank"}, {("continuation", 0): [1, 0]})
    for metric, values in (("word_precision", (1.5, -0.5)), ("word_recall", (0.7, 0.5)), ("word_f1", (1.4, -0.3))):
        add_metric(run, "pku", metric, values)
    add_metric(run, "wmt14_en_de", "bleu", (0.2, 0.3))
    comparison = compare([run], ("encoder",))
    cells = comparison.rows[0].cells
    scored = [column for column in comparison.columns if column.scored]
    assert [(column.group, column.label, quantity(cells[column.key].value, column)) for column in scored] == [
        ("continuation", "0-shot", "50.0"),
        ("pku", "precision", "50.00"),
        ("pku", "recall", "60.00"),
        ("pku", "F1", "55.00"),
        ("wmt14_en_de", "BLEU", "25.00"),
    ]
    assert any("precision, recall, F1, BLEU in %, of all items together" in line for line in notes(comparison))


# Sets of texts

BOOKS = [(10.0, 4), (30.0, 16), (9.0, 5)] * 10
FEWER_BITS = [(bits - 0.5, size) for bits, size in BOOKS]


def with_sets(root: Path, *sets: dict[str, Any]) -> list[FinishedRun]:
    """Runs with the bits of these sets of texts."""
    return [
        with_texts(record(root, name, {"encoder": name}, {}, heldout=[(8, 4), (5, 4)]), **texts)
        for name, texts in zip(("merge_rank", "longest_first"), sets, strict=True)
    ]


def test_a_set_of_texts_is_a_column_compared_over_its_documents(tmp_path: Path) -> None:
    runs = with_sets(tmp_path, {"books": BOOKS, "arxiv": BOOKS[:2]}, {"books": FEWER_BITS})
    comparison = compare(runs, ("encoder",))
    assert keys(comparison)[:3] == ["books/bits_per_byte", "arxiv/bits_per_byte", "bits_per_byte"]
    first, second = (row.cells["books/bits_per_byte"] for row in comparison.rows)
    assert (first.value, second.value) == (pytest.approx(49 / 25), pytest.approx(47.5 / 25))
    assert second.test is not None
    assert (second.test.items, second.test.difference) == (30, pytest.approx(-1.5 / 25))
    assert comparison.rows[1].cells["arxiv/bits_per_byte"].value is None
    counts = "30 documents of books, 2 documents of arxiv, 2 held-out documents"
    assert any(counts in line for line in notes(comparison))

    table = TableConfig(columns=("books", "bits_per_byte"), names={"books": "Books"}, decimals={"books": 4})
    named = compare(runs, ("encoder",), table=table)
    headings = [(column.group, column.label) for column in named.columns]
    assert headings == [("Books", "bits / byte"), ("Held-out text", "bits / byte")]
    assert layouts(named, tmp_path)[0].lines[0].entries[0].text == "1.9600"


def test_texts_end_to_end_have_a_perplexity_where_all_rows_cut_them_alike(tmp_path: Path) -> None:
    less = {"books": FEWER_BITS, "books_concatenated": FEWER_BITS}
    comparison = compare(with_sets(tmp_path, {"books": BOOKS, "books_concatenated": BOOKS}, less), ("encoder",))
    names = ["books/bits_per_byte", "books_concatenated/bits_per_byte", "books_concatenated/perplexity"]
    assert keys(comparison)[:3] == names
    headings = [(column.group, column.label) for column in comparison.columns[1:3]]
    assert headings == [("books", "end to end"), ("books", "perplexity")]
    first, second = (row.cells["books_concatenated/perplexity"] for row in comparison.rows)
    assert (first.value, second.value) == (pytest.approx(2 ** (49 / 7)), pytest.approx(2 ** (47.5 / 7)))
    assert second.test is not None
    assert second.test.difference == pytest.approx(-1.5 / 7)
    assert any("30 documents of books end to end" in line for line in notes(comparison))
    assert not any("does not compare" in line for line in notes(comparison))
