"""What rows look like in all pictures: a colour a value of a factor."""

import itertools
import re
from pathlib import Path

import pytest

from paribus.reporting.plots.looks import COLOURS, SIGNS, Looks
from paribus.reporting.report import write_report
from support.tables import FACTORS, demo_runs

CROSSED = list(itertools.product(("bpe", "scaffold_bpe", "unigram"), ("merge_rank", "longest_first")))


def test_a_value_has_one_colour_and_a_combination_of_the_others_one_shape() -> None:
    looks = Looks(("tokenizer", "encoder"), CROSSED)
    colours = {(tokenizer, looks.of((tokenizer, encoder)).colour) for tokenizer, encoder in CROSSED}
    shapes = {(encoder, looks.of((tokenizer, encoder)).shape) for tokenizer, encoder in CROSSED}
    assert sorted(colours) == sorted(zip(("bpe", "scaffold_bpe", "unigram"), COLOURS, strict=False))
    assert shapes == {("merge_rank", 0), ("longest_first", 1)}
    assert looks.colour_of("tokenizer", "unigram") == COLOURS[2]
    assert looks.colour_of("encoder", "longest_first") is None
    assert looks.told == ("tokenizer", ("encoder",))


@pytest.mark.parametrize("amount", ["model", "budget", "model.layers"])
def test_what_pictures_have_along_an_axis_is_not_coloured_beside_another(amount: str) -> None:
    rows = list(itertools.product(("small", "medium", "large"), ("bpe", "unigram")))
    looks, over_sizes = Looks((amount, "tokenizer"), rows), Looks(("tokenizer",), [row[1:] for row in rows])
    for tokenizer in ("bpe", "unigram"):
        assert looks.of(("large", tokenizer)).colour == over_sizes.of((tokenizer,)).colour
    assert Looks((amount,), [row[:1] for row in rows]).told == (amount, ())


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
    assert {(sign, name) for sign, _, name in signs} == set(itertools.product(SIGNS[:4], colours))
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
