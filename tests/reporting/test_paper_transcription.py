"""The numbers of the experiment files are the papers': compared with the tables as they were typed a second time."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from paribus.reporting.paper import Setting, parse_paper, parse_setting
from support.experiments import paper_block, with_numbers

T = TypeVar("T")
TYPED = Path(__file__).resolve().parents[1] / "data" / "papers"
TABLES = {
    f"{path.stem}/{name}": table
    for path in sorted(TYPED.glob("*.yaml"))
    for name, table in yaml.safe_load(path.read_text(encoding="utf-8")).items()
}
BPE = {"tokenizer": "bpe", "encoder": "merge_rank"}
SCAFFOLD = {"tokenizer": "scaffold_bpe", "encoder": "merge_rank"}
RELATED = {"tokenizer": "bpe", "ordering": "in_context"}
METHODS: Mapping[str, Mapping[str, str]] = {
    "Original BPE": BPE,
    "LBPE": BPE | {"encoder": "longest_first"},
    "Scaffold-BPE": SCAFFOLD,
    "Scaffold-BPE + LBPE": SCAFFOLD | {"encoder": "longest_first"},
    "Original BPE, continued": BPE | {"start": "checkpoint"},
    "LBPE, continued": BPE | {"start": "checkpoint", "encoder": "longest_first"},
    "Original BPE + BPE-Dropout": BPE | {"encoder": "dropout_each_epoch"},
    "Scaffold-BPE + BPE-Dropout": SCAFFOLD | {"encoder": "dropout_each_epoch"},
    "Standard": BPE | {"ordering": "standard", "duplicates": "embedding"},
    "NN": BPE | {"ordering": "nn", "duplicates": "embedding"},
    "In-Context Pretraining": BPE | {"ordering": "in_context", "duplicates": "embedding"},
    "Random": RELATED | {"ordering": "standard", "duplicates": "embedding"},
    "Clustering": RELATED | {"ordering": "cluster", "duplicates": "embedding"},
    "Links": RELATED | {"duplicates": "embedding"},
    "No dedup": RELATED | {"duplicates": "off"},
    **{
        f"{name}, {text}": method | corpus
        for name, method in (("Original BPE", BPE), ("Scaffold-BPE", SCAFFOLD))
        for text, corpus in (
            ("Pile", {"corpus": "files"}),
            ("En-De", {"corpus.target_language": "de"}),
            ("En-Fr", {"corpus.target_language": "fr"}),
        )
    },
    "Baseline": {"pretokenizer": "none"},
    "GPT-2": {"pretokenizer": "predictive_entropy"},
    "lambda, first": {"pretokenizer": "spans_1"},
    "lambda, second": {"pretokenizer": "spans_3"},
    "lambda, third": {"pretokenizer": "spans_10"},
    "lambda, fourth": {"pretokenizer": "spans_100"},
    "Entropy Only": {"pretokenizer": "spans_entropy"},
}
"""What a paper calls a row, and the choices that it is here."""

Cell = tuple[frozenset[tuple[str, str]], Setting, str]
"""The choices of a model, what it was trained with, and the heading of a column."""


def typed(table: Mapping[str, Any], number_of: Callable[[str], T]) -> dict[Cell, T]:
    """The cells of a table as it was typed, whichever way the paper prints it."""
    lines = [line.split() for line in table["lines"].splitlines()]
    if "tasks" in table:
        named = [(task, model, line[place]) for model, line in zip(table["models"], lines, strict=True)
                 for place, task in enumerate(table["tasks"])]  # fmt: skip
    else:
        named = [(line[0], model, line[1 + place]) for line in lines for place, model in enumerate(table["models"])]
    vocabularies = dict(zip(table.get("tasks", ()), table.get("vocabularies", ()), strict=False))
    return {
        (
            frozenset(METHODS[model["method"]].items()),
            parse_setting(
                model | ({"vocabulary": vocabularies[task]} if vocabularies else {}), table, "", required=True
            ),
            task,
        ): number_of(number)
        for task, model, number in named
        if number != "—"
    }


def entered(name: str) -> Iterator[tuple[Cell, float]]:
    """The cells of an experiment file."""
    paper = parse_paper(paper_block(name))
    assert paper.numbers is not None
    for row, numbers in zip(paper.rows, paper.numbers, strict=True):
        for column, number in zip(paper.columns, numbers, strict=True):
            if number is not None:
                yield (frozenset(row.factors.items()), row.setting, column.label), number


def test_every_table_with_numbers_was_typed_twice() -> None:
    assert set(with_numbers()) == set(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_the_numbers_of_an_experiment_file_are_those_that_were_typed_from_the_paper(name: str) -> None:
    cells = list(entered(name))
    assert dict(cells) == typed(TABLES[name], float)
    assert len(dict(cells)) == len(cells)


@pytest.mark.parametrize("name", TABLES)
def test_numbers_are_shown_with_the_digits_that_the_paper_prints(name: str) -> None:
    paper = parse_paper(paper_block(name))
    shown = {
        (frozenset(row.factors.items()), row.setting, column.label): paper.printed(number, place)
        for row, numbers in zip(paper.rows, paper.numbers or (), strict=True)
        for place, (column, number) in enumerate(zip(paper.columns, numbers, strict=True))
        if number is not None and number < 1e9
    }
    printed = typed(TABLES[name], lambda number: number.removeprefix("+").replace("-", "−"))
    assert shown == {cell: number for cell, number in printed.items() if "e" not in number}


def test_a_wrong_number_or_a_row_in_another_s_place_is_found() -> None:
    cells, right = dict(entered("scaffold_bpe/table_3")), typed(TABLES["scaffold_bpe/table_3"], float)
    one, other, *_ = cells
    assert cells == right
    assert {**cells, one: cells[one] + 0.01} != right
    assert {**cells, one: cells[other], other: cells[one]} != right
