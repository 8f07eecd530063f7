"""Sizes and counts as people write them."""

import re
from collections.abc import Callable

import pytest

from paribus.config.units import format_count, format_size, parse_count, parse_sample, parse_size, rounded_up_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("388GiB", 388 * 2**30), ("1.5KB", 1500), ("10", 10), (10, 10), ("2 MiB", 2**21), ("1_000B", 1000), ("1e3", 1000)],
)
def test_sizes_are_read_exactly(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(("text", "count"), [("100B", 10**11), ("1.5M", 1_500_000), ("32K", 32_000), (7, 7)])
def test_counts_are_read_exactly(text: object, count: int) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize("text", ["", "GiB", "3 apples", "-GiB", True, None, "1GiBs", [1]])
def test_what_is_no_size_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="is not a number with a unit such as 388GiB"):
        parse_size(text)


@pytest.mark.parametrize("read", [parse_size, parse_count])
@pytest.mark.parametrize("text", [-5, "-5.5", "-1e3", "-2B", 0, "0.0"])
def test_a_number_that_is_not_above_zero_is_told_so(read: Callable[[object], int], text: object) -> None:
    with pytest.raises(ValueError, match=rf"^should be above zero, not {re.escape(repr(text))}$"):
        read(text)


def test_a_part_of_one_is_no_amount() -> None:
    with pytest.raises(ValueError, match=r"^should be 1 or more, not 0\.3$"):
        parse_count(0.3)


def test_sizes_and_counts_are_shown_briefly() -> None:
    assert format_size(388 * 2**30) == "388.0 GiB"
    assert format_count(468_239_360) == "468.2M"


@pytest.mark.parametrize(
    ("size", "written"),
    [(950, "950"), (1000, "1KB"), (120_001, "121KB"), (999_001, "1MB"), (1_234_567, "1.24MB"), (5 * 10**15, "5000TB")],
)
def test_a_size_to_be_given_is_never_less_than_it_was(size: int, written: str) -> None:
    assert rounded_up_size(size) == written and parse_size(written) >= size


@pytest.mark.parametrize(
    ("value", "kept"), [(0.25, 0.25), ("500MB", 500_000_000), (190_000, 190_000), ("0.75", 0.75), ("5e5", 500_000)]
)
def test_a_sample_is_a_share_or_a_size(value: object, kept: float) -> None:
    assert parse_sample(value) == kept and isinstance(parse_sample(value), type(kept))


@pytest.mark.parametrize("value", [0, -0.5, True, "half", "0.25%", 1, "1.0", 1.5, 25, "999B"])
def test_what_is_neither_a_share_nor_a_size_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"500MB; null keeps all|388GiB|is no share below 1; null keeps everything"):
        parse_sample(value)
