"""Display of running stages and the time they still take, as bars or lines, and of documents for --json."""

import json
import math
import sys
import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group
from rich.text import Text

from paribus.config.units import format_count, format_duration, format_size

SECONDS_BETWEEN_LINES = 10.0
LEAST_WIDTH = 20
"""Columns below which nothing could be shown; `COLUMNS=0` stands for a width that is not known."""


def open_console(*, stderr: bool = False) -> Console:
    """A console that shows text as it is: a `:snake:` in a document stays one, and numbers get no colours."""
    console = Console(stderr=stderr, highlight=False, emoji=False)
    if console.width < LEAST_WIDTH:
        console.width = 80
    return console


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document of plain data; what is no finite number is null."""
    json.dump(_finite(document), sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")
    sys.stdout.flush()


class Display:
    """Shows one run: a line a finished stage, a bar for the running one."""

    def __init__(self, console: Console, label: str = "") -> None:
        """`label` begins each line where several runs share the console, which then shows no bars."""
        self.console, self._label = console, label
        self._bar: Any = None
        self._live: Any = None
        self._name, self._last_line = "", 0.0
        self._activity, self._began, self._units_before = "", 0.0, 0.0
        """What the running stage does, since when, and the units that were finished then."""

    def message(self, text: str) -> None:
        """Print one unwrapped line above the bar; rich markup is interpreted."""
        shown = f"[dim]{self._label:>3}[/dim] {text}" if self._label else text
        self.console.print(shown, highlight=False, soft_wrap=True)

    def start(self, name: str, note: str) -> None:
        """A stage begins; `note` is shown until it reports progress."""
        self._name, self._activity, self._last_line = name, "", time.monotonic()
        if self.console.is_terminal and not self._label:
            from rich.live import Live  # with the bars, 40 ms
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn(f"  {name:<12}"),
                BarColumn(bar_width=20),
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.fields[amount]}"),
                TimeElapsedColumn(),
                TextColumn("elapsed,"),
                TimeRemainingColumn(),
                TextColumn("left · {task.description}"),
            )
            self._bar.add_task(note, total=None, amount="")
            self._live = Live(self._bar, console=self.console, transient=True, refresh_per_second=10)
            self._live.start(refresh=True)
        else:
            self.message(f"  {name}: {note}")

    def progress(self, done: float, total: float, unit: str, doing: str, detail: str = "") -> None:
        """The running stage finished `done` of `total` units; `detail` is shown beside or below that."""
        if doing != self._activity:
            self._activity, self._began, self._units_before = doing, time.monotonic(), done
        if self._live is not None:
            amount = _amount(done, total, unit)
            self._bar.update(self._bar.task_ids[0], completed=done, total=total, description=doing, amount=amount)
            below = Text(" " * 15 + detail, style="dim", no_wrap=True, overflow="ellipsis")
            self._live.update(Group(self._bar, below) if detail else self._bar)
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            left = _left(done, total, self._units_before, time.monotonic() - self._began)
            amount = " · ".join(text for text in (_amount(done, total, unit), detail) if text)
            self.message(f"  {self._name}: {doing}, {amount}{left}")

    def finish(self, text: str) -> None:
        """The running stage ended; `text` says how."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        self.message(text)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _amount(done: float, total: float, unit: str) -> str:
    """`1,234 of 8,192 tokens`; in short, `1.2M of 20.0M tokens`, from a million on."""
    if unit == "bytes":
        return f"{format_size(done)} of {format_size(total)}"
    if total >= 1e6:
        return f"{format_count(done)} of {format_count(total)} {unit}"
    return f"{done:,.0f} of {total:,.0f} {unit}"


def _left(done: float, total: float, before: float, seconds: float) -> str:
    """Share that is done, and time for the rest at the pace since `before` units were finished, `seconds` ago."""
    if done <= 0 or total <= 0:
        return ""
    share = f" ({done / total:.0%})"
    return f"{share}, {format_duration(seconds * (total - done) / (done - before))} left" if done > before else share
