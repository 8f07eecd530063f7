"""Columns of sets of texts and of what is scored over a whole corpus."""

from pathlib import Path

import pandas as pd
import pytest

from paribus.config.groups.experiment import TableConfig
from paribus.reporting.fairness.equality import FairnessError
from paribus.reporting.table.comparison import Comparison, compare
from paribus.reporting.table.frame import RunRecord
from paribus.reporting.table.layout import layouts, quantity
from support.tables import FACTORS, notes, record, with_texts

BPE = {"tokenizer": "bpe", "encoder": "merge_rank", "ordering": "standard"}
LBPE = {"tokenizer": "bpe", "encoder": "longest_first", "ordering": "standard"}
BOOKS = [(10.0, 4), (30.0, 16), (9.0, 5)] * 10


def two_runs(root: Path) -> list[RunRecord]:
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
