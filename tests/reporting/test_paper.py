"""Beside which of our runs a paper's number stands: those like the paper's own, and no other."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from paribus.config.groups.evaluation import TableConfig
from paribus.errors import ConfigurationError
from paribus.reporting.compare import compare
from paribus.reporting.measures import BESIDE
from paribus.reporting.paper import Paper, parse_paper
from paribus.reporting.report import write_report
from paribus.reporting.runs import FinishedRun
from paribus.reporting.table import measured_columns, paper_numbers, side_by_side, without_number
from support.experiments import experiment_of, of_tokenizers, paper_block, with_numbers
from support.tables import config_of, record, with_texts

BLOCKS = [name for name in with_numbers() if not of_tokenizers(name)]
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


def told(run: FinishedRun) -> tuple[float | None, list[str]]:
    """The paper's number beside a run, and the sentences that say why there is none."""
    paper, comparison = parse_paper(BLOCK), compare([run], ("encoder",))
    found = paper_numbers(paper, comparison).get((0, "boolq/mean"))
    return found.number if found else None, without_number(paper, comparison)


@pytest.mark.parametrize(
    ("changed", "wanted"), [({}, 50), ({"parameters": 7e9}, 60), ({"encoder": "longest_first"}, 70)]
)
def test_a_run_like_the_paper_s_has_its_number(tmp_path: Path, changed: dict[str, Any], wanted: float) -> None:
    assert told(ours(tmp_path, **LIKE | changed)) == (wanted, [])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"parameters": 2e6}, "ours have 2M parameters with a vocabulary of 32.8K and a budget of 100B tokens"),
        ({"vocabulary": 64_000}, "a vocabulary of 64K"),
        ({"vocabulary": None}, "a vocabulary of another kind"),
        ({"budget": {"kind": "equal_tokens", "tokens": 300_000_000_000}}, "a budget of 300B tokens"),
        ({"budget": {"kind": "equal_text", "text": 388 * 2**30}}, "a budget of 388 GiB of text"),
        ({"budget": {"kind": "equal_flops", "flops": 3 * 10**20}}, "a budget of another kind"),
    ],
)
def test_a_run_of_another_setting_has_none_and_is_told_why(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    found, (reason,) = told(ours(tmp_path, **LIKE | changed))
    assert found is None
    assert said in reason
    assert reason.endswith("have 468M or 6.7B parameters with a vocabulary of 32K and a budget of 100B tokens.")


@pytest.mark.parametrize(("unit", "wanted"), [("character", 50), ("byte", None)])
def test_tokens_of_another_unit_have_no_number_of_the_paper(unit: str, wanted: float | None, tmp_path: Path) -> None:
    run = ours(tmp_path, **LIKE)
    run.config["tokenizer"]["unit"] = unit
    paper, comparison = parse_paper({**BLOCK, "unit": "character"}), compare([run], ("encoder",))
    found = paper_numbers(paper, comparison).get((0, "boolq/mean"))
    assert (found.number if found else None) == wanted
    told = without_number(paper, comparison)
    assert [("of 32.8K, unit byte" in text, "of 32K, unit character" in text) for text in told] == (
        [] if wanted else [(True, True)]
    )
    assert paper_numbers(parse_paper(BLOCK), comparison)[0, "boolq/mean"].number == 50


def test_a_choice_that_no_factor_names_must_be_the_paper_s_too(tmp_path: Path) -> None:
    found, (reason,) = told(ours(tmp_path, **LIKE, tokenizer="scaffold_bpe"))
    assert found is None
    assert "it has no row of the same choices." in reason


def test_each_of_our_rows_that_fit_one_of_the_paper_has_a_line(tmp_path: Path) -> None:
    rows = [{"label": "BPE", "factors": {"tokenizer": "bpe"}}]
    block = {**BLOCK, "rows": rows, "numbers": [[50]]}
    runs = []
    for number, (encoder, answers) in enumerate({"merge_rank": [1, 0, 0, 0], "longest_first": [1, 1, 0, 0]}.items()):
        run = record(tmp_path, f"run{number}", {"encoder": encoder}, {("boolq", 0): answers})
        config = {**config_of({"tokenizer": "bpe", "encoder": encoder}), "budget": TOKENS_100B}
        config["tokenizer"] = {"kind": "bpe", "vocab_size": 32_768}
        runs.append(replace(run, config=config, training={**run.training, "parameters": 490e6}))
    _, *lines = side_by_side(parse_paper(block), compare(runs, ("encoder",)))
    assert lines == [
        ["BPE (merge_rank)", "50", "25.0", "−25.0"],
        ["BPE (longest_first)", "50", "50.0", "+0.0"],
    ]


def test_every_form_of_the_report_says_why_and_none_has_the_number(tmp_path: Path) -> None:
    run, table = ours(tmp_path, **LIKE | {"vocabulary": 64_000}), TableConfig(paper=True)  # type: ignore[call-arg]
    report = write_report(
        [run], title="T", factors=("encoder",), directory=tmp_path / "report", table=table, paper=BLOCK
    )
    for name in ("report.html", "report.md", "tables.tex"):
        text = report.files[name].read_text(encoding="utf-8")
        assert "No number of the paper stands beside" in text and "[50" not in text, name
    (cell, *_) = pq.read_table(report.files["report.parquet"]).to_pylist()
    assert (cell["tasks"], cell["paper"], cell["paper_parameters"]) == ("boolq", None, None)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"parameters": "1B", "vocabulary": "32K"}, r"paper.rows\[0\].budget is missing: .*; write any where"),
        ({"parameters": "1B", "budget": "1B tokens"}, r"paper.rows\[0\].vocabulary is missing"),
        ({"parameters": "any", "vocabulary": "any", "budget": "1B words"}, r"paper.rows\[0\].budget is '1B words'"),
        ({"parameters": "any", "vocabulary": "any", "budget": "1 GiB"}, "must be like `100B tokens`, `388GiB text`"),
        (
            {"parameters": "1B", "vocabulary": "large", "budget": "any"},
            r"paper.rows\[0\].vocabulary: 'large' is not a number",
        ),
        ({"reference": "1B"}, r"paper.rows\[0\].reference is unknown"),
    ],
)
def test_a_row_that_does_not_say_what_it_was_trained_with_is_refused(row: dict[str, Any], message: str) -> None:
    rows = [{"label": "BPE", "factors": {"tokenizer": "bpe"}, **row}]
    with pytest.raises(ConfigurationError, match=message):
        parse_paper({"title": "T", "columns": ["boolq"], "rows": rows, "numbers": [[1]]})


