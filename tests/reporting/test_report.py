import csv
import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.errors import ConfigurationError
from paribus.pipeline.prepare import prepare_runs
from paribus.pipeline.results import compare_vocabularies
from paribus.reporting.compare import compare
from paribus.reporting.fairness import FairnessError
from paribus.reporting.figures import plots, read_curves
from paribus.reporting.figures_data import OverlapMatrix
from paribus.reporting.paper import parse_paper
from paribus.reporting.report import Report, write_report
from paribus.reporting.runs import MissingRun
from paribus.tokenization import Tokenizer
from paribus.tokenization.encoded_corpus import EncodedCorpusWriter
from support.tables import FACTORS, demo_runs, notes, record

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


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Report:
    root = tmp_path_factory.mktemp("demo")
    runs = demo_runs(root, items=200)
    missing = [MissingRun(runs[-1].factors, "out-of-memory: the device ran out of memory")]
    return write_report(
        runs[:-1], title="Demo", factors=FACTORS, directory=root / "reports" / "demo", paper=PAPER, missing=missing
    )


def text_of(report: Report, width: int = 140) -> str:
    console = Console(width=width, record=True, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115, PTH123
    console.print(report.terminal)
    return console.export_text()


def read(report: Report, name: str) -> str:
    return report.files[name].read_text(encoding="utf-8")


class Links(HTMLParser):
    """Collects where a page leads, and what it loads."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.used: list[str] = []
        self.anchors: set[str] = set()
        self.unbalanced: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if attributes.get("id"):
            self.anchors.add(str(attributes["id"]))
        if tag == "a":
            self.targets.append(str(attributes["href"]))
        elif tag in ("img", "script", "link", "iframe"):
            self.loaded.append(str(attributes.get("src") or attributes.get("href")))
        if "xlink:href" in attributes:
            self.used.append(str(attributes["xlink:href"]))
        if tag not in ("img", "input", "meta", "source"):
            self.unbalanced.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.unbalanced.pop() == tag


def test_every_format_is_written(demo: Report) -> None:
    names = ("accuracy", "bits_per_byte", "effects", "learning_curves", "token_frequencies", "token_lengths")
    plots = [f"plots/{name}.svg" for name in names]
    texts = ["report.csv", "report.html", "report.md", "report.parquet", "tables.tex"]
    items = ["items.md", "items.parquet", "texts.parquet"]
    assert sorted(demo.files) == sorted([*texts, *items, *plots])
    assert all(path.stat().st_size for path in demo.files.values())
    assert all(demo.files[name].read_bytes().startswith(b"<?xml") for name in plots)


def test_the_page_is_well_formed_and_loads_nothing_from_outside(demo: Report) -> None:
    links = Links(read(demo, "report.html"))
    assert links.unbalanced == []
    assert links.loaded == ["None"]  # the script has no source: it stands inside
    assert links.used and all(place.startswith("#") and place[1:] in links.anchors for place in links.used)


def test_every_number_of_the_page_leads_to_the_run_it_came_from(demo: Report) -> None:
    links = Links(read(demo, "report.html"))
    directory = demo.files["report.html"].parent
    for row in demo.comparison.finished:
        target = f"../../runs/{row.runs[0].run_id}"
        assert (directory / target).resolve() == row.runs[0].directory.resolve()
        assert links.targets.count(target) == len(demo.comparison.columns) + 1


def test_every_number_of_the_markdown_leads_to_the_run_it_came_from(demo: Report) -> None:
    text = read(demo, "report.md")
    for row in demo.comparison.finished:
        assert text.count(f"](../../runs/{row.runs[0].run_id})") == len(demo.comparison.columns) + 1


def test_the_csv_has_all_digits_of_every_cell(demo: Report) -> None:
    with demo.files["report.csv"].open(encoding="utf-8", newline="") as file:
        lines = {(int(line["row"]), line["measure"]): line for line in csv.DictReader(file)}
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


def test_the_parquet_file_has_the_cells_of_the_csv_with_types(demo: Report) -> None:
    table = pq.read_table(demo.files["report.parquet"])
    with demo.files["report.csv"].open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert table.column_names == list(lines[0])
    values = [None if line["value"] == "" else float(line["value"]) for line in lines]
    assert table["value"].to_pylist() == values
    assert str(table.schema.field("p_adjusted").type) == "double"
    assert table["missing"].to_pylist()[-1] == "out-of-memory: the device ran out of memory"


def test_a_missing_run_shows_dashes_and_its_reason_everywhere(demo: Report) -> None:
    reason = "out-of-memory: the device ran out of memory"
    assert reason in read(demo, "report.html")
    assert reason in read(demo, "report.md")
    assert reason in text_of(demo)
    last = [line for line in read(demo, "report.md").splitlines() if line.startswith("| scaffold")][3]
    assert last.count("—") == 4


def test_the_latex_has_as_many_cells_in_every_line(demo: Report) -> None:
    text = read(demo, "tables.tex")
    for tabular in re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", text, re.DOTALL):
        lines = [line for line in tabular[1].splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
        assert {line.count("&") + 1 for line in lines} == {len(tabular[0])}
    assert r"scaffold\_bpe" in text


def test_the_notes_say_what_the_error_bar_is_and_what_was_equal(demo: Report) -> None:
    text = " ".join(text_of(demo).split())
    details = " ".join(read(demo, "report.md").split())
    assert "a judgement takes 3 seeds an arm." in text
    assert "Bold: best" not in text
    assert "p < 0.05" not in text
    assert "Declared to differ: tokenizer, encoder, ordering, and the seed (0)." in details
    assert "8.4M tokens in every run" in details
    assert "Computed: 9.60e+13 FLOPs in every run, 256 steps in every run." in details
    assert "Text was repeated" not in text
    assert "191 items of continuation, 120 held-out documents" in text
    assert "continuation: 9 of 200 items are left out in all rows, since their prompt does not fit" in details


@pytest.mark.parametrize(
    ("epochs", "sentence"),
    [
        ((0.5, 2.34), "Text was repeated, 2.34 epochs: scaffold_bpe."),
        ((1.2, 3.0), "Text was repeated, 1.2 to 3 epochs: every run."),
    ],
)
def test_the_notes_say_which_runs_repeated_text(epochs: tuple[float, float], sentence: str, tmp_path: Path) -> None:
    runs = [
        record(tmp_path, name, {"tokenizer": name}, {("boolq", 0): [1, 0]}, training={"tokens": 9, "epochs": count})
        for name, count in zip(("bpe", "scaffold_bpe"), epochs, strict=True)
    ]
    assert sentence in " ".join(notes(compare(runs, ("tokenizer",))))


@pytest.mark.parametrize(
    ("draws", "epochs", "packing", "sentence"),
    [
        (1, 2.34, "pair", "BPE-dropout drew the tokens once for up to 2.34 epochs; the method draws them anew"),
        (3, 3.5, "pair", "BPE-dropout drew the tokens 3 times for up to 3.5 epochs"),
        (3, 3.0, "pair", None),
        (1, 2.34, "concatenate", None),
    ],
)
def test_the_notes_say_where_bpe_dropout_was_read_again(
    draws: int, epochs: float, packing: str, sentence: str | None, tmp_path: Path
) -> None:
    training = {"tokens": 9, "epochs": epochs}
    made = record(tmp_path, "dropout", {"encoder": "dropout"}, {("boolq", 0): [1, 0]}, training=training)
    config = {"encoder": {"kind": "dropout", "draws": draws}, "packing": {"kind": packing}, "seed": 0}
    told = [line for line in notes(compare([replace(made, config=config)], ("encoder",))) if "BPE-dropout drew" in line]
    assert [sentence in line for line in told if sentence] == [True] * (sentence is not None)
    assert bool(told) is (sentence is not None)


def test_the_notes_say_which_rows_have_tokens_across_the_boundary_of_context_and_choice(tmp_path: Path) -> None:
    crossed = {"crossed_items": {"0": 2}, "crossed_choices": {"0": 5}}
    statistics = {"heldout": {}, "tasks": {"task": crossed}, "omitted_at_boundaries": 3e-6}
    labels = [{"encoder": name} for name in ("merge_rank", "longest_first")]
    first = record(tmp_path, "one", labels[0], {("task", 0): [1, 0, 1]})
    second = record(tmp_path, "two", labels[1], {("task", 0): [1, 1, 1]}, statistics=statistics)
    (note,) = (line for line in notes(compare([first, second], ("encoder",))) if "begins in the context" in line)
    assert note.endswith("(at most a share of 3e-06 of a probability was left out): 5 choices of longest_first.")
    assert not any("begins in the context" in line for line in notes(compare([first], ("encoder",))))


def test_three_seeds_are_judged(tmp_path: Path) -> None:
    runs = demo_runs(tmp_path, seeds=(0, 1, 2), items=80, curves=False)[:6]
    report = write_report(runs, title="Seeds", factors=FACTORS, directory=tmp_path / "report")
    text = " ".join(text_of(report).split())
    tests = [cell for row in report.comparison.rows for cell in row.cells.values() if cell.p_adjusted is not None]
    assert len(tests) == 1
    assert "against the first row (bpe, merge_rank, standard): two-sided, paired, adjusted." in text
    assert "tested over seeds and items, both taken as random" in " ".join(read(report, "report.md").split())
    assert "† Exploratory: these measures do not decide the question" in text
    assert "mean †" in text
    assert "bits / byte †" not in text
    assert "cannot say which" not in text
    with report.files["report.csv"].open(encoding="utf-8", newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["p_adjusted"]]
    assert len(lines) == len(tests)
    for line, cell in zip(lines, tests, strict=True):
        found = {
            name: float(line[name]) for name in ("difference", "low", "high", "p_value", "detectable", "seeds_share")
        }
        assert cell.crossed is not None
        expected = (cell.crossed.low, cell.crossed.high, cell.p_value, cell.detectable, cell.crossed.quantile.share)
        assert tuple(found.values()) == (cell.crossed.difference, *expected)


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    runs = demo_runs(tmp_path, items=20)[:2]
    first, second = (
        write_report(runs, title="Twice", factors=FACTORS, directory=tmp_path / name) for name in ("one", "two")
    )
    assert list(first.files) == list(second.files)
    for name, path in first.files.items():
        assert path.read_bytes() == second.files[name].read_bytes(), name


def test_chinese_labels_and_markup_stay_text(tmp_path: Path) -> None:
    labels = {"tokenizer": "字节对编码", "encoder": "<b>最长|优先</b>"}
    runs = [
        record(tmp_path, "基线", {**labels, "tokenizer": "基线"}, {("阅读理解", 0): [1, 0, 1]}),
        record(tmp_path, "long-1", labels, {("阅读理解", 0): [1, 1, 1]}),
    ]
    directory = tmp_path / "报告"
    report = write_report(runs, title="中文 & <title>", factors=("tokenizer", "encoder"), directory=directory)
    page, text = read(report, "report.html"), read(report, "report.md")
    assert "字节对编码" in page
    assert "<b>" not in page
    assert "中文 &amp; &lt;title&gt;" in page
    assert r"\<b\>最长\|优先\</b\>" in text
    assert "字节对编码" in text_of(report)
    assert "阅读理解" in read(report, "report.csv")
    assert r"中文 \& <title>" in read(report, "tables.tex")


def test_one_run_is_a_table_without_tests(tmp_path: Path) -> None:
    run = record(tmp_path, "only", {"tokenizer": "bpe"}, {("boolq", 0): [1, 0, 1, 1]})
    for factors in (("tokenizer",), ()):
        report = write_report([run], title="One", factors=factors, directory=tmp_path / f"report{len(factors)}")
        assert "p < 0.05" not in text_of(report)
        assert "75.0" in read(report, "report.md")
        assert "**75.0**" not in read(report, "report.md")


def test_an_unfair_comparison_writes_nothing(tmp_path: Path) -> None:
    runs = demo_runs(tmp_path, items=5, curves=False)
    with pytest.raises(FairnessError):
        write_report(runs, title="Unfair", factors=("tokenizer", "encoder"), directory=tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_the_paper_s_numbers_stand_beside_ours(demo: Report) -> None:
    ours = demo.comparison.rows[0].cells["continuation/mean"].value
    assert ours is not None
    beside = f"| 51.25 | {100 * ours:.1f} | {100 * ours - 51.25:+.1f} | — |".replace("-", "−")
    assert f"| BPE (bpe · merge\\_rank · standard) {beside}" in read(demo, "report.md")
    lines = [line for line in read(demo, "report.md").splitlines() if line.startswith("| BPE (")]
    assert len(lines) == len([row for row in demo.comparison.rows if row.labels[1] == "merge_rank"]) > 1
    assert "| something else | 52.00 | — | — | 53 |" in read(demo, "report.md")
    assert "51.25" in read(demo, "report.html")
    assert "51.25" in text_of(demo)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rowz": []}, "paper.rowz is unknown"),
        ({"title": ""}, "paper.title is missing"),
        ({"numbers": [[1, 2]]}, "a list of 2 rows"),
        ({"numbers": [[1, "2"], [2, 3]]}, r"paper.numbers\[0\]\[1\] is '2'"),
        ({"columns": 3}, "paper.columns is 3; it must be a list"),
        ({"columns": [{"label": "A", "taks": "boolq"}, "B"]}, r"paper.columns\[0\].taks is unknown"),
        ({"rows": [{"label": "a", "factors": ["bpe"]}, "b"]}, r"paper.rows\[0\].factors is \['bpe'\]"),
        ({"rows": ["a", {"label": "b", "parameters": "big"}]}, r"paper.rows\[1\].parameters: 'big' is not a number"),
    ],
)
def test_a_malformed_paper_block_is_refused_by_path(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_paper({**PAPER, **changes})


@pytest.mark.parametrize("verb", ["run", "plan"])
def test_a_malformed_paper_block_is_refused_before_anything_runs(verb: str, tmp_path: Path) -> None:
    wrong = ("+experiment.paper.numbers=[[1,2]]", "+experiment.paper.rows=[a,b]", "+experiment.paper.title=T")
    command = parse(["-m", "experiment=demo", "scale=tiny", *wrong, f"root={tmp_path}/root"], verb)
    with pytest.raises(ConfigurationError, match=r"experiment: paper\.numbers must be null or a list of 2 rows"):
        prepare_runs(compose_command(command), tolerate_missing=verb == "plan")
    assert not (tmp_path / "root/runs").exists()


def test_learning_curves_come_from_the_events_of_each_run(tmp_path: Path) -> None:
    runs = demo_runs(tmp_path, items=3)
    curves = read_curves(runs)
    assert list(curves) == [run.run_id for run in runs]
    curve = curves[runs[0].run_id]
    assert curve.steps == list(range(8, 257, 8))
    assert curve.amounts["train/tokens"][-1] == runs[0].training["tokens"]


def test_the_overlap_of_vocabularies_is_a_plot_and_numbers(tmp_path: Path) -> None:
    overlap = OverlapMatrix(("bpe", "中文/1"), (300, 200), ((1.0, 0.5), (0.75, 1.0)), ((None, 3.25), (None, None)))
    runs = demo_runs(tmp_path, items=20, curves=False)
    report = write_report(runs, title="T", factors=FACTORS, directory=tmp_path / "report", overlap=overlap)
    assert "plots/vocabulary_overlap.svg" in report.files
    assert "bpe in 中文/1 50.0 %, others 3.2 in a million; 中文/1 in bpe 75.0 %" in read(report, "report.html")
    assert overlap.metrics() == {
        "vocabulary_overlap/bpe in 中文_1": 0.5,
        "vocabulary_overlap/occurrences per million of bpe not in 中文_1": 3.25,
        "vocabulary_overlap/中文_1 in bpe": 0.75,
    }


def test_vocabularies_are_named_by_what_their_runs_have_in_common(tmp_path: Path) -> None:
    for name, text in (("a", "aabb"), ("b", "ccdd"), ("c", "aabbccdd")):
        tok = Tokenizer.train([text] * 3, vocab_size=258)
        tok.save(tmp_path / name / "tokenizer")
        with EncodedCorpusWriter(tmp_path / name / "tokens", tok) as writer:
            writer.append(tok.encode(f"{text}x"), np.array([len(tok.encode(f"{text}x"))]), np.array([len(text) + 1]))
    runs = [
        replace(
            record(tmp_path, f"{tokenizer}-{order}", {"tokenizer": tokenizer, "ordering": order}, {}),
            vocabulary=tmp_path / place,
            tokens=tmp_path / place / "tokens",
        )
        for tokenizer, place in (("bpe", "a"), ("scaffold_bpe", "b"))
        for order in ("standard", "in_context")
    ]
    found = compare_vocabularies(runs)
    assert found is not None
    assert found.names == ["bpe", "scaffold_bpe"]
    # "aabbx" is "aa", "bb" and "x": each of the two that the other lacks is one token of three.
    once_in_three = pytest.approx(1e6 / 3)
    assert found.frequencies == [[None, once_in_three], [once_in_three, None]]
    merged = {
        place: Tokenizer.load(tmp_path / place / "tokenizer").encode(text)
        for place, text in (("a", "aabb"), ("b", "ccdd"))
    }
    assert found.own == {run.run_id: set(merged["a" if "bpe-" in run.run_id[:4] else "b"]) for run in runs}
    assert compare_vocabularies(runs[:2]) is None
    twice = compare_vocabularies([*runs, *(replace(run, vocabulary=tmp_path / "c") for run in runs[:2])])
    assert twice is not None
    assert twice.names == ["bpe (1)", "scaffold_bpe", "bpe (3)"]


def test_embeddings_are_drawn_a_panel_a_row_with_their_uniformity(tmp_path: Path) -> None:
    uniformity = {"used": -2.5, "frequent": -2.75, "medium": -2.5, "rare": -1.5, "unused": None}
    statistics = {"heldout": {}, "tasks": {}, "embeddings": {"uniformity": {"input": uniformity}}}
    runs = [
        record(tmp_path, name, {"tokenizer": name}, {("boolq", 0): [1, 0]}, statistics=statistics)
        for name in ("bpe", "scaffold_bpe")
    ]
    for run in runs:
        names = ["frequent", "medium", "rare", "rare", "unused"]
        points = {"id": range(5), "count": [9, 5, 1, 1, 0], "class": names, "x": [0.0] * 5, "y": [1.0] * 5}
        pd.DataFrame(points).to_parquet(tmp_path / "artifacts" / run.run_id / "embeddings.parquet")
    comparison = compare(runs, ("tokenizer",))
    assert comparison.rows[1].cells["uniformity"].value == -2.5
    (plot,) = (plot for plot in plots(comparison, {}) if plot.name == "embeddings")
    assert "bpe: used -2.500, frequent -2.750, medium -2.500, rare -1.500; scaffold_bpe:" in plot.alternative
    assert "Only here" not in plot.caption
    overlap = OverlapMatrix(("bpe", "other"), (5, 5), ((1.0, 0.5), (0.5, 1.0)), ((None, 1.0), (1.0, None)),
                            {runs[0].run_id: {2, 4}, runs[1].run_id: {4}})  # fmt: skip
    (own,) = (plot for plot in plots(comparison, {}, overlap) if plot.name == "embeddings")
    assert "Only here: tokens that occur" in own.caption and own.svg.decode().count("only here") == 1
    (tmp_path / "artifacts" / "bpe" / "embeddings.parquet").unlink()
    (plot,) = (plot for plot in plots(comparison, {}) if plot.name == "embeddings")
    assert "of scaffold_bpe:" in plot.alternative


TOLD_FIRST = """
import sys
from pathlib import Path
from paribus.reporting.report import write_report
from support.tables import FACTORS, demo_runs
directory = Path(sys.argv[1]) / "report"
def tell(shown):
    slow = {"matplotlib", "scipy.stats", "statsmodels", "jinja2"} & set(sys.modules)
    print(sorted(slow), directory.exists(), type(shown).__name__)
write_report(demo_runs(Path(sys.argv[1]), items=40), title="t", factors=FACTORS, directory=directory, tell=tell)
print((directory / "report.html").exists())
"""


def test_the_table_is_told_before_anything_is_drawn_or_written(tmp_path: Path) -> None:
    tests = str(Path(__file__).parents[1])
    paths = os.pathsep.join([tests, *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-c", TOLD_FIRST, str(tmp_path)]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=True)
    # McNemar's test of accuracies is statsmodels'; nothing else of what is slow to load is needed before.
    assert done.stdout.splitlines() == ["['scipy.stats', 'statsmodels'] False Group", "True"]
