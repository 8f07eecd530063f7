"""Looks of rows in all pictures, what is said of lines and points, and pictures on the page and in a browser."""

import html
import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from paribus.reporting.page import inline
from paribus.reporting.plots import COLOURS, SHAPES, Looks, Plot, mark, picture, style
from paribus.reporting.report import Report, write_report
from support.tables import FACTORS, demo_runs

CROSSED = list(itertools.product(("bpe", "scaffold_bpe", "unigram"), ("merge_rank", "longest_first")))


@pytest.fixture(name="demo", scope="module")
def _demo(tmp_path_factory: pytest.TempPathFactory) -> Report:
    root = tmp_path_factory.mktemp("demo")
    runs = demo_runs(root, seeds=(0, 1), items=60)
    return write_report(runs, title="Demo", factors=FACTORS, directory=root / "report")


def test_a_value_has_one_colour_and_a_combination_of_the_others_one_shape() -> None:
    looks = Looks(("tokenizer", "encoder"), CROSSED)
    colours = {(tokenizer, looks.of((tokenizer, encoder)).colour) for tokenizer, encoder in CROSSED}
    shapes = {(encoder, looks.of((tokenizer, encoder)).sign) for tokenizer, encoder in CROSSED}
    assert sorted(colours) == sorted(zip(("bpe", "scaffold_bpe", "unigram"), COLOURS, strict=False))
    assert shapes == {("merge_rank", "●"), ("longest_first", "■")}
    assert looks.colour_of("tokenizer", "unigram") == COLOURS[2]
    assert looks.colour_of("encoder", "longest_first") is None
    assert looks.legend_factors == ("tokenizer", ("encoder",))


def test_a_value_has_its_colour_in_the_main_picture_in_curves_and_before_its_name_in_tables(demo: Report) -> None:
    page = demo.files["report.html"].read_text(encoding="utf-8")
    signs = re.findall(r'<th scope="row" data-sign="(.)" style="--look: light-dark\((#\w+), #\w+\)">(\w+)</th>', page)
    assert len(signs) == 3 * len(demo.comparison.finished)  # scores, more of them, text and training
    colours = {"bpe": COLOURS[0], "scaffold_bpe": COLOURS[1]}
    assert {(sign, name) for sign, _, name in signs} == {(sign, name) for _, sign, *_ in SHAPES[:4] for name in colours}
    assert all(colour == colours[name] for _, colour, name in signs)
    for title, colour in (
        ("tokenizer: nothing can be said of scaffold_bpe", COLOURS[1]),
        ("bpe · longest_first · standard, mean", COLOURS[0]),
    ):
        (shape,) = re.findall(rf"<title>{title}[^<]*</title>(.*?)</g>", page, re.DOTALL)[-1:]
        assert colour.lower() in shape.lower(), title


MARKED = re.compile(r'<g class="mark"(?: data-row="(\d+)")?><title>([^<]*)</title>')


def drawn(draw: Callable[[Figure], None]) -> Plot:
    with mpl.rc_context(style()):
        return picture("one", "A caption", "A text", (9.2, 3.0), draw)


def marks(plot: Plot) -> list[tuple[str, str]]:
    return [(html.unescape(said), row) for row, said in MARKED.findall(plot.svg.decode())]


@pytest.mark.parametrize("name", ["_old/bpe", "a$x_1$b", "$\\frac{$", "cost $5", "<b>", "\u8bcd\u5143"])
def test_a_picture_has_every_name_as_it_is_written(name: str) -> None:
    def draw(figure: Figure) -> None:
        panel = figure.subplots()
        mark(panel.plot([1.0, 1e3], [1.0, 2.0], label=name), "first", 0)
        mark(panel.bar([1.0, 1e3], [1.0, 2.0], label=name), "second", 1)
        mark(panel.errorbar([1.0], [1.0], yerr=[0.5], label=name).get_children(), "third", 2)
        panel.set_title(name)
        panel.set_yticks([1.0], [name])
        panel.set_xscale("log")
        figure.legend(loc="outside lower center")

    plot = drawn(draw)
    texts = [html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", plot.svg.decode())]
    assert texts.count(name) == 5
    assert {row for said, row in marks(plot) if said == name} == {"1", "2", "3"}
    assert not any("mathdefault" in text for text in texts) and b"<tspan" in plot.svg, "powers of ten are set"


# On the page


def test_colours_follow_the_theme_and_texts_do_not_change() -> None:
    def draw(figure: Figure) -> None:
        figure.subplots().set_title("colour #222222 & <b>")

    text = inline(drawn(draw).svg, "one", 'what "it" shows')
    assert "fill: light-dark(#222222, #e3e6e9)" in text
    assert ">colour #222222 &amp; &lt;b&gt;<" in text
    assert text.startswith('<svg role="img" aria-label="what &quot;it&quot; shows" viewBox="0 0 662.4 216"')
    assert "<style" not in text and "<metadata" not in text  # they would hold for the whole page


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUESTIONS = """{
const answers = {};
const chosen = () => [...document.querySelectorAll(".chosen")].map((place) => [place.tagName, place.dataset.row]);
const line = document.querySelector("figure .mark[data-row='2']");
const click = (place) => place.dispatchEvent(new MouseEvent("click", { bubbles: true }));
answers.title = line.querySelector("title").textContent;
click(line.querySelector("path, use"));
answers.chosen = chosen();
const pale = (row) => {
  const other = line.closest("svg").querySelector(`.mark[data-row="${row}"]`);
  other.style.transition = "none";
  return getComputedStyle(other).opacity;
};
answers.opacity = { own: pale(2), other: pale(3) };
click(document.querySelector("tr[data-row='2'] th"));
answers.again = chosen();
document.title = JSON.stringify(answers);
}"""


@pytest.mark.skipif(CHROMIUM is None, reason="takes chromium")
def test_a_click_on_a_line_marks_its_row_everywhere_and_a_click_on_the_row_takes_it_back(tmp_path: Path) -> None:
    report = write_report(demo_runs(tmp_path, items=60), title="Demo", factors=FACTORS, directory=tmp_path / "report")
    text = report.files["report.html"].read_text(encoding="utf-8")
    # The page would not let another script run.
    scripted = re.sub(r"script-src 'sha256-[^']*'", "script-src 'unsafe-inline'", text)
    path = tmp_path / "scripted.html"
    path.write_text(scripted.replace("</body>", f"<script>{QUESTIONS}</script></body>"), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1800", "--dump-dom"]
    command = [str(CHROMIUM), *options, f"--user-data-dir={tmp_path}/chromium", path.as_uri()]
    shown = subprocess.run(command, capture_output=True, check=True, timeout=120).stdout.decode()
    title, *_ = re.findall(r"<title>(.*?)</title>", shown)
    answers = json.loads(title.replace("&amp;", "&"))
    assert answers["title"].startswith("bpe · merge_rank · in_context")
    assert {row for _, row in answers["chosen"]} == {"2"}
    assert {"TR", "LI", "g"} <= {tag for tag, _ in answers["chosen"]}
    assert answers["opacity"] == {"own": "1", "other": "0.12"}
    assert answers["again"] == []
