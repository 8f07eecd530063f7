"""Columns and rows of a table: the block experiment.table, sets of texts, and what a terminal shows."""

import io
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy import stats

from paribus.config.groups.evaluation import TableConfig, default_table
from paribus.errors import ConfigurationError
from paribus.reporting.compare import Comparison, compare
from paribus.reporting.equality import FairnessError
from paribus.reporting.fairness import explanation
from paribus.reporting.formats import terminal_table
from paribus.reporting.measures import BITS_PER_BYTE, Measure, of_texts
from paribus.reporting.report import Report, write_report
from paribus.reporting.runs import FinishedRun, MissingRun
from paribus.reporting.table import TableEntry, TableLayout, TableLine, change, layouts, quantity
from support.tables import FACTORS, config_of, notes, record, with_texts

BOTH = ("encoder", "ordering")
COMBINATIONS = [(encoder, ordering) for encoder in ("merge_rank", "longest_first") for ordering in ("standard", "nn")]
Build = Callable[..., Comparison]


def table_of(**fields: Any) -> TableConfig:
    return replace(default_table(), **fields)


def items(place: int, seed: int, count: int = 60) -> list[float]:
    return (np.random.default_rng([place, seed]).random(count) < 0.4 + 0.1 * place).astype(float).tolist()


def runs_of(root: Path, seeds: tuple[int, ...] = (0,), checkpoints: int = 1) -> list[FinishedRun]:
    runs = []
    for place, labels in enumerate(COMBINATIONS):
        for seed in seeds:
            scored = [
                {(task, shots): items(place, seed + 10 * step) for task in ("boolq", "piqa") for shots in (0, 5)}
                for step in range(checkpoints)
            ]
            factors = dict(zip(BOTH, labels, strict=True))
            heldout = [(2.0 * size, size) for size in range(50, 60)]
            runs.append(
                record(root, f"{place}-{seed}", factors, scored[0], seed=seed, later=scored[1:], heldout=heldout)
            )
    return runs


@pytest.fixture
def build(tmp_path: Path) -> Build:
    runs = runs_of(tmp_path)
    return lambda **fields: compare(runs, BOTH, (), table_of(**fields))


def test_the_columns_are_those_that_are_named_in_their_order(build: Build) -> None:
    found = build(columns=("bits_per_byte", "piqa/5_shot", "Both", "tokens"), groups={"Both": ["boolq", "piqa"]})
    assert [column.key for column in found.columns] == ["bits_per_byte", "piqa/5_shot", "Both", "tokens"]
    cells = found.rows[0].cells
    parts = [build().rows[0].cells[f"{task}/mean"].value for task in ("boolq", "piqa")]
    assert cells["Both"].value == pytest.approx(np.mean(parts))


def test_a_task_that_no_run_is_scored_on_is_a_column(build: Build) -> None:
    """openbookqa_bn beside openbookqa, say."""
    found = build(columns=("boolq", "boolq_x"), shots="mean")
    assert [column.key for column in found.columns] == ["boolq/mean", "boolq_x/mean"]
    assert [row.cells["boolq_x/mean"].value for row in found.rows] == [None] * len(COMBINATIONS)


@pytest.mark.parametrize(
    ("shots", "keys"),
    [("mean", ["boolq/mean"]), ("each", ["boolq/0_shot", "boolq/5_shot"]), ("both", None)],
)
def test_shots_stand_apart_together_or_both(build: Build, shots: str, keys: list[str] | None) -> None:
    found = [column.key for column in build(columns=("boolq",), shots=shots).columns]
    assert found == (keys or ["boolq/0_shot", "boolq/5_shot", "boolq/mean"])


def test_rows_are_grouped_and_ordered_as_the_block_says(build: Build) -> None:
    found = build(rows=("ordering",), order={"ordering": ["nn", "standard"]})
    assert found.factors == ("ordering", "encoder")
    assert [row.labels for row in found.rows] == [
        ("nn", "merge_rank"), ("nn", "longest_first"), ("standard", "merge_rank"), ("standard", "longest_first"),
    ]  # fmt: skip
    assert [line.starts_group for line in layouts(found, Path())[0].lines] == [False, False, True, False]


