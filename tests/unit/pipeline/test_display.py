"""Progress on a terminal and in a log."""

import io

import pytest
from rich.console import Console

from paribus.pipeline.show import display as display_module
from paribus.pipeline.show.display import Display, open_console

DETAIL = "387.9 GiB · 2.9e20 FLOPs · step 95,188 of 95,368 · 1,234 device-hours"


def console(*, terminal: bool) -> Console:
    return Console(width=120, file=io.StringIO(), force_terminal=terminal, color_system=None)


def shown(display: Display) -> str:
    assert isinstance(display.console.file, io.StringIO)
    return display.console.file.getvalue()


def test_training_fits_a_terminal_of_120_columns() -> None:
    display = Display(console(terminal=True))
    display.start("training", "starting")
    display.progress(99.8e9, 100e9, "tokens", "taking steps", DETAIL)
    assert display._bar is not None
    display._bar.refresh()
    display.finish("done")
    lines = shown(display).splitlines()
    (bar,) = [line for line in lines if "99.8B of 100.0B tokens" in line][-1:]
    assert bar.rstrip().endswith("left · taking steps")
    assert max(map(len, lines[lines.index(bar) : lines.index(bar) + 2])) <= 120 + len("\x1b[2K")
    assert any(line.strip() == DETAIL for line in lines)


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


def test_small_counts_are_shown_to_the_last() -> None:
    display = Display(console(terminal=False))
    display.start("vocabulary", "starting")
    display._last_line -= display_module.SECONDS_BETWEEN_LINES
    display.progress(1_234, 8_192, "tokens", "merging pairs")
    assert "vocabulary: merging pairs, 1,234 of 8,192 tokens (15%)" in shown(display)


@pytest.mark.parametrize("columns", ["0", "1"])
def test_a_width_in_which_nothing_could_be_shown_is_not_taken(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert open_console().width == 80
    monkeypatch.setenv("COLUMNS", "30")
    assert open_console().width == 30
