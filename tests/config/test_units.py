"""Sizes and counts as people write them."""

import re

import pytest

from paribus.config.units import parse_count, parse_sample, parse_size, rounded_up_size


def test_sizes_and_counts_are_read_exactly() -> None:
    sizes = {"388GiB": 388 * 2**30, "1.5KB": 1500, "10": 10, 10: 10, "2 MiB": 2**21, "1_000B": 1000, "1e3": 1000}
    counts = {"100B": 10**11, "1.5M": 1_500_000, "32K": 32_000, 7: 7}
    assert {text: parse_size(text) for text in sizes} == sizes
    assert {text: parse_count(text) for text in counts} == counts


def test_text_that_is_no_positive_size_is_refused() -> None:
    for text in ("", "GiB", "3 apples", "-GiB", True, None, "1GiBs", [1]):
        with pytest.raises(ValueError, match="is not a number with a unit such as 388GiB"):
            parse_size(text)
    for read in (parse_size, parse_count):
        for text in (-5, "-5.5", "-1e3", "-2B", 0, "0.0"):
            with pytest.raises(ValueError, match=rf"^should be above zero, not {re.escape(repr(text))}$"):
                read(text)
    with pytest.raises(ValueError, match=r"^should be 1 or more, not 0\.3$"):
        parse_count(0.3)


def test_a_size_to_be_given_is_never_less_than_it_was() -> None:
    written = {950: "950", 1000: "1KB", 120_001: "121KB", 999_001: "1MB", 1_234_567: "1.24MB", 5 * 10**15: "5000TB"}
    assert {size: rounded_up_size(size) for size in written} == written
    assert all(parse_size(text) >= size for size, text in written.items())


def test_a_sample_is_a_share_or_a_size() -> None:
    samples = {0.25: 0.25, "500MB": 500_000_000, 190_000: 190_000, "0.75": 0.75, "5e5": 500_000}
    parsed = {value: parse_sample(value) for value in samples}
    assert parsed == samples and [type(each) for each in parsed.values()] == [type(each) for each in samples.values()]
    for value in (0, -0.5, True, "half", "0.25%", 1, "1.0", 1.5, 25, "999B"):
        with pytest.raises(
            ValueError, match=r"500MB; null keeps all|388GiB|is no share below 1; null keeps everything"
        ):
            parse_sample(value)
