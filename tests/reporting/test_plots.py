"""Colours and shapes of rows in all pictures, what is said of lines and points, and pictures on the page."""

import html
import itertools
import re
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from paribus.reporting.page import inline
from paribus.reporting.plots import COLOURS, SHAPES, Looks, Plot, mark, picture, style
from paribus.reporting.report import write_report
from support.tables import FACTORS, demo_runs

CROSSED = list(itertools.product(("bpe", "scaffold_bpe", "unigram"), ("merge_rank", "longest_first")))


def test_a_value_has_one_colour_and_a_combination_of_the_others_one_shape() -> None:
    looks = Looks(("tokenizer", "encoder"), CROSSED)
    colours = {(tokenizer, looks.of((tokenizer, encoder)).colour) for tokenizer, encoder in CROSSED}
    shapes = {(encoder, looks.of((tokenizer, encoder)).sign) for tokenizer, encoder in CROSSED}
    assert sorted(colours) == sorted(zip(("bpe", "scaffold_bpe", "unigram"), COLOURS, strict=False))
    assert shapes == {("merge_rank", "●"), ("longest_first", "■")}
    assert looks.colour_of("tokenizer", "unigram") == COLOURS[2]
    assert looks.colour_of("encoder", "longest_first") is None
    assert looks.legend_factors == ("tokenizer", ("encoder",))


@pytest.mark.parametrize("amount", ["model", "budget", "model.layers"])
def test_what_pictures_have_along_an_axis_is_not_coloured_beside_another(amount: str) -> None:
    rows = list(itertools.product(("small", "medium", "large"), ("bpe", "unigram")))
    looks, over_sizes = Looks((amount, "tokenizer"), rows), Looks(("tokenizer",), [row[1:] for row in rows])
    for tokenizer in ("bpe", "unigram"):
        assert looks.of(("large", tokenizer)).colour == over_sizes.of((tokenizer,)).colour
    assert Looks((amount,), [row[:1] for row in rows]).legend_factors == (amount, ())


@pytest.mark.parametrize(("values", "others"), [(24, 1), (12, 2), (10, 3), (8, 8)])
def test_more_values_than_colours_still_look_unlike(values: int, others: int) -> None:
    rows = list(itertools.product(map(str, range(values)), map(str, range(others))))
    looks = Looks(("ordering", "encoder"), rows)
    for shown in ("marker", "sign", "dashes", "hatch"):
        assert len({(looks.of(row).colour, getattr(looks.of(row), shown)) for row in rows}) == len(rows)


def test_a_value_has_its_colour_in_the_main_picture_in_curves_and_before_its_name_in_tables(tmp_path: Path) -> None:
    report = write_report(demo_runs(tmp_path, seeds=(0, 1)), title="T", factors=FACTORS, directory=tmp_path / "report")
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    signs = re.findall(r'<th scope="row" data-sign="(.)" style="--look: light-dark\((#\w+), #\w+\)">(\w+)</th>', page)
    assert len(signs) == 3 * len(report.comparison.finished)  # scores, more of them, text and training
    colours = {"bpe": COLOURS[0], "scaffold_bpe": COLOURS[1]}
    assert {(sign, name) for sign, _, name in signs} == set(
        itertools.product([sign for _, sign, *_ in SHAPES[:4]], colours)
    )
    assert all(colour == colours[name] for _, colour, name in signs)
    told = dict(
        re.findall(
            r"<title>(tokenizer: nothing can be said of scaffold_bpe|bpe · longest_first · standard, mean)"
            r"[^<]*</title>(.*?)</g>",
            page,
            re.S,
        )
    )
    assert COLOURS[1].lower() in told["tokenizer: nothing can be said of scaffold_bpe"].lower()
    assert COLOURS[0].lower() in told["bpe · longest_first · standard, mean"].lower()


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
