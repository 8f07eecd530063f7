"""What a picture says of its lines and points, and how it stands on the page."""

import html
import re
from collections.abc import Callable

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

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


def test_names_in_a_legend_are_marked_as_their_lines() -> None:
    found = marks(drawn(labelled))
    assert {told: found.count((told, row)) for told, row in found if told in ("bpe", "wordpiece", "unigram")} == {
        "bpe": 2,
        "wordpiece": 2,
        "unigram": 2,
    }
    assert {row for told, row in found if told == "bpe"} == {"2"}
    assert not any(told == "unsaid" for told, _ in found)


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
