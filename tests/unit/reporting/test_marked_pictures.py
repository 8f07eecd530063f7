"""What a picture says of its lines and points, and how it stands on the page."""

import html
import re
import warnings
from collections.abc import Callable

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from paribus.reporting.formats.inline import inline
from paribus.reporting.plots.marks import mark
from paribus.reporting.plots.picture import Plot, picture, style

SAID = 'bpe "<&\u4e2d\u6587\'s>": 1.2'
MARKED = re.compile(r'<g class="mark"(?: data-row="(\d+)")?><title>([^<]*)</title>')


def drawn(draw: Callable[[Figure], None]) -> Plot:
    with mpl.rc_context(style()):
        return picture("one", "A caption", "A text", (9.2, 3.0), draw)


def marks(plot: Plot) -> list[tuple[str, str]]:
    return [(html.unescape(told), row) for row, told in MARKED.findall(plot.svg.decode())]


def labelled(figure: Figure) -> None:
    panel = figure.subplots()
    mark(panel.plot([0.0, 1.0], [1.0, 2.0], "o-", label="bpe"), SAID, 1)
    mark(panel.bar([0.0, 1.0], [1.0, 2.0], label="wordpiece"), "a bar", 0)
    mark(panel.errorbar([0.0], [1.0], yerr=[0.5], label="unigram").get_children(), "no row")
    panel.plot([0.0, 1.0], [0.0, 0.0], label="unsaid")
    figure.legend(loc="outside lower center")


def test_every_part_of_what_is_marked_says_so_with_its_row_counted_from_one() -> None:
    found = marks(drawn(labelled))
    assert found.count((SAID, "2")) == 1
    assert found.count(("a bar", "1")) == 2
    assert found.count(("no row", "")) == 2  # the point and its bar


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
    assert {row for told, row in marks(plot) if told == name} == {"1", "2", "3"}
    assert not any("mathdefault" in text for text in texts) and b"<tspan" in plot.svg, "powers of ten are set"


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
@pytest.mark.parametrize(
    "name", ["bpe_of_my_own_corpus · longest_first · in_context", "/data/" + "w" * 200, "\u8bcd" * 90]
)
def test_long_names_stand_inside_their_picture_with_their_lines(name: str) -> None:
    figures: list[Figure] = []
    names = [f"{number} {name}" for number in range(8)]

    def draw(figure: Figure) -> None:
        figures.append(figure)
        beside, below = figure.subplots(1, 2)
        for row, each in enumerate(names):
            mark(below.plot([0.0, 1.0], [0.0, row], label=each), each, row)
        beside.set_yticks(range(8), names)
        beside.set_ylim(-0.5, 7.5)
        below.set_title(f"{name}\nand its number")
        figure.legend(loc="outside lower center", ncols=3)

    with warnings.catch_warnings(), mpl.rc_context(style()):
        warnings.filterwarnings("error", message="constrained_layout")
        plot = picture("one", "A caption", "A text", (9.2, 4.0), draw)
    wide = figures[0]
    (legend,), labels = wide.legends, wide.axes[0].get_yticklabels()
    said = [text.get_text().replace("\n", "") for text in (*legend.get_texts(), *labels)]
    assert said == 2 * names
    (title,) = (text for text in wide.axes[1].findobj(Text) if "its number" in text.get_text())
    assert title.get_text().replace("\n", "") == f"{name}and its number"
    for artist in (legend, title, *labels):
        box = artist.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= wide.bbox.width and 0 <= box.y0 < box.y1 <= wide.bbox.height
    assert all(panel.get_window_extent().width > 100 for panel in wide.axes)
    assert all(marks(plot).count((each, str(row + 1))) == 3 for row, each in enumerate(names))


def test_names_in_a_legend_are_marked_as_their_lines() -> None:
    found = marks(drawn(labelled))
    assert {told: found.count((told, row)) for told, row in found if told in ("bpe", "wordpiece", "unigram")} == {
        "bpe": 2,
        "wordpiece": 2,
        "unigram": 2,
    }
    assert {row for told, row in found if told == "bpe"} == {"2"}
    assert not any(told == "unsaid" for told, _ in found)


def test_names_in_a_legend_that_are_equal_are_marked_each_as_its_own_line() -> None:
    def draw(figure: Figure) -> None:
        panel = figure.subplots()
        for row in (0, 1):
            mark(panel.plot([0.0, 1.0], [1.0, 2.0], label="bpe"), f"line {row}", row)
        figure.legend(loc="outside lower center")

    found = [row for told, row in marks(drawn(draw)) if told == "bpe"]
    assert found == ["1", "1", "2", "2"]  # of each the line and the name


def test_nothing_is_left_of_the_identifiers_that_carried_it() -> None:
    plot = drawn(labelled)
    assert b"said:" not in plot.svg


def test_on_the_page_no_two_pictures_have_an_identifier_in_common_and_each_finds_its_own() -> None:
    plot = drawn(labelled)
    first, second = (inline(plot.svg, name, "A text") for name in ("first", "second"))
    for name, text in (("first", first), ("second", second)):
        own = re.findall(r' id="([^"]*)"', text)
        used = re.findall(r'(?:url\(|href=")#([^")]+)', text)
        assert own and len(own) == len(set(own)) and set(used) == set(own)
        assert all(each.startswith(f"{name}-") for each in own)


def test_on_the_page_colours_follow_the_theme_and_texts_do_not_change() -> None:
    def draw(figure: Figure) -> None:
        figure.subplots().set_title("colour #222222 & <b>")

    text = inline(drawn(draw).svg, "one", 'what "it" shows')
    assert "fill: light-dark(#222222, #e3e6e9)" in text
    assert ">colour #222222 &amp; &lt;b&gt;<" in text
    assert text.startswith('<svg role="img" aria-label="what &quot;it&quot; shows" viewBox="0 0 662.4 216"')
    assert "<style" not in text and "<metadata" not in text  # they would hold for the whole page


def test_a_hatched_area_follows_the_theme_too() -> None:
    text = inline(drawn(lambda figure: figure.subplots().bar([0], [1], color="#D55E00", hatch="//")).svg, "one", "")
    pattern = text[text.index("<pattern") : text.index("</pattern>")]
    assert "light-dark(#d55e00, #ff8a3d)" in pattern and 'fill="#' not in pattern


@pytest.mark.parametrize("name", ['bpe id="a"', 'bpe style="#222222"', "bpe url(#a)", 'bpe href="#a"'])
def test_names_that_look_like_attributes_stay_as_they_are(name: str) -> None:
    def draw(figure: Figure) -> None:
        panel = figure.subplots()
        panel.set_title(name)
        mark(panel.plot([0.0, 1.0], [1.0, 2.0]), name)

    text = inline(drawn(draw).svg, "one", "A text")
    assert re.findall(r">(bpe [^<]*)</text>", text) == [name]
    assert [html.unescape(told) for told in re.findall(r"<title>([^<]*)</title>", text)] == [name]


def test_what_is_no_svg_is_refused() -> None:
    with pytest.raises(ValueError, match="one: no SVG"):
        inline(b"<p>", "one", "A text")
