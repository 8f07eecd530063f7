"""Tables and pictures of tokenizers, spans, predictive entropy and orderings, from numbers alone."""

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paribus.reporting.data_reports import OrderRow, paper_lines, write_entropy_report
from paribus.reporting.data_tables import Replaced, TokenRow, all_numbers, length_lines
from paribus.reporting.figures_data import EntropyLine, order_plots, pieces
from paribus.reporting.paper import Paper, parse_paper
from paribus.reporting.plots import COLOURS


def read_csv(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


# Tokenizers

TRAIN = {
    "texts": 3, "bytes": 1000, "tokens": 250, "words": 200, "bytes_per_token": 4.0, "tokens_per_word": 1.25,
    "mean_token_length": 3.9, "entropy": 9.5, "redundancy": 0.25, "renyi_efficiency": 0.5, "used_tokens": 90,
    "unused_tokens": 10, "scaffold_share": 0.0, "token_lengths": {"1-3": 100, "10-12": 30, "16-18": 5, "4-6": 120},
    "frequency_by_rank": [[1, 50], [10, 5], [90, 1]],
}  # fmt: skip


def row(encoder: str, *, base: int | None = None, replaced: Replaced | None = None, **train: Any) -> TokenRow:
    statistics = {
        "train": TRAIN | train,
        "heldout": TRAIN | {"bytes_per_token": 3.5},
        "vocabulary_lengths": {"1-3": 40, "4-6": 60},
        "own_share": 0.4,
        "own_shares": [10, 0, 5],
        "words": {},
    }
    config = {"encoder": {"kind": encoder}, "tokenizer": {"kind": "bpe", "vocab_size": 32_000}}
    return TokenRow((encoder,), encoder.upper(), config, statistics, 32_000, base, replaced)


def paper(**changes: Any) -> Paper:
    rows = [
        {"label": "BPE", "factors": {"tokenizer": "bpe", "encoder": "merge_rank"}},
        {"label": "LBPE", "factors": {"tokenizer": "bpe", "encoder": "longest_first"}},
    ]
    columns = [{"label": "bytes", "task": "bytes_per_token"}, {"label": "change", "task": "bytes_per_token_change"}]
    content = {
        "title": "A table", "parameters": "any", "vocabulary": "32K", "budget": "any", "columns": columns,
        "rows": rows, "numbers": [[3.43, None], [3.5, 2.25]],
    }  # fmt: skip
    return parse_paper(content | changes)


def test_changes_are_from_the_row_that_a_row_is_compared_with() -> None:
    rows = [row("merge_rank"), row("longest_first", base=0, bytes_per_token=4.1, token_lengths={"1-3": 90, "4-6": 132})]
    first, second = all_numbers(rows)
    assert first["bytes_per_token_change"] is None and first["tokens_1_3_change"] is None
    changes = {name: second[f"{name}_change"] for name in ("bytes_per_token", "tokens_1_3", "tokens_4_6")}
    assert changes == pytest.approx({"bytes_per_token": 0.025, "tokens_1_3": -0.1, "tokens_4_6": 0.1})
    assert second["tokens_10_12_change"] == -1 and second["tokens_7_9_change"] is None
    assert second["tokens_1_3_share"] == pytest.approx(90 / 222)
    lines = length_lines(rows, "encoder")
    assert lines[2][:3] == ["LONGEST_FIRST", "40.54 % (−10.00 %)", "59.46 % (+10.00 %)"]
    assert lines[3:] == [["vocabulary of MERGE_RANK", "40", "60", "0", "0", "0", "0"]]


def test_the_papers_number_stands_beside_rows_of_its_choices_size_and_unit() -> None:
    rows = [row("merge_rank"), row("longest_first", base=0, bytes_per_token=4.1)]

    def lines(paper: Paper, rows: Sequence[TokenRow] = rows) -> list[list[str]]:
        return paper_lines(paper, rows, all_numbers(rows), ("encoder",))

    assert lines(paper()) == [
        ["", "", "paper", "ours", "difference"],
        ["BPE", "bytes", "3.43", "4.00", "+0.57"],
        ["LBPE", "bytes", "3.50", "4.10", "+0.60"],
        ["LBPE", "change", "2.25", "2.50", "+0.25"],
    ]
    for other in (paper(vocabulary="64K"), paper(rows=[{"label": "x", "factors": {"encoder": "none"}}] * 2)):
        assert [line[3:] for line in lines(other)[1:]] == [["—", "—"]] * 3
    # The text of this vocabulary has no more pairs than 600, though 32K were asked for.
    assert lines(paper(), [replace(rows[0], vocab_size=600)])[1][3:] == ["—", "—"]
    for unit in ("byte", "character"):
        of_unit = [
            replace(rows[0], config=rows[0].config | {"tokenizer": rows[0].config["tokenizer"] | {"unit": unit}})
        ]
        assert lines(paper(), of_unit)[1][3] == "4.00"
        assert (lines(paper(unit="character"), of_unit)[1][3] == "4.00") == (unit == "character")


# Candidates for spans, and predictive entropy

LINE = EntropyLine("中国ab人", (3.0, 1.0, 2.5, 1.5, 4.0, 0.5), (2, 4))


def test_every_character_has_its_entropy_and_whether_a_piece_ends_there(tmp_path: Path) -> None:
    unknown = EntropyLine("a,b", (float("nan"), 1.0, 0.12345, 2.0), ())
    write_entropy_report([LINE, unknown], tmp_path)
    assert [tuple(line.values()) for line in read_csv(tmp_path / "entropy.csv")] == [
        ("1", "0", "", "3.0000", "no"), ("1", "1", "中", "1.0000", "no"), ("1", "2", "国", "2.5000", "yes"),
        ("1", "3", "a", "1.5000", "no"), ("1", "4", "b", "4.0000", "yes"), ("1", "5", "人", "0.5000", "yes"),
        ("2", "1", "a", "1.0000", "no"), ("2", "2", ",", "0.1235", "no"), ("2", "3", "b", "2.0000", "yes"),
    ]  # fmt: skip
    assert pieces(LINE) == ["中国", "ab", "人"] and pieces(unknown) == ["a,b"]


# Orderings

CURVES = {
    "similarity_inside": [0] * 60 + [3, 5, 2] + [0] * 37,
    "similarity_shuffled": [0] * 48 + [4, 6] + [0] * 50,
    "contexts_of_documents": [0, 2, 5, 3],
    "similarity_along": [0.4, 0.5, 0.3],
    "positions": [0.0, 0.5, 0.25],
}
NUMBERS = {
    "documents": 30, "removed": 3, "contexts": 10, "documents_per_context": 2.1, "cut_share": 0.2, "padding": 0.0,
    "straddling": 0.034, "similarity_inside": 0.31, "similarity_shuffled": 0.015, "similarity_following": 0.02,
    "similarity_random": 0.01, "similarity_adjacent": 0.3,
}  # fmt: skip


def order_row(label: str, *, embeddings: str = "same", **numbers: float | None) -> OrderRow:
    return OrderRow(label, NUMBERS | numbers, CURVES, embeddings)


def test_a_missing_measurement_is_not_shown_as_zero() -> None:
    """Contexts of one document have no two documents to compare."""
    curves = CURVES | {"similarity_inside": [0] * 100}
    alone = OrderRow("one_document", NUMBERS | {"similarity_inside": None}, curves, "same")
    for rows in ([alone], [alone, order_row("concatenate")]):
        (plot,) = (plot for plot in order_plots(rows) if plot.name == "similarity_inside")
        # A line in the legend for each row, and one in the picture for each that was measured.
        lines = [len(re.findall(f"<path [^>]*stroke: {colour.lower()}", plot.svg.decode())) for colour in COLOURS[:2]]
        assert lines[: len(rows)] == [1, 2][: len(rows)]
