"""The bar of a stage on a terminal, and how rows stand while runs are missing."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from paribus.pipeline.display import Display
from paribus.pipeline.root import OutputRoot
from paribus.pipeline.standings import lines
from paribus.store.artifacts import write_record

DETAIL = "387.9 GiB · 2.9e20 FLOPs · step 95,188 of 95,368 · 1,234 device-hours"


def test_a_terminal_has_a_bar_while_a_stage_runs_and_a_line_when_it_ends() -> None:
    file = io.StringIO()
    display = Display(Console(width=120, file=file, force_terminal=True, color_system=None))
    for stage in ("tokens", "training"):
        display.start(stage, "starting")
        assert f"  {stage}" in file.getvalue().splitlines()[-1] and "starting" in file.getvalue()
        display.progress(1e6, 20e6, "tokens", "taking steps", DETAIL)
        display._live.refresh()
        bar, detail = file.getvalue().splitlines()[-2:]
        assert (
            "5% 1.0M of 20.0M tokens" in bar and "left · taking steps" in bar and detail.startswith(" " * 15 + "387.9")
        )
        display.message("a line above the bar")
        display.finish(f"{stage}: done")
        assert file.getvalue().endswith(f"{stage}: done\n")


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
