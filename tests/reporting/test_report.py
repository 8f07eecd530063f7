"""The files of a report, and what a terminal shows of it."""

import csv
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from paribus.reporting.fairness import FairnessError
from paribus.reporting.report import Report, write_report
from paribus.reporting.runs import MissingRun
from support.tables import FACTORS, demo_runs, record

PAPER = {
    "title": "Table I",
    "source": "a paper",
    "parameters": "any",
    "vocabulary": "any",
    "budget": "any",
    "columns": [{"label": "Continuation", "task": "continuation"}, "BoolQ"],
    "rows": [{"label": "BPE", "factors": {"encoder": "merge_rank"}}, "something else"],
    "numbers": [[51.25, None], [52, 53]],
}
FAILURE = "out-of-memory: the device ran out of memory"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Report:
    root = tmp_path_factory.mktemp("demo")
    runs = demo_runs(root, items=200)
    missing = [MissingRun(runs[-1].factors, FAILURE)]
    return write_report(
        runs[:-1], title="Demo", factors=FACTORS, directory=root / "reports" / "demo", paper=PAPER, missing=missing
    )


def terminal(report: Report, width: int = 140) -> str:
    console = Console(width=width, record=True, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115, PTH123
    console.print(report.terminal)
    return " ".join(console.export_text().split())


def read(report: Report, name: str) -> str:
    return report.files[name].read_text(encoding="utf-8")


def csv_lines(report: Report) -> list[dict[str, str]]:
    return list(csv.DictReader(read(report, "report.csv").splitlines()))


def test_every_format_is_written(demo: Report) -> None:
    names = ("accuracy", "bits_per_byte", "effects", "learning_curves", "token_frequencies", "token_lengths")
    plots = [f"plots/{name}.svg" for name in names]
    texts = ["report.csv", "report.html", "report.md", "report.parquet", "tables.tex"]
    items = ["items.md", "items.parquet", "texts.parquet"]
    assert sorted(demo.files) == sorted([*texts, *items, *plots])
    assert all(path.stat().st_size for path in demo.files.values())
    assert all(demo.files[name].read_bytes().startswith(b"<?xml") for name in plots)


def test_csv_and_parquet_have_all_digits_of_every_cell(demo: Report) -> None:
    lines = {(int(line["row"]), line["measure"]): line for line in csv_lines(demo)}
    assert len(lines) == 8 * len(demo.comparison.columns)
    for number, row in enumerate(demo.comparison.rows, start=1):
        for key, cell in row.cells.items():
            line = lines[number, key]
            assert line["run_ids"] == " ".join(run.run_id for run in row.runs)
            assert tuple(line[factor] for factor in FACTORS) == row.labels
            assert line["value"] == ("" if cell.value is None else str(cell.value))
            if cell.test is not None:
                assert float(line["p_items"]) == cell.test.p_value
                assert float(line["low_items"]) == cell.test.low
                assert [line[name] for name in ("p_value", "p_adjusted", "detectable", "low", "high")] == [""] * 5
                assert line["baseline"] == "bpe, merge_rank, standard"
    table = pq.read_table(demo.files["report.parquet"])
    assert table.column_names == list(lines[1, "tokens"])
    assert table["value"].to_pylist() == [float(line["value"]) if line["value"] else None for line in lines.values()]
    assert str(table.schema.field("p_adjusted").type) == "double"
    assert table["missing"].to_pylist()[-1] == FAILURE


def test_the_paper_s_numbers_stand_beside_ours(demo: Report) -> None:
    ours = demo.comparison.rows[0].cells["continuation/mean"].value
    assert ours is not None
    text = read(demo, "report.md")
    difference = f"{100 * ours - 51.25:+.1f}".replace("-", "−")
    assert f"| BPE (bpe · merge\\_rank · standard) | 51.25 | {100 * ours:.1f} | {difference} | — |" in text
    assert len(re.findall(r"^\| BPE \(", text, re.MULTILINE)) == 4
    assert "| something else | 52.00 | — | — | 53 |" in text
    assert "51.25" in read(demo, "report.html") and "51.25" in terminal(demo)


@pytest.mark.usefixtures("without_plots")
def test_three_seeds_are_judged(tmp_path: Path) -> None:
    runs = demo_runs(tmp_path, seeds=(0, 1, 2), items=80, curves=False)[:6]
    report = write_report(runs, title="Seeds", factors=FACTORS, directory=tmp_path / "report")
    text = terminal(report)
    (cell,) = (cell for row in report.comparison.rows for cell in row.cells.values() if cell.p_adjusted is not None)
    assert "against the first row (bpe, merge_rank, standard): two-sided, paired, adjusted." in text
    assert "tested over seeds and items, both taken as random" in " ".join(read(report, "report.md").split())
    assert "† Exploratory: these measures do not decide the question" in text
    assert "mean †" in text and "bits / byte †" not in text
    (line,) = (line for line in csv_lines(report) if line["p_adjusted"])
    test = cell.crossed
    assert test is not None
    assert {name: float(line[name]) for name in ("difference", "low", "high", "p_value", "detectable")} == {
        "difference": test.difference, "low": test.low, "high": test.high, "p_value": cell.p_value,
        "detectable": cell.detectable,
    }  # fmt: skip
    assert float(line["seeds_share"]) == test.quantile.share


def test_the_same_records_give_the_same_bytes_and_pictures_of_an_earlier_report_go(tmp_path: Path) -> None:
    runs = demo_runs(tmp_path, items=20)[:2]
    earlier = tmp_path / "two" / "plots" / "earlier.svg"
    earlier.parent.mkdir(parents=True)
    earlier.touch()
    first, second = (
        write_report(runs, title="Twice", factors=FACTORS, directory=tmp_path / name) for name in ("one", "two")
    )
    assert list(first.files) == list(second.files)
    for name, path in first.files.items():
        assert path.read_bytes() == second.files[name].read_bytes(), name
    assert not earlier.exists()


@pytest.mark.usefixtures("without_plots")
def test_chinese_labels_and_markup_stay_text(tmp_path: Path) -> None:
    labels = {"tokenizer": "字节对编码", "encoder": "<b>最长|优先</b>"}
    runs = [
        record(tmp_path, "基线", {**labels, "tokenizer": "基线"}, {("阅读理解", 0): [1, 0, 1]}),
        record(tmp_path, "long-1", labels, {("阅读理解", 0): [1, 1, 1]}),
    ]
    directory = tmp_path / "报告"
    report = write_report(runs, title="中文 & <title>", factors=("tokenizer", "encoder"), directory=directory)
    page, text = read(report, "report.html"), read(report, "report.md")
    assert "字节对编码" in page and "<b>" not in page
    assert "中文 &amp; &lt;title&gt;" in page
    assert r"\<b\>最长\|优先\</b\>" in text
    assert "字节对编码" in terminal(report)
    assert "阅读理解" in read(report, "report.csv")
    assert r"中文 \& <title>" in read(report, "tables.tex")


def test_an_unfair_comparison_writes_nothing(tmp_path: Path) -> None:
    runs = demo_runs(tmp_path, items=5, curves=False)
    with pytest.raises(FairnessError):
        write_report(runs, title="Unfair", factors=("tokenizer", "encoder"), directory=tmp_path / "report")
    assert not (tmp_path / "report").exists()
