"""The bar of the running stage on a terminal, with a line of details below it."""

from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

INDENT = " " * 15


class StageProgress(Progress):
    """A bar whose task has the fields `stage`, `amount` and `detail`; details too long for the terminal are cut."""

    def __init__(self, console: Console) -> None:
        super().__init__(
            TextColumn("  {task.fields[stage]:<12}"),
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[amount]}"),
            TimeElapsedColumn(),
            TextColumn("elapsed,"),
            TimeRemainingColumn(),
            TextColumn("left · {task.description}"),
            console=console,
            transient=True,
        )

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bars, then what they say in detail."""
        yield self.make_tasks_table(self.tasks)
        for task in self.tasks:
            if task.fields["detail"]:
                yield Text(INDENT + task.fields["detail"], style="dim", no_wrap=True, overflow="ellipsis")
