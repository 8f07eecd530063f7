"""Pictures of a page on a screen as narrow as a telephone's: they need no scrolling, and their texts are whole."""

import re
import warnings
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from paribus.reporting.plots.picture import NARROW, picture, style
from paribus.reporting.report import write_report
from support.tables import FACTORS, demo_runs

NAME = "scaffold_bpe · longest_first · in_context"
TEXTS = re.compile(r"<text[^>]*>([^<]*)</text>")


def inches(svg: bytes) -> tuple[float, float]:
    """Width and height."""
    head = svg.decode().partition(">")[2].partition("<svg")[2].partition(">")[0]
    width, height = (re.search(rf'{side}="([\d.]+)pt"', head) for side in ("width", "height"))
    assert width and height
    return float(width[1]) / 72, float(height[1]) / 72


def beside(figure: Figure) -> None:
    """Two panels with long names, and a legend."""
    for panel in figure.subplots(1, 2, sharey=True):
        panel.plot([0.0, 1.0], [0.0, 1.0], label=NAME)
        panel.set_yticks([0.0, 1.0], [NAME, "bpe"])
    figure.legend(loc="outside right center")


def test_a_page_has_each_picture_wide_and_narrow(tmp_path: Path) -> None:
    report = write_report(
        demo_runs(tmp_path, items=60), title="Demo", factors=FACTORS, directory=tmp_path / "reports" / "demo"
    )
    page = report.files["report.html"].read_text(encoding="utf-8")
    for kind, width in (("unfolded", 9.2), ("folded", NARROW)):
        found = re.findall(rf'<div class="wide {kind}" tabindex="0"><svg [^>]*viewBox="0 0 ([\d.]+) ', page)
        assert [float(each) / 72 for each in found] == [pytest.approx(width)] * 6
    assert 'class="wide only"' not in page


def test_panels_stand_below_each_other_and_long_names_are_whole_in_several_lines() -> None:
    with warnings.catch_warnings(), mpl.rc_context(style()):
        warnings.simplefilter("error")  # of a layout that has no room
        made = picture("one", "A caption", "A text", (9.2, 2.0), beside)
    assert made.narrow is not None
    assert inches(made.narrow)[1] >= 2 * inches(made.svg)[1]
    whole, folded = (TEXTS.findall(svg.decode()) for svg in (made.svg, made.narrow))
    assert whole.count(NAME) == 3  # beside the first panel, and of both in the legend
    assert folded.count(NAME) == 2
    assert [folded.count(part) for part in ("scaffold_bpe ·", "longest_first ·", "in_context")] == [2, 2, 2]


@pytest.mark.parametrize(("width", "foldable"), [(NARROW, True), (9.2, False)])
def test_what_is_narrow_or_cannot_be_folded_is_drawn_once(width: float, foldable: bool) -> None:
    made = picture("one", "A caption", "A text", (width, 3.0), lambda figure: figure.subplots(), foldable=foldable)
    assert made.narrow is None


def test_what_has_no_room_on_a_narrow_page_is_drawn_once() -> None:
    def draw(figure: Figure) -> None:
        figure.subplots().set_xlabel("words " * 60)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert picture("one", "A caption", "A text", (9.2, 1.2), draw).narrow is None
        assert picture("one", "A caption", "A text", (9.2, 5.0), draw).narrow is not None
