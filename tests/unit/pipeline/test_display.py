"""Progress on a terminal and in a log."""

import io

from rich.console import Console

from paribus.pipeline.show import display as display_module
from paribus.pipeline.show.display import Display

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
