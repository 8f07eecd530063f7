"""A paper's numbers: typed right, and beside those of our runs that are like the paper's own, and no other."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.errors import ConfigurationError
from paribus.pipeline.prepare import prepare_runs
from paribus.reporting.compare import compare
from paribus.reporting.paper import Paper, Setting, parse_paper, parse_setting
from paribus.reporting.runs import FinishedRun
from paribus.reporting.table import paper_numbers, without_number
from support.experiments import paper_block, trains_no_model, with_numbers
from support.tables import config_of, record

TOKENS_100B = {"kind": "equal_tokens", "tokens": 100_000_000_000}
LIKE: dict[str, Any] = {"parameters": 490e6, "vocabulary": 32_768, "budget": TOKENS_100B}
"""A run like the paper's: its model with a vocabulary of 32K, read 100B tokens."""
ROWS = [
    {"label": "BPE", "factors": {"tokenizer": "bpe", "encoder": "merge_rank"}},
    {"label": "BPE, 6.7B", "parameters": "6.7B", "factors": {"tokenizer": "bpe", "encoder": "merge_rank"}},
    {"label": "LBPE", "factors": {"tokenizer": "bpe", "encoder": "longest_first"}},
]
BLOCK = {
    "title": "T", "columns": ["boolq"], "rows": ROWS, "numbers": [[50], [60], [70]],
    "parameters": "468M", "vocabulary": "32K", "budget": "100B tokens",
}  # fmt: skip


def ours(
    root: Path, *, parameters: float, vocabulary: int | None, budget: dict[str, Any], **choices: str
) -> FinishedRun:
    chosen = {"tokenizer": "bpe", "encoder": "merge_rank"} | choices
    run = record(root, "one", {"encoder": chosen["encoder"]}, {("boolq", 0): [1, 0, 0]})
    tokenizer = {"kind": chosen["tokenizer"]} | ({"vocab_size": vocabulary} if vocabulary else {})
    config = {**config_of(chosen), "budget": budget, "tokenizer": tokenizer}
    return replace(run, config=config, training={**run.training, "parameters": parameters})


def beside(run: FinishedRun, block: Mapping[str, Any] = BLOCK) -> tuple[float | None, list[str]]:
    """The paper's number beside a run, and the sentences that say why there is none."""
    paper, comparison = parse_paper(block), compare([run], ("encoder",))
    cell = paper_numbers(paper, comparison).get((0, "boolq/mean"))
    return cell.number if cell else None, without_number(paper, comparison)


def test_a_run_like_the_paper_s_has_its_number_and_another_is_told_why_not(tmp_path: Path) -> None:
    changes: list[tuple[dict[str, Any], float | str]] = [
        ({}, 50),
        ({"parameters": 7e9}, 60),
        ({"encoder": "longest_first"}, 70),
        ({"parameters": 2e6}, "ours have 2M parameters with a vocabulary of 32.8K and a budget of 100B tokens"),
        ({"vocabulary": 64_000}, "a vocabulary of 64K"),
        ({"vocabulary": None}, "a vocabulary of another kind"),
        ({"budget": {"kind": "equal_tokens", "tokens": 300_000_000_000}}, "a budget of 300B tokens"),
        ({"budget": {"kind": "equal_text", "text": 100_000_000_000}}, "a budget of 93.1 GiB of text"),
        ({"budget": {"kind": "equal_flops", "flops": 3 * 10**20}}, "a budget of another kind"),
        ({"tokenizer": "scaffold_bpe"}, "it has no row of the same choices."),  # though no factor names them
    ]
    for place, (change, expected) in enumerate(changes):
        number, reasons = beside(ours(tmp_path / str(place), **LIKE | change))
        if isinstance(expected, str):
            (reason,) = reasons
            assert number is None and expected in reason, change
            settings = "have 468M or 6.7B parameters with a vocabulary of 32K and a budget of 100B tokens."
            assert "tokenizer" in change or reason.endswith(settings), change
        else:
            assert (number, reasons) == (expected, []), change
    twice = BLOCK | {"rows": [*ROWS, ROWS[0]], "numbers": [[50], [60], [70], [80]]}
    assert beside(ours(tmp_path / "twice", **LIKE), twice)[0] is None, "which of two rows is ours is not known"


def row(**fields: Any) -> dict[str, Any]:
    """The changes of a block whose only row says this of its training."""
    rows = [{"label": "BPE", "factors": {"tokenizer": "bpe"}, **fields}]
    return {"rows": rows, "numbers": [[1]], "parameters": None, "vocabulary": None, "budget": None}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"rowz": []}, "paper.rowz is unknown"),
    ({"title": ""}, "paper.title is missing"),
    ({"numbers": [[1]]}, "a list of 3 rows"),
    ({"columns": 3}, "paper.columns is 3; it must be a list"),
    ({"columns": [{"label": "A", "taks": "boolq"}]}, "paper.columns[0].taks is unknown"),
    ({"rows": [{"label": "a", "factors": ["bpe"]}, "b", "c"]}, "paper.rows[0].factors is ['bpe']"),
    ({"rows": ["a", {"label": "b", "parameters": "big"}, "c"]}, "paper.rows[1].parameters: 'big' is not a number"),
    *(
        ({"numbers": [[50], [number], [70]]}, f"paper.numbers[1][0] is {number!r}, neither a number nor null")
        for number in (math.nan, math.inf, True, "50")
    ),
    (row(parameters="1B", vocabulary="32K"), "paper.rows[0].budget is missing: "),
    (row(parameters="1B", budget="1B tokens"), "paper.rows[0].vocabulary is missing"),
    (row(parameters="any", vocabulary="any", budget="1B words"), "paper.rows[0].budget is '1B words'"),
    (row(parameters="any", vocabulary="any", budget="1 GiB"), "must be like `100B tokens`, `388GiB text`"),
    (row(parameters="1B", vocabulary="large", budget="any"), "paper.rows[0].vocabulary: 'large' is not a number"),
    (row(reference="1B"), "paper.rows[0].reference is unknown"),
]


