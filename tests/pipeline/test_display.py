"""Progress, results and standings of a run on a terminal and in a log."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from paribus.config.groups.execution import TrackingConfig
from paribus.pipeline import display as display_module
from paribus.pipeline.display import Display
from paribus.pipeline.graph import STAGES
from paribus.pipeline.root import OutputRoot
from paribus.pipeline.run import perform
from paribus.pipeline.standings import lines
from paribus.store.artifacts import write_record
from paribus.store.provenance import loaded_code
from support.plans import planned_run, run_stages_here

DETAIL = "387.9 GiB · 2.9e20 FLOPs · step 95,188 of 95,368 · 1,234 device-hours"


def console(*, terminal: bool) -> Console:
    return Console(width=120, file=io.StringIO(), force_terminal=terminal, color_system=None)


def shown(display: Display) -> str:
    assert isinstance(display.console.file, io.StringIO)
    return display.console.file.getvalue()


def test_a_log_has_the_units_of_training_on_one_line() -> None:
    display = Display(console(terminal=False))
    display.start("training", "starting")
    display.progress(1e6, 20e6, "tokens", "taking steps", DETAIL)
    display._last_line -= display_module.SECONDS_BETWEEN_LINES
    display.progress(12.34e6, 20e6, "tokens", "taking steps", DETAIL)
    assert f"  training: taking steps, 12.3M of 20.0M tokens · {DETAIL} (62%), " in shown(display).splitlines()[-1]


def test_the_time_left_is_that_of_what_the_stage_does_now_from_where_it_began() -> None:
    display = Display(console(terminal=False))
    display.start("evaluation", "starting")
    display.progress(900, 1_000, "bytes", "scoring text", "")
    display._began -= 3600
    for done in (200, 400):
        display.progress(done, 1_000, "requests", "scoring tasks", "")
        display._began -= 10
        display._last_line -= display_module.SECONDS_BETWEEN_LINES
    display.progress(600, 1_000, "requests", "scoring tasks", "")
    assert shown(display).splitlines()[-1] == "  evaluation: scoring tasks, 600 of 1,000 requests (60%), 20 s left"


def test_a_terminal_has_a_bar_while_a_stage_runs_and_a_line_when_it_ends() -> None:
    display = Display(console(terminal=True))
    for stage in ("tokens", "training"):
        display.start(stage, "starting")
        assert f"  {stage}" in shown(display).splitlines()[-1] and "starting" in shown(display)
        display.progress(1e6, 20e6, "tokens", "taking steps", DETAIL)
        display._live.refresh()
        bar, detail = shown(display).splitlines()[-2:]
        assert (
            "5% 1.0M of 20.0M tokens" in bar and "left · taking steps" in bar and detail.startswith(" " * 15 + "387.9")
        )
        display.message("a line above the bar")
        display.finish(f"{stage}: done")
        assert shown(display).endswith(f"{stage}: done\n")


CORPUS = {
    "train": {"documents": 284, "bytes": 102_454},
    "heldout": {"documents": 76, "bytes": 26_936},
    "skipped": {},
    "moved": {"documents": 0, "bytes": 0},
}
SCORES = {"eval/bits_per_byte": 0.77666, "eval/boolq/0shot/acc": 0.625}


def test_a_stage_sums_up_its_result() -> None:
    skipped = CORPUS | {"skipped": {"empty": 2, "no text": 3}, "moved": {"documents": 4, "bytes": 9}}
    results: dict[str, tuple[dict[str, Any], list[str]]] = {
        "corpus": (
            skipped,
            ["284 documents, 100.1 KiB", "76 held out", "5 skipped", "4 near copies moved to training"],
        ),
        "tokens": ({"tokens": 14_002_000, "bytes_per_token": 7.317}, ["14.0M tokens", "7.32 bytes a token"]),
        "order": ({"documents": 272, "removed": 12}, ["272 documents", "12 removed"]),
        "evaluation": ({"metrics": SCORES}, ["0.7767 bits per byte", "boolq 0.625"]),
        "prompts": ({"tasks": {}}, []),
    }
    facts = {stage: list(STAGES[stage].facts(result)) for stage, (result, _) in results.items()}
    assert facts == {stage: expected for stage, (_, expected) in results.items()}


def test_the_line_of_a_stage_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_stages_here(monkeypatch, result=CORPUS)
    run = planned_run(tmp_path / "root", tracking=TrackingConfig(kind="none"))
    console = Console(file=io.StringIO(), width=200)
    assert perform(replace(run.job.config, until="corpus"), Display(console), loaded_code()) is None
    assert isinstance(console.file, io.StringIO)
    (line,) = [line for line in console.file.getvalue().splitlines() if " done in " in line]
    assert line.endswith("  284 documents, 100.1 KiB · 76 held out")


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
