"""How the rows of a sweep stand while its runs end."""

from pathlib import Path

import numpy as np
import pytest

from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.show.standings import lines, standings
from paribus.reporting.significance.crossed import crossed_test, half_width, pooled_variance, within_rows
from paribus.store.record import write_record

ROW_NAMES = ("bpe", "unigram")
RUNS = [(row, seed, f"{row}{seed}") for row in ROW_NAMES for seed in (0, 1)]


def scored(root: OutputRoot, key: str, **metrics: float) -> None:
    directory = root.store.path("evaluation", key)
    directory.mkdir(parents=True)
    named = {f"eval/{name.replace('__', '/')}": value for name, value in metrics.items()}
    made = {"stage": "evaluation", "key": key, "files": {}, "seconds": 1.0, "identity": {}, "inputs": {}}
    write_record(directory, made | {"result": {"metrics": named}})


@pytest.fixture
def root(tmp_path: Path) -> OutputRoot:
    return OutputRoot(tmp_path, 30.0)


def test_nothing_is_said_before_two_rows_have_a_score_nor_once_all_have(root: OutputRoot) -> None:
    scored(root, "bpe0", bits_per_byte=2.0)
    scored(root, "bpe1", bits_per_byte=2.2)
    assert list(lines(root, RUNS)) == []
    scored(root, "unigram1", bits_per_byte=2.1)
    assert list(lines(root, RUNS))
    scored(root, "unigram0", bits_per_byte=2.1)
    assert list(lines(root, RUNS)) == []


def test_rows_are_compared_by_the_seeds_that_both_have(root: OutputRoot) -> None:
    scored(root, "bpe0", bits_per_byte=2.0)
    scored(root, "bpe1", bits_per_byte=2.2)
    scored(root, "unigram1", bits_per_byte=2.15)
    assert list(lines(root, RUNS)) == [
        "so far, 3 of 4 runs: bits per byte of held-out text, lower is better",
        "  bpe      2.1000  2 seeds",
        "  unigram  2.1500  1 seed, -0.0500 from bpe with the same seeds",
    ]


def test_rows_of_three_seeds_have_the_spread_of_the_report_and_those_of_two_none() -> None:
    means = np.array([[2.0, 2.2, 2.1, 2.3], [1.9, 2.15, 2.1, np.nan], [1.9, 2.1, np.nan, np.nan]])
    names = ("bpe", "unigram", "bytes")
    scores = {(names[row], int(seed)): means[row, seed] for row, seed in np.argwhere(np.isfinite(means))}
    first, second, third = standings(scores, names)
    within, against = within_rows(means), pooled_variance(means)
    assert against is not None
    assert first.half_width == pytest.approx(half_width(means[:1].T, within))
    assert second.half_width == pytest.approx(half_width(means[1:2, :3].T, within))
    test = crossed_test((means[1:2, :3] - means[:1, :3]).T, 2.3, against.times(2))
    assert (first.change, first.change_half_width) == (None, None)
    assert second.change == pytest.approx(-0.05)
    assert second.change_half_width == pytest.approx(test.half_width)
    assert third.change == pytest.approx(-0.1)
    assert (third.half_width, third.change_half_width) == (None, None)


def test_a_first_row_that_has_not_ended_is_no_baseline(root: OutputRoot) -> None:
    runs = [("words", 0, "words0"), *RUNS]
    scored(root, "bpe0", bits_per_byte=2.0)
    scored(root, "unigram0", bits_per_byte=2.1)
    assert all("from" not in line for line in lines(root, runs))
