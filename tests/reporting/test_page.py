"""What the page's script does, in a browser."""

import json
import re
from typing import Any

import pytest

from paribus.reporting.report import write_report
from support.browser import CHROMIUM, in_a_browser
from support.tables import FACTORS, demo_runs

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="takes chromium")
_ASKED = """{
const found = {};
const chosen = () => [...document.querySelectorAll(".chosen")].map((place) => [place.tagName, place.dataset.row]);
const line = document.querySelector("figure .mark[data-row='2']");
const click = (place) => place.dispatchEvent(new MouseEvent("click", { bubbles: true }));
found.title = line.querySelector("title").textContent;
click(line.querySelector("path, use"));
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
    title, *_ = re.findall(r"<title>(.*?)</title>", in_a_browser(path, root))
    answers: dict[str, Any] = json.loads(title.replace("&amp;", "&"))
    return answers


def test_a_click_on_a_line_marks_its_row_everywhere_and_a_click_on_the_row_takes_it_back(found: dict[str, Any]) -> None:
    assert found["title"].startswith("bpe · merge_rank · in_context")
    assert {row for _, row in found["chosen"]} == {"2"}
    assert {"TR", "LI", "g"} <= {tag for tag, _ in found["chosen"]}
    assert found["opacity"] == {"own": "1", "other": "0.12"}
    assert found["again"] == []