def test_each_row_is_compared_with_the_baseline_of_its_other_labels(build: Build) -> None:
    found = build(baseline={"encoder": "merge_rank"})
    assert [row.baseline for row in found.rows] == [None, None, 0, 1]
    values = [row.cells["boolq/0_shot"].value or 0 for row in found.rows]
    test = found.rows[3].cells["boolq/0_shot"].test
    assert test is not None
    assert test.difference == pytest.approx(values[3] - values[1])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rows": ("encodr",)}, "experiment.table.rows: factor 'encodr' is unknown; did you mean 'encoder'"),
        ({"baseline": {"encoder": "bpe"}}, "experiment.table.baseline: no row has encoder: bpe"),
        ({"baseline": {"encoder": "bpe"}}, "compare with the first row: experiment.table.baseline=null"),
        ({"metrics": {"boolq": "f1"}}, "metric 'f1' is unknown"),
        ({"columns": ("Empty",), "groups": {"Empty": []}}, "experiment.table.groups.Empty is empty"),
        ({"columns": ("boolq/five",)}, "no task/N_shot"),
    ],
)
def test_a_block_that_names_what_is_not_there_is_refused(build: Build, fields: dict, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        build(**fields)


def test_bold_is_once_a_table_once_a_group_or_nowhere(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, seeds=(0, 1, 2))

    def best(bold: str, **primary: tuple[str, ...]) -> int:
        table = table_of(bold=bold, **({"primary": ("boolq/0_shot",)} | primary))
        return sum(row.cells["boolq/0_shot"].best for row in compare(runs, BOTH, (), table).rows)

    assert (best("table"), best("group"), best("none")) == (1, 2, 0)
    assert best("table", primary=()) == 0


def test_names_and_decimals_are_those_of_the_block(build: Build) -> None:
    found = build(
        names={"longest_first": "LBPE", "boolq": "BoolQ"}, decimals={"accuracy": 3}, columns=("boolq/0_shot",)
    )
    (table,) = layouts(found, Path())
    assert table.lines[2].labels[0] == "LBPE"
    assert table.columns[0].group == "BoolQ"
    assert table.lines[0].entries[0].text == f"{100 * np.mean(items(0, 0)):.3f}"


def test_cells_have_the_spread_over_seeds_and_over_checkpoints(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, seeds=(0, 1, 2), checkpoints=2)
    cell = compare(runs, BOTH).rows[1].cells["boolq/0_shot"]
    means = np.array([[np.mean(items(1, seed + 10 * step)) for step in range(2)] for seed in range(3)])
    assert cell.value == pytest.approx(means.mean())
    assert (cell.seed_spread, cell.over) == (pytest.approx(means.mean(axis=1).std(ddof=1)), "seeds")
    assert cell.checkpoint_spread == pytest.approx(np.sqrt(means.var(axis=1, ddof=1).mean()))
    assert (cell.seeds, cell.checkpoints, cell.items) == (3, 2, 60)


def test_the_plain_t_test_is_over_seeds_and_checkpoints(tmp_path: Path) -> None:
    found = compare(runs_of(tmp_path, (0, 1), 2), BOTH, (), table_of(plain_t_test=True))
    ours, theirs = ([np.mean(items(p, seed + 10 * step)) for seed in (0, 1) for step in (0, 1)] for p in (1, 0))
    expected = stats.ttest_ind(ours, theirs).pvalue
    assert found.rows[1].cells["boolq/0_shot"].plain_p == pytest.approx(expected)
    assert any("4 numbers a row" in note for note in notes(found))


def test_other_metrics_have_columns_of_their_kind(tmp_path: Path) -> None:
    labels = {"encoder": "merge_rank"}
    for name, metric, values in (
        ("f1", "f1", [0.5, 1.0]),
        ("bits", "target_bits", [12.5, 20.0]),
        ("own", "zap", [3, 5]),
    ):
        run = record(tmp_path, name, labels, {("task", 0): values}, metric=metric)
        (column, *_) = compare([run], ("encoder",)).columns
        better = {"f1": "higher", "target_bits": "lower", "zap": None}[metric]
        assert (column.kind, column.better) == ("accuracy" if metric == "f1" else "score", better)


def test_the_average_is_over_the_tasks_of_one_family_of_metrics_and_the_notes_say_which(tmp_path: Path) -> None:
    run = record(tmp_path, "one", {"encoder": "merge_rank"}, {("boolq", 0): [1, 0], ("piqa", 0): [1, 1]})
    add_metric(run, "triviaqa", "exact_match", [0, 1, 0, 0])
    found = compare([run], ("encoder",))
    assert found.rows[0].cells["average"].value == pytest.approx(0.75)
    text = " ".join(notes(found))
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
    found = compare(runs, ("encoder",), (), table_of(metrics={"lambada_openai": "perplexity"}))
    (column, *_) = found.columns
    assert (column.kind, column.better, column.group) == ("perplexity", "lower", "lambada_openai (perplexity)")
    first, second = (row.cells[column.key] for row in found.rows)
    assert first.value == pytest.approx(2 ** bits["a"].mean())
    assert first.error == pytest.approx(first.value * np.log(2) * stats.sem(bits["a"]))
    assert second.test.difference == pytest.approx(bits["b"].mean() - bits["a"].mean())
    assert second.test.p_value == pytest.approx(stats.ttest_rel(bits["a"], bits["b"]).pvalue)
    assert change(second.test.difference, column).endswith(" bits")
    assert any("Perplexity is 2 to the mean bits" in note for note in notes(found))


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


def paper(**changes: Any) -> dict[str, Any]:
    rows = [{"label": name, "factors": {"encoder": name}} for name in ("merge_rank", "longest_first")]
    setting = {"parameters": "any", "vocabulary": "any", "budget": "any"}
    block = {"title": "T", "columns": ["boolq", "siqa"], "rows": rows, "numbers": [[50, 1], [60.5, 2]]}
    return {**block, **setting, **changes}


def write(root: Path, **fields: Any) -> Report:
    runs = [run for run in runs_of(root) if run.factors["ordering"] == "nn"]
    return write_report(
        runs, title="A & B_c", factors=BOTH, directory=root / "r", table=table_of(**fields), paper=paper()
    )


def test_the_paper_s_number_and_our_difference_stand_beside_ours_on_request(tmp_path: Path) -> None:
    report = write(tmp_path, paper=True, columns=("boolq",), shots="mean")
    ours = 100 * (report.comparison.rows[1].cells["boolq/mean"].value or 0)
    text = report.files["report.md"].read_text(encoding="utf-8")
    assert rf"\[60.5, {ours - 60.5:+.1f}\]".replace("-", "−") in text
    assert "[60.5" in report.files["tables.tex"].read_text(encoding="utf-8")


@pytest.mark.skipif(which("pdflatex") is None, reason="no LaTeX here")
def test_the_latex_tables_compile(tmp_path: Path) -> None:
    write(tmp_path, paper=True)
    document = r"\documentclass{article}\usepackage{booktabs,graphicx}\begin{document}\input{tables}\end{document}"
    (tmp_path / "r/whole.tex").write_text(document, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "whole.tex"]
    done = subprocess.run(command, cwd=tmp_path / "r", capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "r/whole.pdf").stat().st_size


def test_the_caption_of_a_one_seed_table_says_so_and_that_of_several_does_not(tmp_path: Path) -> None:
    (one, *_) = layouts(compare(runs_of(tmp_path / "one"), BOTH), tmp_path)
    (two, *_) = layouts(compare(runs_of(tmp_path / "two", (0, 1)), BOTH), tmp_path)
    (three, *_) = layouts(compare(runs_of(tmp_path / "three", (0, 1, 2)), BOTH), tmp_path)
    runs = runs_of(tmp_path / "mixed", (0, 1, 2))
    (mixed, *_) = layouts(compare(runs[:-1], BOTH), tmp_path)
    assert one.caption == "Scores. One seed (0) a row: this cannot say which is better"
    seeds = "Scores. ±: half the 95 % interval over seeds and items"
    assert two.caption == "Scores. Rows have fewer than three seeds: these cannot say which is better"
    assert mixed.caption == f"{seeds}. Some rows have fewer than three seeds: these cannot say which is better"
    assert three.caption == seeds


def test_scores_that_disappeared_leave_a_gap_and_the_rest_stands(tmp_path: Path) -> None:
    runs = runs_of(tmp_path)
    assert runs[1].scores is not None
    (runs[1].scores / "items.parquet").unlink()
    assert runs[2].scores is not None
    (runs[2].scores / "heldout.parquet").write_bytes(b"PAR1 torn")
    found = compare(runs, BOTH, [MissingRun({"encoder": "dropout", "ordering": "nn"}, "still running")])
    values = [row.cells["boolq/0_shot"].value is None for row in found.rows]
    assert values == [False, True, True, False, True]
    assert "items.parquet is missing" in found.rows[1].missing[0]
    assert "is no readable Parquet file" in found.rows[2].missing[0]
    assert found.rows[1].cells["tokens"].value == 1_000_000
    assert any("— dropout, nn: still running" in note for note in notes(found))


def test_why_lists_each_differing_field_with_its_values_and_runs(tmp_path: Path) -> None:
    runs = runs_of(tmp_path)
    lines, fair = explanation(runs, BOTH)
    assert fair
    assert '    "longest_first": longest_first standard seed 0 (2-0), longest_first nn seed 0 (3-0)' in lines
    runs[0] = replace(runs[0], config=config_of(runs[0].factors, model__width=256))
    lines, fair = explanation(runs, BOTH)
    assert not fair
    place = lines.index("Not declared, so that the table is refused:")
    assert lines[place + 1] == "  model.width"
    assert "    256: merge_rank standard seed 0 (0-0)" in lines[place:]


BPE = {"tokenizer": "bpe", "encoder": "merge_rank", "ordering": "standard"}
LBPE = {"tokenizer": "bpe", "encoder": "longest_first", "ordering": "standard"}
BOOKS = [(10.0, 4), (30.0, 16), (9.0, 5)] * 10


def two_runs(root: Path) -> list[FinishedRun]:
    less = [(bits - 0.5, size) for bits, size in BOOKS]
    return [
        with_texts(record(root, "one", BPE, {}, heldout=[(8, 4), (5, 4)]), books=BOOKS, arxiv=BOOKS[:2]),
        with_texts(record(root, "two", LBPE, {}, heldout=[(8, 4), (5, 4)]), books=less),
    ]


def test_a_set_of_texts_is_a_column_compared_over_its_documents(tmp_path: Path) -> None:
    comparison = compare(two_runs(tmp_path), FACTORS)
    keys = [column.key for column in comparison.columns]
    assert keys[:3] == ["books/bits_per_byte", "arxiv/bits_per_byte", "bits_per_byte"]
    first, second = (row.cells["books/bits_per_byte"] for row in comparison.rows)
    assert first.value == pytest.approx(49 / 25)
    assert second.value == pytest.approx(47.5 / 25)
    assert second.test is not None
    assert (second.test.items, second.test.difference) == (30, pytest.approx(-1.5 / 25))
    assert not first.best and not second.best  # one seed
    assert comparison.rows[1].cells["arxiv/bits_per_byte"].value is None
    assert any(
        "30 documents of books, 2 documents of arxiv, 2 held-out documents" in line for line in notes(comparison)
    )


def test_a_table_names_a_set_by_its_name(tmp_path: Path) -> None:
    table = TableConfig(columns=("books", "bits_per_byte"), names={"books": "Books"}, decimals={"books": 4})
    comparison = compare(two_runs(tmp_path), FACTORS, table=table)
    assert [(column.group, column.label) for column in comparison.columns] == [
        ("Books", "bits / byte"),
        ("Held-out text", "bits / byte"),
    ]
    assert layouts(comparison, tmp_path)[0].lines[0].entries[0].text == "1.9600"


def test_texts_end_to_end_have_a_perplexity_where_all_rows_cut_them_alike(tmp_path: Path) -> None:
    less = [(bits - 0.5, size) for bits, size in BOOKS]
    runs = [
        with_texts(record(tmp_path, "one", BPE, {}), books=BOOKS, books_concatenated=BOOKS),
        with_texts(record(tmp_path, "two", LBPE, {}), books=less, books_concatenated=less),
    ]
    comparison = compare(runs, FACTORS)
    keys = [column.key for column in comparison.columns]
    assert keys[:3] == ["books/bits_per_byte", "books_concatenated/bits_per_byte", "books_concatenated/perplexity"]
    assert [(column.group, column.label) for column in comparison.columns[1:3]] == [
        ("books", "end to end"),
        ("books", "perplexity"),
    ]
    first, second = (row.cells["books_concatenated/perplexity"] for row in comparison.rows)
    assert (first.value, second.value) == (pytest.approx(2 ** (49 / 7)), pytest.approx(2 ** (47.5 / 7)))
    assert second.test is not None
    assert second.test.difference == pytest.approx(-1.5 / 7)
    assert any("30 documents of books end to end" in line for line in notes(comparison))
    assert not any("does not compare" in line for line in notes(comparison))


def test_rows_that_cut_texts_otherwise_have_a_perplexity_on_request_and_a_warning(tmp_path: Path) -> None:
    runs = [
        with_texts(record(tmp_path, "one", BPE, {}), books_concatenated=BOOKS),
        with_texts(record(tmp_path, "two", LBPE, {}), bytes_per_token=2, books_concatenated=BOOKS),
    ]
    assert "books_concatenated/perplexity" not in [column.key for column in compare(runs, FACTORS).columns]
    comparison = compare(runs, FACTORS, table=TableConfig(columns=("books_concatenated:perplexity", "bits_per_byte")))
    values = [row.cells["books_concatenated/perplexity"].value for row in comparison.rows]
    assert values == [pytest.approx(2**7), pytest.approx(2 ** (49 / 13))]
    assert any(
        "does not compare rows that cut texts into other tokens, as those of books" in line
        for line in notes(comparison)
    )


def test_other_documents_of_a_set_are_refused(tmp_path: Path) -> None:
    runs = [
        with_texts(record(tmp_path, "one", BPE, {}), books=BOOKS),
        with_texts(record(tmp_path, "two", LBPE, {}), books=BOOKS[:2]),
    ]
    with pytest.raises(FairnessError, match=r"scores\.texts\.books"):
        compare(runs, FACTORS)


def words(root: Path, *columns: str) -> Comparison:
    """A run of an accuracy, and of a corpus whose items have values that are no shares of one."""
    run = record(root, "one", BPE, {("continuation", 0): [1, 0]})
    assert run.scores is not None
    items = pd.read_parquet(run.scores / "items.parquet")
    values = {"word_precision": (1.5, -0.5), "word_recall": (0.7, 0.5), "word_f1": (1.4, -0.3), "bleu": (0.2, 0.3)}
    found = [
        (0, "wmt14_en_de" if metric == "bleu" else "pku", 0, f"test/{place}", "hash", metric, value)
        for metric, pair in values.items()
        for place, value in enumerate(pair)
    ]
    table = pd.concat([items, pd.DataFrame(found, columns=items.columns)], ignore_index=True)
    table.to_parquet(run.scores / "items.parquet")
    return compare([run], FACTORS, table=TableConfig(columns=columns))


def test_a_segmented_corpus_has_three_columns_in_per_cent_and_no_mean_with_accuracies(tmp_path: Path) -> None:
    comparison = words(tmp_path)
    cells = comparison.rows[0].cells
    shown = [
        (column.group, column.label, quantity(cells[column.key].value, column))
        for column in comparison.columns
        if column.scored
    ]
    assert shown == [
        ("continuation", "0-shot", "50.0"),
        ("pku", "precision", "50.00"),
        ("pku", "recall", "60.00"),
        ("pku", "F1", "55.00"),
        ("wmt14_en_de", "BLEU", "25.00"),
    ]
    assert any("precision, recall, F1, BLEU in %, of all items together" in line for line in notes(comparison))


TASK = Measure("continuation/0_shot", "continuation", "0-shot", "accuracy", "higher")
SETS = [of_texts(name, "") for name in ("heldout_concatenated", "heldout_clean")]
LABELS = (("bpe", "merge_rank"), ("scaffold_bpe", "longest_first"))


def shown(
    columns: list[Measure],
    *,
    primary: set[str],
    chance: str = "25.0",
    empty: tuple[Measure, ...] = (),
    factors: tuple[str, str] = ("tokenizer", "encoder"),
) -> str:
    entries = tuple(TableEntry() if column in empty else TableEntry("2.345", "0.123") for column in columns)
    lines = tuple(TableLine(place, labels, entries, (), False) for place, labels in enumerate(LABELS))
    guesses = tuple(TableEntry(chance if column is TASK else "") for column in columns)
    layout = TableLayout("Scores", factors, tuple(columns), lines, guesses, "", frozenset(primary))
    console = Console(file=io.StringIO(), width=80)
    console.print(terminal_table(layout))
    return console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO above


def test_a_task_stays_and_parts_of_the_held_out_text_give_way() -> None:
    found = shown([TASK, BITS_PER_BYTE, *SETS], primary={BITS_PER_BYTE.key})
    assert "continuation" in found and "bits / byte" in found and "clean" not in found
    assert "2 of 4 columns" in found and "chance" in found and "25.0" in found
