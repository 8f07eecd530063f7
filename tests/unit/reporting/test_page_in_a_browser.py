"""What the page's script does, in a browser."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from paribus.reporting.formats import page
from paribus.reporting.formats.inline import inline
from paribus.reporting.plots.marks import mark, measure
from paribus.reporting.plots.picture import picture
from paribus.reporting.report import write_report
from support.browser import CHROMIUM, in_a_browser
from support.tables import FACTORS, demo_runs

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="takes chromium")
_ASKED = """{
const found = {};
const chosen = () => [...document.querySelectorAll(".chosen")].map((place) => [place.tagName, place.dataset.row]);
const line = [...document.querySelectorAll(".unfolded [data-axes] .mark")].find((each) => each.dataset.row === "2");
const reach = line.querySelector("path.reach");
const tip = document.querySelector(".tip");
const at = (share) => {
  const place = reach.getPointAtLength(reach.getTotalLength() * share).matrixTransform(reach.getScreenCTM());
  return { bubbles: true, clientX: place.x, clientY: place.y };
};
const click = (place) => place.dispatchEvent(new MouseEvent("click", { bubbles: true }));
found.hidden = tip.hidden;
reach.dispatchEvent(new PointerEvent("pointermove", at(0)));
found.first = tip.textContent;
reach.dispatchEvent(new PointerEvent("pointermove", at(1)));
found.last = tip.textContent;
document.querySelector("h1").dispatchEvent(new PointerEvent("pointermove", { bubbles: true }));
found.away = tip.hidden;
click(reach);
found.chosen = chosen();
const pale = (row) => {
  const other = line.closest("svg").querySelector(`.mark[data-row="${row}"]`);
  other.style.transition = "none";
  return getComputedStyle(other).opacity;
};
found.opacity = { own: pale(2), other: pale(3) };
click(document.querySelector("tr[data-row='2'] th"));
found.again = chosen();
document.title = JSON.stringify(found);
}"""


@pytest.fixture(scope="module", name="found")
def _found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a browser says of a page that is asked by a script, which the page itself would not let run."""
    root = tmp_path_factory.mktemp("page")
    report = write_report(demo_runs(root, items=60), title="Demo", factors=FACTORS, directory=root / "report")
    text = report.files["report.html"].read_text(encoding="utf-8")
    asked = re.sub(r"script-src 'sha256-[^']*'", "script-src 'unsafe-inline'", text)
    path = root / "asked.html"
    path.write_text(asked.replace("</body>", f"<script>{_ASKED}</script></body>"), encoding="utf-8")
    (title,) = re.findall(r"<title>(.*?)</title>", in_a_browser(path, root))
    answers: dict[str, Any] = json.loads(title.replace("&amp;", "&"))
    return answers


def test_a_bar_of_a_point_says_the_number_of_its_point_and_no_end_of_a_bar(tmp_path: Path) -> None:
    """Of bars the first one alone would be read, at whichever the pointer is."""

    def draw(figure: Figure) -> None:
        panel = figure.subplots()
        mark(panel.errorbar([1.0, 2.0], [20.0, 60.0], yerr=[5.0, 5.0], fmt="o-", capsize=2).get_children(), "bpe")
        measure(panel, "size", "accuracy")

    asked = """{
const bar = [...document.querySelectorAll(".mark")].find((each) => each.querySelectorAll("path.reach").length === 2);
const box = bar.querySelectorAll("path.reach")[1].getBoundingClientRect();
const place = { bubbles: true, clientX: box.x + box.width / 2, clientY: box.y + 1 };
bar.lastChild.dispatchEvent(new PointerEvent("pointermove", place));
document.title = document.querySelector(".tip").textContent;
}"""
    assert "<title>bpe: accuracy 60 at size 2</title>" in _asked(draw, asked, tmp_path)


def test_in_an_area_its_own_number_is_said_and_not_that_of_its_neighbour(tmp_path: Path) -> None:
    def draw(figure: Figure) -> None:
        bars = figure.subplots().bar(range(100), [1.0] * 100, 1.0)
        for place, bar in enumerate(bars):
            mark([bar], f"bar {place}")

    asked = """{
const box = document.querySelector(".mark[data-told='bar 50'] > path").getBoundingClientRect();
const found = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
document.title = found.closest(".mark").dataset.told;
}"""
    assert "<title>bar 50</title>" in _asked(draw, asked, tmp_path)


def _asked(draw: Callable[[Figure], None], asked: str, scratch: Path) -> str:
    """A page of one picture after its script and the one that asks."""
    own, path = Path(page.__file__).parent, scratch / "asked.html"
    svg = inline(picture("one", "A caption", "A text", (9.2, 3.0), draw).svg, "one", "A text")
    scripts = f"<script>{(own / 'page.js').read_text()}</script><script>{asked}</script>"
    head = f"<title></title><style>{(own / 'page.css').read_text()}</style>"
    path.write_text(f'{head}<div class="theme"></div><figure>{svg}</figure>{scripts}', encoding="utf-8")
    return in_a_browser(path, scratch)


def test_beside_the_pointer_stands_what_a_line_is_and_the_number_there(found: dict[str, Any]) -> None:
    assert found["hidden"] and found["away"]
    name = r"bpe · merge_rank · in_context, seed 0, run [\w-]{1,8}"
    (first,) = re.findall(rf"^{name}: bits per byte ([\d.]+) at tokens read ([\d.,]+)$", found["first"])
    (last,) = re.findall(rf"^{name}: bits per byte ([\d.]+) at tokens read ([\d.,]+)$", found["last"])
    assert float(first[0]) > float(last[0])
    assert float(first[1].replace(",", "")) < float(last[1].replace(",", ""))


def test_a_click_on_a_line_marks_its_row_everywhere_and_a_click_on_the_row_takes_it_back(found: dict[str, Any]) -> None:
    assert {row for _, row in found["chosen"]} == {"2"}
    assert {"TR", "LI", "g"} <= {tag for tag, _ in found["chosen"]}
    assert found["opacity"] == {"own": "1", "other": "0.12"}
    assert found["again"] == []