@pytest.mark.parametrize("number", [math.nan, math.inf, True, "50"])
def test_what_is_no_number_of_a_paper_is_refused_by_its_path(number: object) -> None:
    with pytest.raises(ConfigurationError, match=r"paper\.numbers\[1\]\[0\] is .*, neither a number nor null"):
        parse_paper(BLOCK | {"numbers": [[50], [number], [70]]})


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
    found = paper_numbers(paper, compare([run], factors))
    return found[0, f"{column.task}/mean"].number


def test_a_paper_s_mean_over_tasks_stands_beside_the_group_of_that_name(tmp_path: Path) -> None:
    run = ours(tmp_path, **LIKE)
    group = TableConfig(groups={"common": ["boolq"]}, columns=("boolq", "common"))  # type: ignore[call-arg]
    paper = parse_paper({**BLOCK, "columns": [{"label": "Average", "task": "common"}]})
    comparison = compare([run], ("encoder",), table=group)
    assert paper_numbers(paper, comparison)[0, "common"].number == 50
    assert side_by_side(paper, comparison)[0] == ["", "Average (paper)", "(ours)", "(difference)"]


ALONE = {"average_as_printed"}
"""Columns of papers that nothing of ours measures."""


@pytest.mark.parametrize("name", BLOCKS)
def test_each_column_of_an_experiment_file_has_one_of_ours_in_its_table(name: str, tmp_path: Path) -> None:
    paper, table = parse_paper(paper_block(name)), experiment_of(name).table
    assert table is not None
    texts = [column.task.removesuffix(":perplexity") for column in paper.columns if "_concatenated:" in column.task]
    measures = [
        column.task for column in paper.columns if column.task not in ALONE and "_concatenated:" not in column.task
    ]
    run = scored(tmp_path, table, measures or ["boolq"])
    if texts:
        run = with_texts(run, **{name: [(10.0, 4)] * 30 for text in texts for name in (text, text.partition("_")[0])})
    comparison = compare([run], ("encoder",), table=replace(table, rows=(), baseline=None))
    assert measured_columns(paper, comparison) == [column.task not in ALONE for column in paper.columns]


def scored(root: Path, table: TableConfig, measures: list[str]) -> FinishedRun:
    """A run with scores of tasks and of those in groups, by the metrics that the table asks of them."""
    groups, metrics = table.groups or {}, table.metrics or {}
    tasks = [task for measure in measures for task in groups.get(measure, [measure])]
    run = record(root, "one", {"encoder": "merge_rank"}, {(task.partition(":")[0], 0): [1, 0] for task in tasks})
    items = pd.read_parquet(run.scores / "items.parquet")
    wanted = {(task.partition(":")[0], task.partition(":")[2] or metrics.get(task, "acc")) for task in tasks}
    wanted |= {(task, metrics[task]) for task, _ in wanted if task in metrics}
    wanted |= {(task, main) for task, metric in wanted for main, beside in BESIDE.items() if metric == beside}
    parts = [items[items["task"] == task].assign(metric=metric) for task, metric in sorted(wanted)]
    pd.concat(parts).to_parquet(run.scores / "items.parquet")
    return run