def test_a_malformed_block_is_refused_by_path() -> None:
    for changes, message in REFUSED:
        with pytest.raises(ConfigurationError) as error:
            parse_paper({**BLOCK, **changes})
        assert message in str(error.value)


@pytest.mark.parametrize("verb", ["run", "plan"])
def test_a_malformed_block_is_refused_before_anything_runs(verb: str, tmp_path: Path) -> None:
    wrong = ("+experiment.paper.numbers=[[1,2]]", "+experiment.paper.rows=[a,b]", "+experiment.paper.title=T")
    command = parse(["-m", "experiment=demo", "scale=tiny", *wrong, f"root={tmp_path}/root"], verb)
    with pytest.raises(ConfigurationError, match=r"experiment: paper\.numbers must be null or a list of 2 rows"):
        prepare_runs(compose_command(command), tolerate_missing=verb == "plan")
    assert not (tmp_path / "root/runs").exists()


TABLES = {
    f"{path.stem}/{name}": table
    for path in sorted((Path(__file__).resolve().parents[1] / "data" / "papers").glob("*.yaml"))
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
Place = tuple[frozenset[tuple[str, str]], Setting, str]
"""The choices of a model, what it was trained with, and the heading of a column."""


def typed(table: Mapping[str, Any]) -> dict[Place, str]:
    """The numbers of a table as they were typed, whichever way the paper prints it."""
    lines = [line.split() for line in table["lines"].splitlines()]
    if "tasks" in table:
        named = [(task, model, line[place]) for model, line in zip(table["models"], lines, strict=True)
                 for place, task in enumerate(table["tasks"])]  # fmt: skip
    else:
        named = [(line[0], model, line[1 + place]) for line in lines for place, model in enumerate(table["models"])]
    vocabularies = dict(zip(table.get("tasks", ()), table.get("vocabularies", ()), strict=False))
    numbers = {}
    for task, model, number in named:
        said = model | ({"vocabulary": vocabularies[task]} if vocabularies else {})
        place = (frozenset(METHODS[model["method"]].items()), parse_setting(said, table, "", required=True), task)
        numbers |= {place: number} if number != "—" else {}
    return numbers


def test_every_table_with_numbers_was_typed_twice() -> None:
    assert set(with_numbers()) == set(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_the_numbers_and_digits_of_an_experiment_file_are_those_that_were_typed_from_the_paper(name: str) -> None:
    paper = parse_paper(paper_block(name))
    entered = [
        ((frozenset(row.factors.items()), row.setting, column.label), number, paper.printed(number, place))
        for row, numbers in zip(paper.rows, paper.numbers or (), strict=True)
        for place, (column, number) in enumerate(zip(paper.columns, numbers, strict=True))
        if number is not None
    ]
    expected = typed(TABLES[name])
    assert {place: number for place, number, _ in entered} == {place: float(text) for place, text in expected.items()}
    assert len(entered) == len(expected)
    assert {place: text for place, number, text in entered if number < 1e9} == {
        place: text.removeprefix("+").replace("-", "−") for place, text in expected.items() if "e" not in text
    }


BLOCKS = [name for name in with_numbers() if not trains_no_model(name)]


@pytest.mark.parametrize("name", BLOCKS)
def test_each_row_of_an_experiment_file_fits_only_a_run_made_like_it(name: str, tmp_path: Path) -> None:
    block = paper_block(name)
    paper = parse_paper(block)
    assert paper.numbers is not None
    for index, row in enumerate(paper.rows):
        assert None not in (row.setting.parameters, row.setting.vocabulary)
        assert row.setting.budget is not None or block["budget"] == "any"
        place = next(place for place, number in enumerate(paper.numbers[index]) if number is not None)
        assert published(paper, index, place, tmp_path / str(index)) == paper.numbers[index][place]


def published(paper: Paper, index: int, place: int, root: Path) -> float | None:
    """The number beside a run made like one row of the paper."""
    row, column, factors = paper.rows[index], paper.columns[place], tuple(paper.rows[index].factors)
    config = config_of({}) | {name: {"kind": kind} for name, kind in row.factors.items()}
    config["tokenizer"] = {"kind": row.factors["tokenizer"], "vocab_size": row.setting.vocabulary}
    config["tokenizer"] |= {"unit": row.setting.unit} if row.setting.unit else {}
    if budget := row.setting.budget:
        config["budget"] = {"kind": f"equal_{budget.unit}", budget.unit: budget.amount}
    run = record(root, "one", row.factors, {(column.task, 0): [1, 0]}, config=config)
    run = replace(run, training={**run.training, "parameters": row.setting.parameters})
    return paper_numbers(paper, compare([run], factors))[0, f"{column.task}/mean"].number
