"""The comparison of rows so far, while runs are missing."""

from pathlib import Path

import pytest

from paribus.pipeline.root import OutputRoot
from paribus.pipeline.standings import lines
from paribus.store.artifacts import write_record

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


def test_rows_are_compared_by_the_seeds_that_both_have(root: OutputRoot) -> None:
    scored(root, "bpe0", bits_per_byte=2.0)
    scored(root, "bpe1", bits_per_byte=2.2)
    scored(root, "unigram1", bits_per_byte=2.15)
    assert list(lines(root, RUNS)) == [
        "so far, 3 of 4 runs: bits per byte of held-out text, lower is better",
        "  bpe      2.1000  2 seeds",
        "  unigram  2.1500  1 seed, -0.0500 from bpe with the same seeds",
    ]
